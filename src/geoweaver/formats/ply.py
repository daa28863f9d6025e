"""Point clouds as PLY: written binary little-endian, read in every encoding with any vertex properties."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from geoweaver.errors import FormatError
from geoweaver.formats.files import place, quoted, read_bytes, writing
from geoweaver.formats.ply_header import Element, Header, parse_header

EXPECTED = "a PLY point cloud"
_BLOCK = 1 << 20
"""Vertices packed at a time, so that a large cloud is not copied whole."""


@dataclass(frozen=True)
class PlyCloud:
    """Points with what is known of each."""

    points: Float32[Tensor, "P 3"]
    colours: UInt8[Tensor, "P 3"] | None = None
    normals: Float32[Tensor, "P 3"] | None = None
    confidence: Float32[Tensor, "P"] | None = None

    def __len__(self) -> int:
        return len(self.points)


def write_ply(path: Path, cloud: PlyCloud) -> None:
    """Write x y z [nx ny nz] [red green blue] [confidence], binary little-endian."""
    columns: dict[str, np.ndarray] = dict(zip("xyz", cloud.points.numpy().T, strict=True))
    if cloud.normals is not None:
        columns |= zip(("nx", "ny", "nz"), cloud.normals.numpy().T, strict=True)
    if cloud.colours is not None:
        columns |= zip(("red", "green", "blue"), cloud.colours.numpy().T, strict=True)
    if cloud.confidence is not None:
        columns["confidence"] = cloud.confidence.numpy()
    kinds = {name: "<f4" if column.dtype == np.float32 else "u1" for name, column in columns.items()}
    words = [f"property {'float' if kind == '<f4' else 'uchar'} {name}" for name, kind in kinds.items()]
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(cloud)}", *words, "end_header"]
    with writing(path) as file:
        file.write(("\n".join(header) + "\n").encode())
        for start in range(0, len(cloud), _BLOCK):
            block = np.empty(min(_BLOCK, len(cloud) - start), dtype=list(kinds.items()))
            for name, column in columns.items():
                block[name] = column[start : start + _BLOCK]
            file.write(block.tobytes())


def read_ply(path: Path) -> PlyCloud:
    """A cloud's points and, where stated, colours, normals and confidence."""
    vertices = read_ply_vertices(path)
    points = _columns(vertices, ("x", "y", "z"))
    if points is None:
        raise FormatError(
            f"{place(path)}: the vertices have no x y z, {EXPECTED} was expected: give another file"
        )
    broken = int((~np.isfinite(points).all(1)).sum())
    if broken:
        raise FormatError(f"{place(path)}: {broken} of {len(points)} vertices are not finite: remove them")
    normals, confidence = _columns(vertices, ("nx", "ny", "nz")), _columns(vertices, ("confidence",))
    return PlyCloud(
        torch.from_numpy(points),
        colours=_colours(vertices),
        normals=None if normals is None else torch.from_numpy(normals),
        confidence=None if confidence is None else torch.from_numpy(confidence[:, 0].copy()),
    )


def read_ply_vertices(path: Path) -> dict[str, np.ndarray]:
    """Every property of every vertex, by name, in the file's own number types."""
    data = read_bytes(path, EXPECTED)
    header = parse_header(path, data)
    return _read_ascii(path, data, header) if header.order == "" else _read_binary(path, data, header)


def _read_binary(path: Path, data: bytes, header: Header) -> dict[str, np.ndarray]:
    start = header.size + sum(
        element.count * _dtype(element, header.order).itemsize for element in header.before
    )
    dtype = _dtype(header.vertex, header.order)
    have = max(len(data) - start, 0) // dtype.itemsize
    if have < header.vertex.count:
        raise FormatError(
            f"{place(path)}: {header.vertex.count} vertices are promised, {have} are there: copy it again"
        )
    rows = np.frombuffer(data, dtype, count=header.vertex.count, offset=start)
    return {name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in header.vertex.names}


def _read_ascii(path: Path, data: bytes, header: Header) -> dict[str, np.ndarray]:
    try:
        text = data[header.size :].decode("ascii")
    except UnicodeDecodeError:
        raise FormatError(
            f"{place(path)}: an ascii PLY holds other bytes: write it as binary instead"
        ) from None
    lines = [line.split() for line in text.splitlines() if line.strip()]
    skip, count = sum(element.count for element in header.before), header.vertex.count
    rows = lines[skip : skip + count]
    if len(rows) < count:
        raise FormatError(
            f"{place(path)}: {count} vertices are promised, {len(rows)} are there: copy it again"
        )
    width = len(header.vertex.names)
    for i, row in enumerate(rows):
        if len(row) != width:
            raise FormatError(
                f"{place(path)}, vertex {i}: {width} numbers were expected, {len(row)} found: correct it"
            )
    try:
        table = np.array(rows, dtype=np.float64).reshape(count, width)
    except ValueError as error:
        raise FormatError(
            f"{place(path)}: a vertex holds no number ({quoted(str(error))}): correct it"
        ) from None
    dtype = _dtype(header.vertex, "=")
    return {name: _cast(path, name, table[:, i], dtype[name]) for i, name in enumerate(header.vertex.names)}


def _cast(path: Path, name: str, column: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return column.astype(dtype)
    limits = np.iinfo(dtype)
    if not ((column >= limits.min) & (column <= limits.max)).all():
        raise FormatError(
            f"{place(path)}: a value of {quoted(name)} does not fit its type: correct the header"
        )
    return column.astype(dtype)


def _dtype(element: Element, order: str) -> np.dtype:
    return np.dtype([(name, order + kind) for name, kind in zip(element.names, element.kinds, strict=True)])


def _columns(vertices: dict[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray | None:
    if not all(name in vertices for name in names):
        return None
    with np.errstate(over="ignore"):
        return np.stack([vertices[name].astype(np.float32) for name in names], 1)


def _colours(vertices: dict[str, np.ndarray]) -> Tensor | None:
    """Bytes as they are; 16-bit and floating colours (0 to 1) brought to bytes."""
    names = ("red", "green", "blue")
    if not all(name in vertices for name in names):
        return None
    columns = np.stack([vertices[name] for name in names], 1)
    if columns.dtype == np.uint8:
        return torch.from_numpy(columns)
    full = 1.0 if columns.dtype.kind == "f" else float(np.iinfo(columns.dtype).max)
    share = np.nan_to_num(columns.astype(np.float64)) / full
    return torch.from_numpy((share.clip(0, 1) * 255).round().astype(np.uint8))

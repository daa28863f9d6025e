"""An artifact's file: tensors and JSON in one safetensors file that carries its own key and digest."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geoweaver.store.keys import tensor_bytes
from geoweaver.store.whole import disk_errors, whole_file

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_BLOCK = 1 << 20

Table = list[tuple[str, str, list[int]]]
"""Name, safetensors type and shape of each tensor, in file order."""


class DamagedError(Exception):
    """A file is not what was once written there; inside the store only, where it leads to a recomputation."""


@dataclass(frozen=True)
class Artifact:
    """What a stage made for one piece; the digest goes into the keys of whatever is made from it."""

    tensors: dict[str, Tensor]
    meta: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class Header:
    """What stands before the tensors in an artifact's file."""

    label: dict[str, Any]
    """Stage, piece and key: whose artifact this is."""
    meta: dict[str, Any]
    table: Table
    digest: str

    def encode(self) -> bytes:
        """The safetensors header, padded so that the data is aligned."""
        notes = _json({"format": 1, "label": self.label, "meta": self.meta, "digest": self.digest})
        # One metadata entry only: safetensors promises no order among several.
        entries: dict[str, Any] = {"__metadata__": {"geoweaver": notes}}
        start = 0
        for name, dtype, shape in self.table:
            stop = start + _size(dtype, shape)
            entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}
            start = stop
        text = json.dumps(entries, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text


def write_artifact(
    path: Path, label: dict[str, Any], tensors: Mapping[str, Tensor], meta: Mapping[str, Any]
) -> str:
    """Write an artifact whole or not at all, and give its digest."""
    # Wide types first, so that every tensor is aligned to its own type.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    table: Table = [(name, _NAMES[tensors[name].dtype], list(tensors[name].shape)) for name in names]
    notes: dict[str, Any] = json.loads(_json(meta))
    digest = _digest(table, notes, (tensor_bytes(tensors[name]) for name in names))
    with whole_file(path) as file:
        file.write(Header(label, notes, table, digest).encode())
        for name in names:
            file.write(tensor_bytes(tensors[name]))
    return digest


def read_header(path: Path) -> Header:
    """The header of an artifact that has its right length; anything else is damage."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise DamagedError(f"it ends after {size} bytes, inside its header")
        raw = file.read(length)
    header = _decode(raw)
    if header.encode() != length.to_bytes(8, "little") + raw:
        raise DamagedError("its header was changed")
    expected = 8 + length + sum(_size(dtype, shape) for _, dtype, shape in header.table)
    if size != expected:
        raise DamagedError(f"it holds {size} bytes instead of {expected}")
    return header


def _decode(raw: bytes) -> Header:
    try:
        entries = json.loads(raw)
        notes = json.loads(entries.pop("__metadata__")["geoweaver"])
        table = [(name, entry["dtype"], entry["shape"]) for name, entry in entries.items()]
        if not all(
            dtype in DTYPES and all(type(n) is int and n >= 0 for n in shape) for _, dtype, shape in table
        ):
            raise ValueError("a type or a shape that no tensor has")
        return Header(dict(notes["label"]), dict(notes["meta"]), table, str(notes["digest"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError("its header cannot be read") from error


def check_content(path: Path, header: Header) -> None:
    """Compare the file's data with its digest, block by block: no more memory than one block."""
    with path.open("rb") as file:
        file.seek(int.from_bytes(file.read(8), "little") + 8)
        if _digest(header.table, header.meta, iter(lambda: file.read(_BLOCK), b"")) != header.digest:
            raise DamagedError("its content does not match its digest")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors, memory-mapped: a page is read when touched, and writing to it never reaches the file."""
    from safetensors import safe_open

    with disk_errors("read", path), safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _digest(table: Table, meta: Mapping[str, Any], data: Iterable[bytes | memoryview]) -> str:
    state = hashlib.sha256(_json([table, meta]).encode())
    for block in data:
        state.update(block)
    return state.hexdigest()[:32]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _size(dtype: str, shape: list[int]) -> int:
    return DTYPES[dtype].itemsize * prod(shape)

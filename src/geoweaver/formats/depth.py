"""Depth maps, 0 = unknown: 16-bit PNG with a stated unit (else millimetres), float .npy, .npz and PFM."""

import io
import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.depth_arrays import npy_from_bytes, npz_member, pfm_bytes, pfm_from_bytes
from geoweaver.formats.files import list_folder, place, quoted, read_bytes, reason, writing
from geoweaver.formats.names import indices_by_number, indices_by_order

EXPECTED = "a depth map (16-bit PNG, .npy, .npz or .pfm)"
DEPTH_SUFFIXES = (".png", ".npy", ".npz", ".pfm")
MILLIMETRE = 0.001
_UNIT_KEY = "depth_unit"


def read_depth(path: Path, unit: float = MILLIMETRE) -> Float32[Tensor, "H W"]:
    """Depth, 0 where not finite or not positive; a PNG that states no unit of its own counts in `unit`."""
    data = read_bytes(path, EXPECTED)
    is_png = data.startswith(b"\x89PNG")
    values = _read_png(path, data, unit) if is_png else _read_floats(path, data, "depth")
    return torch.from_numpy(_positive(path, values))


def read_confidence(path: Path) -> Float32[Tensor, "H W"]:
    """The confidence that stands beside the depth in an .npz."""
    data = npz_member(path, read_bytes(path, "an .npz with depth and confidence"), "confidence")
    return torch.from_numpy(_positive(path, npy_from_bytes(path, data)))


def write_depth(
    path: Path,
    depth: Float[Tensor, "H W"],
    unit: float = MILLIMETRE,
    confidence: Float[Tensor, "H W"] | None = None,
) -> None:
    """Write one map in the format of the suffix; a PNG counts in `unit` and states it."""
    values = depth.detach().cpu().double().numpy()
    values = np.where(np.isfinite(values) & (values > 0), values, 0.0)
    arrays = {"depth": values.astype(np.float32)}
    if confidence is not None:
        arrays["confidence"] = confidence.detach().cpu().float().numpy()
    if path.suffix == ".png":
        content = _png_bytes(path, values, unit)
    elif path.suffix == ".pfm":
        content = pfm_bytes(arrays["depth"])
    elif path.suffix in (".npy", ".npz"):
        content = _numpy_bytes(arrays, packed=path.suffix == ".npz")
    else:
        raise InputError(
            f"{place(path)}: depth is written as {', '.join(DEPTH_SUFFIXES)}: choose one of these suffixes"
        )
    if confidence is not None and path.suffix != ".npz":
        raise InputError(f"{place(path)}: only an .npz holds confidence beside depth: choose that suffix")
    # one of thousands: whoever makes their folder brings it to the disk as a whole
    with writing(path, synced=False) as file:
        file.write(content)


def depth_files(folder: Path, names: Sequence[str] | None = None) -> dict[int, Path]:
    """The depth map of each frame that has one: by image names if given, else by the number in its own."""
    files = [
        path
        for path in list_folder(folder, "a folder of depth maps")
        if path.suffix.lower() in DEPTH_SUFFIXES
    ]
    if not files:
        raise InputError(
            f"{place(folder)} holds no depth map ({', '.join(DEPTH_SUFFIXES)}): check the folder"
        )
    if names is None:
        stems = [path.stem for path in files]
        numbers = indices_by_number(stems)
        index = indices_by_order(stems) if numbers is None else numbers
        found = dict(zip(index.tolist(), files, strict=True))
    else:
        frame = {PurePosixPath(name).stem: i for i, name in enumerate(names)}
        found = {frame[path.stem]: path for path in files if path.stem in frame}
        if not found:
            raise InputError(f"{place(folder)}: no depth map is called like an image: rename the maps")
    return dict(sorted(found.items()))


def _read_floats(path: Path, data: bytes, member: str) -> np.ndarray:
    if data.startswith(b"PK"):
        return npy_from_bytes(path, npz_member(path, data, member))
    if data.startswith(b"\x93NUMPY"):
        return npy_from_bytes(path, data)
    if data.startswith((b"Pf", b"PF")):
        return pfm_from_bytes(path, data)
    raise FormatError(
        f"{place(path)} begins like no known format, {EXPECTED} was expected: give another file"
    )


def _positive(path: Path, values: np.ndarray) -> np.ndarray:
    if values.ndim != 2 or 0 in values.shape:
        raise FormatError(
            f"{place(path)} has the shape {values.shape}, height x width was expected: give one map"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        values = values.astype(np.float32)
    return np.where(np.isfinite(values) & (values > 0), values, np.float32(0))


def _read_png(path: Path, data: bytes, unit: float) -> np.ndarray:
    """A 16-bit PNG's counts times the unit that it states, else the given one."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            mode, stated = image.mode, image.info.get(_UNIT_KEY, unit)
            image.load()  # numpy alone would take a truncated image for a whole one
            counts = np.array(image)
    except (
        OSError,
        ValueError,
        SyntaxError,
        OverflowError,
        MemoryError,
        Image.DecompressionBombError,
    ) as error:
        raise FormatError(f"{place(path)} is no sound PNG ({reason(error)}): copy the file again") from None
    if not mode.startswith("I"):
        raise FormatError(
            f"{place(path)} is a PNG of mode {mode}, 16-bit grey was expected: give the raw depth"
        )
    return counts.astype(np.float64) * _stated_unit(path, stated)


def _stated_unit(path: Path, stated: object) -> float:
    try:
        unit = float(str(stated))
    except ValueError:
        unit = math.nan
    if not 0 < unit < math.inf:
        raise FormatError(
            f"{place(path)} states the unit {quoted(str(stated))}, no positive number: write it anew"
        )
    return unit


def _png_bytes(path: Path, depth: np.ndarray, unit: float) -> bytes:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    counts = np.where(depth > 0, np.maximum(np.round(depth / unit), 1), 0)
    if counts.max(initial=0) > 65535:
        raise InputError(
            f"{place(path)}: a depth of {depth.max():.3g} does not fit into 16 bits of {unit:g}: "
            f"choose a unit of at least {depth.max() / 65535:.2g}"
        )
    info, buffer = PngInfo(), io.BytesIO()
    info.add_text(_UNIT_KEY, repr(float(unit)))
    Image.fromarray(counts.astype(np.uint16)).save(buffer, format="PNG", pnginfo=info)
    return buffer.getvalue()


def _numpy_bytes(arrays: dict[str, Any], packed: bool) -> bytes:
    buffer = io.BytesIO()
    if packed:
        np.savez_compressed(buffer, **arrays)
    else:
        np.save(buffer, arrays["depth"])
    return buffer.getvalue()

"""Float arrays in .npy, .npz and PFM: sizes are checked against the header before memory is taken."""

import io
import math
import re
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from geoweaver.errors import FormatError
from geoweaver.formats.files import place, reason

_LARGEST = 1 << 31
"""Bytes; a map of more is not a depth map but a damaged header."""


def npy_from_bytes(path: Path, data: bytes) -> np.ndarray:
    """A numeric array of an .npy file; never pickled objects."""
    stream = io.BytesIO(data)
    shape, fortran, dtype = _npy_header(path, stream)
    if dtype.kind not in "fiu":
        raise FormatError(f"{place(path)} holds {dtype} values, numbers were expected: give a float array")
    have, need = len(data) - stream.tell(), math.prod(shape) * dtype.itemsize
    if have != need:
        raise FormatError(f"{place(path)}: {need} bytes are promised, {have} are there: copy the file again")
    values = np.frombuffer(data, dtype, offset=stream.tell())
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float64).reshape(shape, order="F" if fortran else "C")


def _npy_header(path: Path, stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        major, _ = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings(action="ignore"):  # a header of Python 2 is no news to the user
            shape, fortran, dtype = read(stream)
        if any(size < 0 for size in shape):
            raise ValueError("negative size")
        return shape, fortran, dtype
    except (
        ValueError,
        TypeError,
        SyntaxError,
        tokenize.TokenError,
        RecursionError,
        MemoryError,
        OverflowError,
    ) as error:
        raise FormatError(
            f"{place(path)}: not a sound .npy header ({reason(error)}): write the file anew"
        ) from None


def npz_member(path: Path, data: bytes, name: str) -> bytes:
    """The .npy bytes of one array in an .npz: the named one, or the only one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
            wanted = f"{name}.npy" if f"{name}.npy" in members else members[0] if len(members) == 1 else None
            if wanted is None:
                raise FormatError(f"{place(path)} holds no array '{name}': save the map under that name")
            if archive.getinfo(wanted).file_size > _LARGEST:
                raise FormatError(
                    f"{place(path)}: '{wanted[:40]}' is too large for a map: write the file anew"
                )
            return archive.read(wanted)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError) as error:
        raise FormatError(f"{place(path)} is no sound .npz ({reason(error)}): copy the file again") from None
    except (NotImplementedError, RuntimeError, OverflowError, MemoryError) as error:
        raise FormatError(
            f"{place(path)} cannot be unpacked ({reason(error)}): write the file anew"
        ) from None


_PFM_HEADER = re.compile(rb"(P[fF])\s+(\d{1,7})\s+(\d{1,7})\s+([-+.0-9eE]{1,32})(?:\r\n|\s)")


def pfm_from_bytes(path: Path, data: bytes) -> np.ndarray:
    """A one-channel PFM, bottom row first; the sign of its scale is the byte order."""
    header = _PFM_HEADER.match(data)
    if header is None:
        raise FormatError(f"{place(path)}: no sound PFM header ('Pf' width height scale): write it anew")
    kind, width, height, scale = header[1], int(header[2]), int(header[3]), _scale(path, header[4])
    if kind == b"PF":
        raise FormatError(f"{place(path)} is a PFM of three channels, one was expected: give the depth alone")
    have, need = len(data) - header.end(), 4 * width * height
    if have < need:
        raise FormatError(f"{place(path)}: {need} bytes are promised, {have} are there: copy the file again")
    order = "<f4" if scale < 0 else ">f4"
    values = np.frombuffer(data, order, count=width * height, offset=header.end()).reshape(height, width)
    return values[::-1].astype(np.float64)


def pfm_bytes(values: np.ndarray) -> bytes:
    """One channel, little-endian, bottom row first."""
    height, width = values.shape
    return f"Pf\n{width} {height}\n-1.0\n".encode() + values[::-1].astype("<f4").tobytes()


def _scale(path: Path, text: bytes) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if scale == 0 or not math.isfinite(scale):
        raise FormatError(
            f"{place(path)}: the PFM's scale must be a number other than 0: write the file anew"
        )
    return scale

"""Loading a COLMAP model without harm: what pycolmap would choke on or misread is refused before or after."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.colmap_binary import check_binary
from geoweaver.formats.files import is_file, place, read_text, reason

REQUIRED = ("cameras", "images", "points3D")
OPTIONAL = ("rigs", "frames")
EXPECTED = "a COLMAP model (cameras, images and points3D, all .bin or all .txt)"


def load_colmap(folder: Path) -> Any:
    """The model in a folder as pycolmap's object, from its binary files if it has all of them."""
    import pycolmap

    for suffix in (".bin", ".txt"):
        files = [folder / f"{name}{suffix}" for name in REQUIRED]
        if all(map(is_file, files)):
            break
    else:
        raise InputError(
            f"{place(folder)} holds no complete model, {EXPECTED} was expected: check the folder"
        )
    model = pycolmap.Reconstruction()
    if suffix == ".bin":
        for file in [*files, *(p for n in OPTIONAL if is_file(p := folder / f"{n}.bin"))]:
            check_binary(file)
    else:
        _refuse_blanks_in_names(folder / "images.txt")
    with pycolmap_complaints(place(folder)):
        (model.read_binary if suffix == ".bin" else model.read_text)(folder)
    return model


@contextmanager
def pycolmap_complaints(where: str) -> Iterator[None]:
    """pycolmap's own exceptions, as one line of ours."""
    try:
        yield
    except (ValueError, IndexError, RuntimeError, MemoryError, OverflowError, TypeError) as error:
        why = reason(error).split("] ", 1)[-1].removeprefix("Check failed: ")
        why = "a line lacks a number or holds something else" if ">>" in why else why.strip()
        raise FormatError(f"{where}: not a sound COLMAP model ({why}): write it anew with COLMAP") from None


def _refuse_blanks_in_names(path: Path) -> None:
    """COLMAP's text form ends a name at its first blank, so such images would come back renamed."""
    lines = [(i, line.strip()) for i, line in enumerate(read_text(path, EXPECTED).split("\n"), 1)]
    lines = [(i, line) for i, line in lines if not line.startswith("#")]
    at = 0
    while at < len(lines):
        number, line = lines[at]
        if len(line.split(maxsplit=10)) > 10:
            raise FormatError(f"{place(path, number)}: a name holds a blank: give the binary model")
        at += 2 if line else 1  # the line after an image's is its points, which may be none

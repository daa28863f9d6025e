"""Opening and writing files: whatever goes wrong becomes one line that says what, where, what to do."""

import codecs
import errno
import math
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Float64

from geoweaver.errors import FormatError, InputError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
Line = tuple[int, str]
"""A line's number, counted from 1, and its text."""


def place(path: Path, line: int | None = None) -> str:
    """Where a fault lies, in words that stay on one line whatever the file is called."""
    name = str(path) if str(path).isprintable() else repr(str(path))
    return name if line is None else f"{name}, line {line}"


def quoted(value: object) -> str:
    """A foreign value as it may appear in a message: escaped and short."""
    shown = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return shown if len(shown) <= 40 else f"{shown[:36]}...'"


def read_bytes(path: Path, expected: str, limit: int = -1) -> bytes:
    """A regular file's bytes (the first `limit` of them); `expected` names what should be there."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{place(path)} is a folder, {expected} was expected: give the file itself")
        if not stat.S_ISREG(mode):
            raise InputError(
                f"{place(path)} is no regular file, {expected} was expected: save it to a file first"
            )
        with path.open("rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        raise InputError(f"{place(path)} does not exist, {expected} was expected: check the path") from None
    except PermissionError:
        raise InputError(f"{place(path)} may not be read: check its permissions") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{place(path)} cannot be read ({reason(error)}): check the path") from None
    except MemoryError:
        raise InputError(f"{place(path)} is too large for memory: is it really {expected}?") from None


def is_file(path: Path) -> bool:
    """Whether a regular file is there; a folder that may not be looked into is an error, not a no."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether a folder is there."""
    return stat.S_ISDIR(_mode(path))


def list_folder(path: Path, expected: str) -> list[Path]:
    """Everything in a folder but hidden files, sorted."""
    try:
        return sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{place(path)} cannot be listed ({reason(error)}), {expected} was expected: check the path"
        ) from None


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as error:
        raise InputError(f"{place(path)} cannot be looked at ({reason(error)}): check the path") from None


def reason(error: BaseException) -> str:
    """An error's own words on one line, without the path that our message already names."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split())[:160] or type(error).__name__


def read_text(path: Path, expected: str) -> str:
    """A text file's content, with any byte order mark removed and every line end made a newline."""
    text = _decode(path, read_bytes(path, expected, limit=4096), expected, head=True)
    text = _decode(path, read_bytes(path, expected), expected)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(path: Path, data: bytes, expected: str, head: bool = False) -> str:
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # what PowerShell's `>` writes
    if not wide and b"\0" in data:
        raise FormatError(f"{place(path)} is a binary file, {expected} was expected: give the text file")
    try:
        decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")()
        return decoder.decode(data, final=not head)
    except UnicodeDecodeError as error:
        where = f"{place(path)}, byte {error.start}"
        raise FormatError(
            f"{where}: not valid text, {expected} was expected: save the file as UTF-8"
        ) from None


def data_lines(path: Path, expected: str) -> list[Line]:
    """The lines that hold data: stripped, without blank ones and those that begin with '#'."""
    lines = [(i, line.strip()) for i, line in enumerate(read_text(path, expected).split("\n"), 1)]
    lines = [(i, line) for i, line in lines if line and not line.startswith("#")]
    if not lines:
        raise FormatError(f"{place(path)} holds no data, {expected} was expected: check how it was written")
    return lines


def numbers(path: Path, line: Line, columns: Sequence[str], separator: str | None = None) -> list[float]:
    """A line's numbers, one per named column, all finite."""
    tokens = [token.strip() for token in line[1].split(separator)]
    if len(tokens) != len(columns):
        wanted = f"{len(columns)} numbers ({' '.join(columns)})"
        raise FormatError(
            f"{place(path, line[0])}: {wanted} were expected, {len(tokens)} found: correct the line"
        )
    return [number(path, line[0], token, name) for token, name in zip(tokens, columns, strict=True)]


def number(path: Path, line: int, token: str, name: str) -> float:
    """One finite number, written as every program writes it."""
    try:
        value = float(token) if token.isascii() and "_" not in token else None
    except ValueError:
        value = None
    if value is None:
        raise FormatError(f"{place(path, line)}: {name} is {quoted(token)}, not a number: correct it")
    if not math.isfinite(value):
        raise FormatError(
            f"{place(path, line)}: {name} is {quoted(token)}, not finite: remove or correct the line"
        )
    return value


def table(path: Path, lines: list[Line], columns: Sequence[str]) -> Float64[np.ndarray, "rows columns"]:
    """All lines as one array, every line with the same named columns."""
    return np.array([numbers(path, line, columns) for line in lines], dtype=np.float64)


def written(value: float) -> str:
    """A number in the fewest digits that read back as the same float64; whole numbers without '.0'."""
    return repr(float(value)).removesuffix(".0")


def write_advice(error: OSError | ValueError) -> str:
    """What helps when something could not be written."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _FULL:
        return "free some space on its disk and run the same command again"
    # numpy and PIL tell of a disk that took only a part without a number
    return "check the output path" if number else "check the output path and the free space of its disk"


@contextmanager
def writing(path: Path, synced: bool = True) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is whole and on the disk; missing folders are made."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            yield file
            if synced:  # else a power cut could leave the name with nothing behind it
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"{place(path)} cannot be written ({reason(error)}): {write_advice(error)}"
        ) from None
    finally:
        with suppress(OSError):  # a second complaint would hide the first
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path) as file:
        file.write(text.encode())

"""Files that are there whole or not at all, and what the disk's refusals mean to a user."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from geoweaver.errors import StoreError

PARTIAL = ".part"
"""Ending of files under construction; the next owner of the folder sweeps them away."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file that appears under its name only when complete and on the disk."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    with disk_errors("write", path):
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            _sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors(verb: str, path: Path) -> Iterator[None]:
    """Say an operating system's refusal in one line: what, where, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            advice = "free some space and run the same command again: finished pieces are kept"
        else:
            advice = "check the folder and its permissions, or choose another output folder"
        raise StoreError(f"cannot {verb} {path}: {error.strerror or error}; {advice}") from error

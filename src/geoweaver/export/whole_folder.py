"""A folder that appears under its name only when whole and on the disk; only our own exports are replaced."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geoweaver import __version__
from geoweaver.errors import InputError
from geoweaver.formats.files import is_file, is_folder, place, reason, write_advice
from geoweaver.formats.json_document import write_json
from geoweaver.formats.run_folder import EXPORT_MARKER

MARKER = EXPORT_MARKER
"""Says what an exported folder holds, and that we may replace it."""


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary sibling to write into; it takes the folder's place at the end."""
    path = path.absolute()
    _refuse_strangers(path)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        os.sync()  # once for thousands of files: asking for each takes milliseconds
        _put_in_place(temporary, path)
    except OSError as error:
        raise InputError(
            f"{place(path)} cannot be written ({reason(error)}): {write_advice(error)}"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sign_folder(folder: Path, format_name: str, notes: dict[str, Any]) -> None:
    """State what the folder holds."""
    write_json(folder / MARKER, {"format": format_name, "version": __version__, **notes})


def _refuse_strangers(path: Path) -> None:
    if is_file(path):
        raise InputError(f"{place(path)} is a file: give a folder that does not exist yet")
    if is_folder(path) and any(path.iterdir()) and not is_file(path / MARKER):
        raise InputError(
            f"{place(path)} is a folder that GeoWeaver did not export: give one that does not exist yet"
        )


def _put_in_place(temporary: Path, path: Path) -> None:
    if not is_folder(path):
        temporary.replace(path)
        return
    old = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.old")
    path.replace(old)
    temporary.replace(path)
    shutil.rmtree(old, ignore_errors=True)

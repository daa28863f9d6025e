"""What a user can cause and mend; the command line prints one line of it and exits with 2."""

import sys
from pathlib import Path

_CLONE = Path(__file__).resolve().parents[2]
"""Where the sources lie, if this is no installed copy."""


class GeoWeaverError(Exception):
    """Something the user can mend: the message says what, where, and what to do."""


class InputError(GeoWeaverError):
    """A file, folder or value given by the user cannot be used as it is."""


class FormatError(InputError):
    """A file does not hold what its format promises."""


class ConfigError(GeoWeaverError):
    """Options that contradict each other or lie outside their range."""


class MissingExtraError(GeoWeaverError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}: install it with  {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """The command that adds an optional part to this very environment, from a clone or without one."""
    clone = (_CLONE / "pyproject.toml").is_file()
    what = f"-e '{_shown(_CLONE)}[{extra}]'" if clone else f"'geoweaver[{extra}]'"
    return pip_install(what)


def pip_install(what: str) -> str:
    """The command that installs something into this very environment."""
    return f"{_shown(Path(sys.executable))} -m pip install {what}"


def _shown(path: Path) -> Path:
    """Short where it lies below the folder that the user is in."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class DegenerateError(GeoWeaverError):
    """The data do not determine what was asked for (too few points, no common frames, no motion)."""


class StoreError(GeoWeaverError):
    """A run folder is locked, unreadable or was written by something else."""

"""What a user can cause and mend; the command line prints one line of it and exits with 2."""


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
        super().__init__(f"{purpose} needs {library}: install it with  pip install 'geoweaver[{extra}]'")


class DegenerateError(GeoWeaverError):
    """The data do not determine what was asked for (too few points, no common frames, no motion)."""


class StoreError(GeoWeaverError):
    """A run folder is locked, unreadable or was written by something else."""

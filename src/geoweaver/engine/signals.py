"""Signals are answered by us, not by a library that prints its stack."""

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | signal.Handlers


def answer_signal(kind: signal.Signals, handler: Handler) -> None:
    """Set a handler that stays: pycolmap puts its own in place when it is imported, so that comes first."""
    with suppress(ImportError):
        import pycolmap  # noqa: F401
    signal.signal(kind, handler)

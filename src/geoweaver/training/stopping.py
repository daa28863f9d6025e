"""Ctrl-C and SIGTERM wait for the iteration that is going on; a second one does not."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopRequest:
    """Which signal came, and how it would have been answered."""

    def __init__(self) -> None:
        self.kind: signal.Signals | None = None
        self.before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.kind is not None

    def answer(self) -> None:
        """End as the signal would have ended the program."""
        assert self.kind is not None
        handler = self.before[self.kind]
        if callable(handler):
            handler(self.kind, None)
        raise KeyboardInterrupt


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Signals are noted in here, once each; outside the main thread none can be."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(kind: int, frame: FrameType | None) -> None:
        request.kind = signal.Signals(kind)
        for other, handler in request.before.items():
            signal.signal(other, handler)

    request.before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    for kind in request.before:
        signal.signal(kind, note)
    try:
        yield request
    finally:
        for kind, handler in request.before.items():
            signal.signal(kind, handler)

"""How SIGTERM ends a command: as quietly as Ctrl-C, with everything closed on the way out."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """Somebody asked this process to end."""


@contextmanager
def raised_when_terminated() -> Iterator[None]:
    """SIGTERM raises `Terminated` in here, once; only a program's main thread can handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def outlast_libraries() -> None:
    """Keep what is set for SIGTERM although pycolmap, imported later, would replace it."""
    from geoweaver.engine.signals import answer_signal

    if signal.getsignal(signal.SIGTERM) is _raise:
        answer_signal(signal.SIGTERM, _raise)


def _raise(kind: int, frame: FrameType | None) -> None:
    # a second one must not disturb how the first is answered
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated

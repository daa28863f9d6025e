"""Seconds and memory per part of a run."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)
SAMPLE_SECONDS = 0.2
"""How often memory is looked at; peaks of this process between two looks are known all the same."""
MIB = 2**20
_PROC = Path("/proc")


@dataclass(frozen=True)
class Lap:
    """One part of a run."""

    name: str
    seconds: float
    peak_rss_mib: float | None
    """Most that this process and its workers held together; None where the system does not tell."""
    notes: tuple[str, ...] = ()


class Clock:
    """Runs from its making; every lap has a name. As a context it also watches memory between laps."""

    def __init__(self) -> None:
        self.begun = self.last = time.perf_counter()
        self.laps: list[Lap] = []
        self._peak, self._high, self._lock = 0, _high_water(), threading.Lock()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> "Clock":
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._watcher.join()

    def lap(self, name: str, notes: tuple[str, ...] = ()) -> None:
        """What took so long and so much since the last lap, and what there is to know of it."""
        now, peak = time.perf_counter(), self._take_peak()
        self.laps.append(Lap(name, now - self.last, peak / MIB if peak else None, notes))
        log.info("%s: done in %.1f s%s", name, now - self.last, _told(peak))
        self.last = now

    def total(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begun

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            with self._lock:
                self._peak = max(self._peak, resident())

    def _take_peak(self) -> int:
        """Of the time since it was last taken."""
        with self._lock:
            high = _high_water()
            # the system remembers its own peaks: one that is new happened just now
            peak = max(self._peak, resident(), high if high > self._high else 0)
            self._peak, self._high = 0, high
        return peak


def _told(peak: int) -> str:
    return f", with up to {peak / MIB:.0f} MiB of memory" if peak else ""


def resident() -> int:
    """Bytes that this process and all that it started hold in memory; 0 where the system does not tell."""
    return sum(_held(pid) for pid in _family(str(os.getpid())))


def _family(pid: str) -> Iterator[str]:
    """A process and its descendants; workers are children of the server that they are forked from."""
    yield pid
    try:
        children = [c for task in (_PROC / pid / "task").iterdir() for c in _words(task / "children")]
    except OSError:
        return  # it has ended meanwhile
    for child in children:
        yield from _family(child)


def _held(pid: str) -> int:
    words = _words(_PROC / pid / "statm")
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if len(words) > 1 else 0


def _high_water() -> int:
    """The most that this process alone ever held, in bytes."""
    words = _words(_PROC / "self" / "status")
    return 1024 * int(words[words.index("VmHWM:") + 1]) if "VmHWM:" in words else 0


def _words(path: Path) -> list[str]:
    """Nothing where the file, or the process that it tells of, is gone."""
    try:
        return path.read_text().split()
    except OSError:
        return []

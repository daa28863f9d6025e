"""Seconds and memory per part of a run."""

import logging
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoweaver.errors import StoreError
from geoweaver.store import Cost, Costs, digest_of

log = logging.getLogger(__name__)
SAMPLE_SECONDS = 0.2
"""How often memory is looked at; peaks of this process between two looks are known all the same."""
NOTE_SECONDS = 5.0
"""How often it is written down what the part under way has cost: all that a killed attempt forgets."""
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
    largest: int = 0
    """Most bytes that one process held until its end."""


class Clock:
    """Runs from its making; every lap has a name. As a context it also watches memory between laps."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.laps: list[Lap] = []
        self._costs: Costs | None = None
        self._peak, self._high, self._lock = 0, _high_water(), threading.RLock()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> "Clock":
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._watcher.join()

    @contextmanager
    def kept_in(self, costs: Costs) -> Iterator[None]:
        """Laps add to what earlier attempts took, and what this one takes is known even if it is killed."""
        self._costs = costs
        try:
            yield
        except BaseException:
            self._note()
            raise
        finally:
            self._costs = None

    def lap(self, name: str, made: Any = None, notes: tuple[str, ...] = ()) -> None:
        """What took so long and so much since the last lap; `made` tells it from what other options make."""
        with self._lock:
            now, peak = time.perf_counter(), self._take_peak()
            cost = Cost(now - self.last, peak, _largest())
            log.info("%s: done in %.1f s%s", name, cost.seconds, _told(peak))
            self.last = now
            if self._costs is not None:
                cost = self._costs.finish(digest_of([name, made]), cost)
        self.laps.append(Lap(name, cost.seconds, cost.peak / MIB if cost.peak else None, notes, cost.largest))

    def total(self) -> float:
        """Seconds of all laps."""
        return sum(lap.seconds for lap in self.laps)

    def largest(self) -> int:
        """Most bytes that one process held in all laps."""
        return max((lap.largest for lap in self.laps), default=_largest())

    def _watch(self) -> None:
        noted = time.perf_counter()
        while not self._stop.wait(SAMPLE_SECONDS):
            with self._lock:
                self._peak = max(self._peak, resident())
            if time.perf_counter() - noted > NOTE_SECONDS:
                self._note()
                noted = time.perf_counter()

    def _note(self) -> None:
        # a full disk is told of by what the run itself cannot write
        with self._lock, suppress(StoreError):
            if self._costs is not None:
                self._costs.note(Cost(time.perf_counter() - self.last, self._peak, _largest()))

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


def _largest() -> int:
    """Most bytes that this process or one of its ended workers held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


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

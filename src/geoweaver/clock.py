"""Seconds per part of a run."""

import logging
import time

from geoweaver.datatypes import StageReport

log = logging.getLogger(__name__)


class Clock:
    """Runs from its making; every lap has a name."""

    def __init__(self) -> None:
        self.begun = self.last = time.perf_counter()
        self.laps: list[StageReport] = []

    def lap(self, name: str, notes: tuple[str, ...] = ()) -> None:
        """What took so long since the last lap, and what there is to know of it."""
        now = time.perf_counter()
        self.laps.append(StageReport(name, why_stopped="done", seconds=now - self.last, notes=notes))
        log.info("%s: %.1f s", name, now - self.last)
        self.last = now

    def total(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begun

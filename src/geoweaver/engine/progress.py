"""One line of progress per stage, on the terminal only."""

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Advance = Callable[[int], None]
_on_screen = False
_WINDOW = 30.0
"""Seconds that a speed is told of, or half of the stage where that is longer: pieces may come in bursts."""


@contextmanager
def stage_progress(title: str, total: int | None) -> Iterator[Advance]:
    """A stage's progress on stderr while it runs; silent where that is no terminal, or without a title.

    Without a total the line shows that it lives, and for how long, and goes when it is done.
    """
    global _on_screen
    if not title or total == 0 or _on_screen or not sys.stderr.isatty():
        yield lambda pieces: None
        return
    pace = Pace(time.monotonic())
    progress = _line(pace, passing=total is None)
    task = progress.add_task(title, total=total)
    _on_screen = True
    try:
        with progress:

            def advance(pieces: int) -> None:
                pace.add(pieces, time.monotonic())
                progress.advance(task, pieces)

            yield advance
    finally:
        _on_screen = False


class Pace:
    """How fast pieces come; a burst, or pieces that an earlier run had kept, do not make it fast for long."""

    def __init__(self, begun: float) -> None:
        self._counts, self._times = [0], [begun]

    def add(self, pieces: int, now: float) -> None:
        """Some pieces are done."""
        # the count first: the line is drawn by another thread
        self._counts.append(self._counts[-1] + pieces)
        self._times.append(now)

    def per_second(self, now: float) -> float | None:
        """Pieces a second of late; None where nothing came."""
        begun = self._times[0]
        since = max(now - max(_WINDOW, (now - begun) / 2), begun)
        done = self._counts[-1] - self._counts[bisect_right(self._times, since) - 1]
        return done / (now - since) if done and now > since else None

    def seconds_left(self, total: float | None, now: float) -> float | None:
        """At this speed; None where that cannot be told."""
        speed = self.per_second(now)
        return None if total is None or not speed else (total - self._counts[-1]) / speed


def rate(pieces_per_second: float | None) -> str:
    """A speed as people say it: pieces a second, or seconds a piece where that is slow."""
    if not pieces_per_second:
        return ""
    if pieces_per_second >= 1:
        return f"{pieces_per_second:.1f}/s"
    return f"{1 / pieces_per_second:.1f} s each"


def clock(elapsed: float | None, remaining: float | None) -> str:
    """How long it still takes, or has taken where that cannot be told yet: a still bar looks dead."""
    seconds = int(remaining if remaining is not None else elapsed or 0)
    minutes = f"{seconds // 3600}:{seconds // 60 % 60:02}" if seconds >= 3600 else f"{seconds // 60}"
    return f"{minutes}:{seconds % 60:02} {'left' if remaining is not None else 'so far'}"


def _line(pace: Pace, passing: bool) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task
    from rich.text import Text

    class Count(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(rate(pace.per_second(time.monotonic())))

    class Clock(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = pace.seconds_left(task.total, time.monotonic())
            return Text("" if task.finished else clock(task.elapsed, left))

    columns = ("{task.description}", BarColumn(), Count(), Rate(), Clock())
    return Progress(*columns, console=Console(stderr=True), transient=passing)

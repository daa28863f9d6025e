"""One line of progress per stage, on the terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Advance = Callable[[int], None]
_on_screen = False


@contextmanager
def stage_progress(title: str, total: int | None) -> Iterator[Advance]:
    """A stage's progress on stderr while it runs; silent where that is no terminal, or without a title."""
    global _on_screen
    if not title or _on_screen or not sys.stderr.isatty():
        yield lambda pieces: None
        return
    progress = _line()
    task = progress.add_task(title, total=total)
    _on_screen = True
    try:
        with progress:
            yield lambda pieces: progress.advance(task, pieces)
    finally:
        _on_screen = False


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


def _line() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(rate(task.finished_speed or task.speed))

    class Clock(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.finished else clock(task.elapsed, task.time_remaining))

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), Rate(), Clock())
    return Progress(*columns, console=Console(stderr=True))

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


def _line() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(rate(task.finished_speed or task.speed))

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))

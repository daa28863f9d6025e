"""Map a function over pieces in local processes: in order, and the same bytes with any number of workers."""

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, TypeVar

from geoweaver.engine.crew import Crew
from geoweaver.engine.parcel import pack
from geoweaver.engine.progress import stage_progress
from geoweaver.engine.threads import one_thread, threads_allowed, threads_of_pieces

P = TypeVar("P")
R = TypeVar("R")
Initializer = Callable[[], None] | None

LOOK_AHEAD = 4
"""Pieces per worker that may be under way or waiting for an earlier one: what bounds the memory."""


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_pieces(
    function: Callable[[P], R],
    pieces: Iterable[P],
    workers: int = 1,
    *,
    title: str = "",
    initializer: Initializer = None,
    look_ahead: int | None = None,
) -> Iterator[R]:
    """Results in the order of the pieces; 0 or 1 workers compute here, more in processes of one thread each.

    The last pieces, if fewer than the workers, may use the idle ones' cores through `map_in_threads`.

    The function must be importable, or the script that defines it guarded by `if __name__ == "__main__":`.
    The initializer runs once in each worker before its first piece.
    """
    total = len(pieces) if isinstance(pieces, Sized) else None
    # Inside a worker there is one core for us: nested maps stay where they are.
    cores = 1 if multiprocessing.current_process().daemon else workers
    workers = cores if total is None else min(cores, total)
    todo = zip(pieces, repeat(1) if total is None else threads_of_pieces(total, cores), strict=False)
    task: _InThreads[P, R] = _InThreads(function)
    if workers <= 1:
        results = _here(task, todo, initializer)
    else:
        results = _in_processes(task, todo, workers, initializer, look_ahead or LOOK_AHEAD * workers)
    with closing(results), stage_progress(title, total) as advance:
        for result in results:
            advance(1)
            yield result


@dataclass(frozen=True)
class LocalEngine:
    """`map_pieces` with a fixed number of workers."""

    workers: int = 1

    def map(
        self,
        function: Callable[[P], R],
        pieces: Iterable[P],
        *,
        title: str = "",
        initializer: Initializer = None,
    ) -> Iterator[R]:
        """Results in the order of the pieces."""
        return map_pieces(function, pieces, self.workers, title=title, initializer=initializer)


@dataclass(frozen=True)
class _InThreads(Generic[P, R]):
    """A function that is told with each piece how many threads it may use."""

    function: Callable[[P], R]

    def __call__(self, piece: tuple[P, int]) -> R:
        with threads_allowed(piece[1]):
            return self.function(piece[0])


def _here(
    function: Callable[[P], R], pieces: Iterable[P], initializer: Initializer
) -> Generator[R, None, None]:
    if initializer is not None:
        with one_thread():
            initializer()
    for piece in pieces:
        with one_thread():
            result = function(piece)
        yield result


def _in_processes(
    function: Callable[[P], R], pieces: Iterable[P], workers: int, initializer: Initializer, look_ahead: int
) -> Generator[R, None, None]:
    """Hand pieces to idle workers in order and deliver in order; an error waits for its turn too."""
    crew = Crew(pack((function, initializer)), workers)
    todo, turn, failed = enumerate(pieces), 0, False
    try:
        while True:
            while crew.idle and not failed and crew.handed < turn + look_ahead:
                piece = next(todo, None)
                if piece is None:
                    break
                crew.hand(*piece)
            if turn in crew.early:
                result, error = crew.early.pop(turn)
                if error is not None:
                    raise error
                yield result
                turn += 1
            elif crew.busy:
                failed |= crew.receive()
            else:
                return
    finally:
        crew.end()

"""Threads within a piece: one for torch, and more of our own where workers would else be idle."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

_THREADS = ContextVar("threads", default=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """The same bytes everywhere, for threads sum in another order; small tensors are also faster so."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def threads_allowed(count: int) -> Iterator[None]:
    """So many threads for `map_in_threads` in here."""
    before = _THREADS.set(count)
    try:
        yield
    finally:
        _THREADS.reset(before)


def map_in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Results in order, from as many threads as this piece may use; worth it where compiled code lets go."""
    count = _THREADS.get()
    if count <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, items))


def threads_of_pieces(pieces: int, workers: int) -> Iterator[int]:
    """Threads for each piece: the last ones, fewer than there are workers, share the workers among them."""
    last = pieces % max(1, workers)
    for piece in range(pieces):
        yield workers // last if last and piece >= pieces - last else 1

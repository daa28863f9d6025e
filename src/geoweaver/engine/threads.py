"""Threads within a piece: one for torch and BLAS, and more of our own where workers would else be idle."""

import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

_THREADS = ContextVar("threads", default=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """The same bytes everywhere, for threads sum in another order; small tensors are also faster so."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_blas_thread():
            yield
    finally:
        torch.set_num_threads(before)


_open: list[Any] = []
"""Blocks that are open, the first of which knows how many threads there were."""
_opening = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread for numpy's and scipy's linear algebra: BLAS cuts its sums by the number of threads.

    Blocks may overlap in time: the owner's numbers come back when the last of them ends.
    """
    with _opening:
        # each block limits anew: a library may count threads by the one that asks
        limits = _libraries().limit(limits=1, user_api="blas")
        _open.append(_open[0] if _open else limits)
    try:
        yield
    finally:
        with _opening:
            first = _open.pop()
            if not _open:
                first.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    """Every BLAS that numpy and scipy brought."""
    for module in ("numpy.linalg", "scipy.linalg"):
        importlib.import_module(module)
    return ThreadpoolController()


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

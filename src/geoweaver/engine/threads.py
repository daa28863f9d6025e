"""Threads within a piece: one for torch and BLAS, and more of our own where workers would else be idle."""

import ctypes
import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

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
        with one_blas_thread():
            yield
    finally:
        torch.set_num_threads(before)


_LINKED = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
"""Modules that are linked to a BLAS; numpy and scipy each bring an OpenBLAS of their own."""
_entered: list[list[int]] = []
"""The threads that each library had when the outermost block began, once per block that is open."""
_entering = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread for numpy's and scipy's linear algebra: OpenBLAS cuts its sums by the number of threads."""
    with _entering:
        _entered.append(_entered[0] if _entered else [count() for count, _ in _blas()])
        _set_blas([1] * len(_blas()))
    try:
        yield
    finally:
        with _entering:
            before = _entered.pop()
            if not _entered:
                _set_blas(before)


def _set_blas(threads: list[int]) -> None:
    for (_, allow), number in zip(_blas(), threads, strict=True):
        allow(number)


@cache
def _blas() -> tuple[tuple[Any, Any], ...]:
    """How to ask and to tell each OpenBLAS its threads; empty where another BLAS is at work."""
    found = []
    for module in _LINKED:
        # a name is also looked for in the libraries that the module was linked to
        library = ctypes.CDLL(importlib.import_module(module).__file__)
        for prefix, suffix in ((p, s) for p in ("scipy_", "") for s in ("64_", "")):
            ask, tell = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
            if hasattr(library, ask) and hasattr(library, tell):
                found.append((getattr(library, ask), getattr(library, tell)))
                break
    return tuple(found)


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

"""Batches read ahead by threads while the network learns; the order is that of the steps."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def read_ahead(read: Callable[[int], T], steps: range, threads: int) -> Iterator[T]:
    """read(step) for each step; with 0 threads when it is asked for, else some steps before."""
    if threads < 1:
        yield from map(read, steps)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[T]] = deque()
    ahead = iter(steps)
    try:
        for _ in steps:
            while len(waiting) <= threads and (step := next(ahead, None)) is not None:
                waiting.append(pool.submit(read, step))
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

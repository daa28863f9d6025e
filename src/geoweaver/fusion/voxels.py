"""Sums per voxel in flat arrays sorted by key: merged block by block, coarsened when there are too many."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numba import njit

_BITS = 21
_HALF = 1 << (_BITS - 1)
"""Voxels from the origin to either side that a key can name."""
_COARSER = 1.25
"""Factor by which voxels grow when there are too many."""
_ROOM = 1.5
"""Voxels kept while merging, in targets."""
_WAITING = 0.25
"""Rows that wait to be merged together, in targets."""


@dataclass(frozen=True)
class Heap:
    """Voxels sorted by key with weighted sums of what lies in them: 72 bytes each."""

    key: Int[np.ndarray, "v"]
    place: Float[np.ndarray, "v 4"]
    """Weight, weight times x, y, z from the grid's origin; float64."""
    look: Float[np.ndarray, "v 8"]
    """Weight times red, green, blue, normal, confidence; number of points; float32."""

    def __len__(self) -> int:
        return len(self.key)

    def __getitem__(self, rows: np.ndarray) -> "Heap":
        return Heap(self.key[rows], self.place[rows], self.look[rows])

    @property
    def mean(self) -> Float[np.ndarray, "v 3"]:
        return np.asarray(self.place[:, 1:] / self.place[:, :1])


def empty_heap() -> Heap:
    """No voxel at all."""
    return Heap(np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros((0, 8), np.float32))


def collect(place: Float[np.ndarray, "n 4"], look: Float[np.ndarray, "n 8"], size: float) -> Heap:
    """Sum rows that lie in the same voxel; what no key can reach is dropped."""
    key = np.empty(len(place), np.int64)
    _keys(place, size, key)
    order = np.argsort(key, kind="stable")
    order = order[np.searchsorted(key[order], 0) :]
    return _summed(key[order], place[order], look[order])


def merge(heaps: Sequence[Heap]) -> Heap:
    """One heap of several with voxels of the same size, summed in their order."""
    key = np.concatenate([heap.key for heap in heaps])
    order = np.argsort(key, kind="stable")
    # one array after the other: their unsorted copies need not be there together
    place = np.concatenate([heap.place for heap in heaps])[order]
    look = np.concatenate([heap.look for heap in heaps])[order]
    return _summed(key[order], place, look)


def count_voxels(heap: Heap, size: float) -> int:
    """How many voxels of this size the heap would fill."""
    key = np.empty(len(heap), np.int64)
    _keys(heap.place, size, key)
    key.sort()
    return int((key[1:] != key[:-1]).sum()) + bool(len(key))


def _summed(key: np.ndarray, place: np.ndarray, look: np.ndarray) -> Heap:
    """Sum neighbours of the same key, in place."""
    n = _sum_runs(key, place, look)
    for array in (key, place, look):
        array.resize((n, *array.shape[1:]), refcheck=False)
    return Heap(key, place, look)


@njit(cache=True)
def _keys(place: Any, size: float, key: Any) -> None:
    for i in range(len(place)):
        code, inside = np.int64(0), True
        for k in range(1, 4):
            cell = np.floor(place[i, k] / place[i, 0] / size)
            if not (cell >= -_HALF and cell < _HALF):
                inside = False
                break
            code = (code << _BITS) | np.int64(cell + _HALF)
        key[i] = code if inside else -1


@njit(cache=True)
def _sum_runs(key: Any, place: Any, look: Any) -> Any:
    last = -1
    for i in range(len(key)):
        if last >= 0 and key[last] == key[i]:
            for k in range(place.shape[1]):
                place[last, k] += place[i, k]
            for k in range(look.shape[1]):
                look[last, k] += look[i, k]
        else:
            last += 1
            key[last] = key[i]
            place[last] = place[i]
            look[last] = look[i]
    return last + 1


@dataclass
class Merger:
    """Takes heaps of the smallest voxels in order and keeps about one and a half targets of voxels."""

    size: float
    target: int
    heap: Heap = field(default_factory=empty_heap)
    waiting: list[Heap] = field(default_factory=list)
    finest: float = 0.0

    def __post_init__(self) -> None:
        self.finest = self.size

    def add(self, heap: Heap) -> None:
        """Take a block's voxels; merging waits until it is worth it."""
        self.waiting.append(self._at_size(heap))
        if sum(len(h) for h in self.waiting) > _WAITING * self.target:
            self._merge()

    def finish(self) -> Heap:
        """No more than the target, as close to it as voxels of one size allow."""
        self._merge()
        if len(self.heap) <= self.target:
            return self.heap
        low, high = 1.0, _COARSER
        while count_voxels(self.heap, self.size * high) > self.target:
            low, high = high, high * _COARSER
        for _ in range(8):
            middle = (low * high) ** 0.5
            many = count_voxels(self.heap, self.size * middle) > self.target
            low, high = (middle, high) if many else (low, middle)
        self.size *= high
        self.heap = collect(self.heap.place, self.heap.look, self.size)
        return self.heap

    def _merge(self) -> None:
        self.heap = merge([self.heap, *self.waiting])
        self.waiting = []
        while len(self.heap) > _ROOM * self.target:
            self.size *= _COARSER
            self.heap = collect(self.heap.place, self.heap.look, self.size)

    def _at_size(self, heap: Heap) -> Heap:
        return heap if self.size == self.finest else collect(heap.place, heap.look, self.size)

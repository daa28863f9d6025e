"""Descriptors that are each other's nearest and stand out from the next, compiled."""

from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int, Int32, UInt8
from numba import njit
from torch import Tensor

_NOTHING = np.float32(-2)
"""Less than any cosine."""
_BLOCK = 64
"""Columns whose best is found together, in vector instructions."""


def mutual_nearest(
    first: UInt8[Tensor, "n d"], second: UInt8[Tensor, "m d"], ratio: float, farthest: float = 2.0
) -> Int[np.ndarray, "k 2"]:
    """Rows of descriptors that are each other's nearest, `ratio` nearer than the second, none too far.

    Distances are those of descriptors of length one; the answer is the same on any number of threads.
    """
    if not len(first) or not len(second):
        return np.zeros((0, 2), np.int64)
    nearest = _nearest(
        products(first, second).numpy(), _shrinkage(first), _shrinkage(second), ratio, farthest
    )
    row = np.flatnonzero(nearest >= 0)
    return np.stack([row, nearest[row]], 1)


def products(first: UInt8[Tensor, "n d"], second: UInt8[Tensor, "m d"]) -> Int32[Tensor, "n m"]:
    """All scalar products of descriptors, exactly."""
    if not _bytes_multiply_exactly():
        # sums of products of bytes are whole numbers that float32 holds
        return (first.float() @ second.float().T).int()
    return _byte_products(first, second)


def _byte_products(first: UInt8[Tensor, "n d"], second: UInt8[Tensor, "m d"]) -> Int32[Tensor, "n m"]:
    """By the processor's instructions for signed bytes: four times as fast as in float32."""
    # flipping the highest bit takes 128 off: (a - 128)(b - 128) lacks 128 (a + b - 128)
    lower = [(d ^ 128).view(torch.int8) for d in (first, second)]
    lacking = [128 * (d.sum(1, dtype=torch.int32) - 64 * d.shape[1]) for d in (first, second)]
    found = torch._int_mm(lower[0], lower[1].T.contiguous())
    return found.add_(lacking[0][:, None]).add_(lacking[1])


@cache
def _bytes_multiply_exactly() -> bool:
    """Whether this machine's byte products can be had and hold: on old processors they may overflow."""
    generator = torch.Generator().manual_seed(0)
    some = torch.randint(0, 256, (64, 128), generator=generator, dtype=torch.uint8)
    some[:8], some[8:16] = 255, 0
    try:
        found = _byte_products(some, some[:48])
    except (AttributeError, RuntimeError):
        return False
    return bool(torch.equal(found, (some.double() @ some[:48].double().T).int()))


def _shrinkage(descriptors: UInt8[Tensor, "n d"]) -> Float32[np.ndarray, "n"]:
    """What makes each of length one."""
    return np.asarray(descriptors.float().square().sum(1).sqrt().clamp(min=1e-6).reciprocal().numpy())


@njit(cache=True, nogil=True)
def _nearest(products: Any, shrink_row: Any, shrink_column: Any, ratio: float, farthest: float) -> Any:
    """For each row the column that is its best, passes both tests and has it as its best; else -1."""
    rows, columns = products.shape
    cosine, highest = np.empty(columns, np.float32), np.full(columns, _NOTHING)
    best, at = np.empty(rows, np.float32), np.empty(rows, np.int64)
    tops = np.empty((columns + _BLOCK - 1) // _BLOCK, np.float32)
    for i in range(rows):
        for k in range(len(tops)):
            part = slice(k * _BLOCK, min((k + 1) * _BLOCK, columns))
            tops[k] = _best(
                products[i, part], shrink_column[part], shrink_row[i], cosine[part], highest[part]
            )
        top = np.argmax(tops)
        best[i] = tops[top]
        found = top * _BLOCK
        while cosine[found] != best[i]:
            found += 1
        cosine[found] = _NOTHING
        tops[top] = cosine[top * _BLOCK : min((top + 1) * _BLOCK, columns)].max()
        near2, next2 = max(2 - 2 * float(best[i]), 0.0), max(2 - 2 * float(tops.max()), 0.0)
        stands_out = near2 < ratio * ratio * next2 and near2 < farthest * farthest
        at[i] = found if stands_out else -1
    _keep_mutual(best, highest, at)
    return at


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _best(products: Any, shrink: Any, own: Any, cosine: Any, highest: Any) -> Any:
    """Cosines of one row with some columns, the largest of them, and what each column has seen at most."""
    best = _NOTHING
    for j in range(len(products)):
        value = np.float32(products[j]) * shrink[j] * own
        cosine[j] = value
        highest[j] = max(highest[j], value)
        best = max(best, value)
    return best


@njit(cache=True, nogil=True)
def _keep_mutual(best: Any, highest: Any, at: Any) -> None:
    """Drop rows that are not their column's best, or not the first of them."""
    taken = np.zeros(len(highest), np.bool_)
    for i in range(len(at)):
        if at[i] >= 0 and (best[i] != highest[at[i]] or taken[at[i]]):
            at[i] = -1
        elif at[i] >= 0:
            taken[at[i]] = True

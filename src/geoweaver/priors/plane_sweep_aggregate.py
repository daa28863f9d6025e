"""Semi-global aggregation of a cost volume along scan lines, easier to bend where the image has an edge."""

from typing import Any

import numpy as np
from numba import njit

_BIG = np.int16(8000)
_FINITE = np.int16(1)
"""Price of every depth but the sky's, in eighths of a census bit."""


@njit(cache=True, nogil=True)
def _step(cost: Any, before: Any, p1: Any, p2: Any, after: Any, total: Any) -> None:
    """One pixel of one path: its cost plus the cheapest way from the pixel before; planes padded by one."""
    planes = cost.shape[0]
    lowest = before[1]
    for d in range(2, planes + 1):
        lowest = min(lowest, before[d])
    jump = np.int16(lowest + p2)
    for d in range(planes):
        near = min(before[d], before[d + 2]) + p1
        best = min(min(before[d + 1], np.int16(near)), jump)
        value = np.int16(cost[d] + best - lowest)
        after[d + 1] = value
        total[d] += value


@njit(cache=True, nogil=True)
def _jump_cost(a: Any, b: Any, p1: Any, p2: Any, scale: Any) -> Any:
    """The price of a depth jump between two neighbours falls with their difference in brightness."""
    return np.int16(max(p2 / (np.float32(1.0) + abs(a - b) / scale), np.float32(p1) + np.float32(1.0)))


@njit(cache=True, nogil=True)
def aggregate(volume: Any, image: Any, p1: int, p2: int, edge: float, total: Any) -> None:
    """Add the path costs of eight directions of a volume (H W D, int16) to total."""
    height, width, planes = volume.shape
    low, scale, high = np.int16(p1), np.float32(edge), np.float32(p2)
    before = np.full((4, width + 2, planes + 2), _BIG, np.int16)
    after = np.full((4, width + 2, planes + 2), _BIG, np.int16)
    for backward in range(2):
        before[:, :, 1:-1] = 0
        after[:, :, 1:-1] = 0
        for row in range(height):
            y = height - 1 - row if backward else row
            y_before = y + 1 if backward else y - 1
            for column in range(width):
                x = width - 1 - column if backward else column
                x_before = x + 1 if backward else x - 1
                cost, out = volume[y, x], total[y, x]
                here = image[y, x]
                inside = 0 <= x_before < width
                p = _jump_cost(here, image[y, x_before], low, high, scale) if inside else np.int16(high)
                _step(cost, after[0, x_before + 1], low, p, after[0, x + 1], out)
                for path in range(1, 4):
                    x_up = x + path - 2
                    p = np.int16(high)
                    if row > 0 and 0 <= x_up < width:
                        p = _jump_cost(here, image[y_before, x_up], low, high, scale)
                    _step(cost, before[path, x_up + 1], low, p, after[path, x + 1], out)
            before, after = after, before


@njit(cache=True, nogil=True)
def pick_planes(total: Any, plane: Any, margin: Any, lowest: Any, volume: Any) -> None:
    """The best plane of each pixel with a parabola's fraction, and how far above it the next valley lies."""
    height, width, planes = total.shape
    for y in range(height):
        for x in range(width):
            t = total[y, x]
            best = 0
            for d in range(1, planes):
                if t[d] < t[best]:
                    best = d
            other = np.int16(32000)
            for d in range(planes):
                if abs(d - best) > 2 and t[d] < other:
                    other = t[d]
            fraction = np.float32(0)
            if 0 < best < planes - 1:
                left, right = np.float32(t[best - 1] - t[best]), np.float32(t[best + 1] - t[best])
                if left + right > 0:
                    fraction = np.float32(0.5) * (left - right) / (left + right)
            plane[y, x] = np.float32(best) + fraction
            margin[y, x] = np.float32(other - t[best])
            lowest[y, x] = volume[y, x, best]


@njit(cache=True, nogil=True)
def pull_to_prior(volume: Any, prior: Any, nearness: Any, weight: Any, cell: int) -> None:
    """Make planes dearer the farther they are from what the sparse points near a cell suggest.

    Not the first, the sky's: a roof's points say nothing of what is blank beside them. Where images and
    surroundings tell nothing, it is believed rather than any surface.
    """
    height, width, planes = volume.shape
    for y in range(height):
        for x in range(width):
            w = weight * nearness[y // cell, x // cell] / np.float32(8)
            suggested = prior[y // cell, x // cell]
            for d in range(1, planes):
                away = min(abs(np.float32(d) - suggested), np.float32(8))
                volume[y, x, d] += np.int16(w * away) + _FINITE

"""From the size at which planes are swept to that of the depth maps: every pixel follows its own surface."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numba import njit

from geoweaver.priors.plane_sweep_planes import Planes

_FARTHEST = 2.0
"""Factor beyond which no plane is followed between two pixels."""


@dataclass(frozen=True)
class Finer:
    """For each pixel of a larger picture the pixel of the smaller one that shows the same surface."""

    row: Int[np.ndarray, "H W"]
    column: Int[np.ndarray, "H W"]
    scale: tuple[float, float]
    """Small pixels per large one, across and down."""

    def __call__(self, values: Float[np.ndarray, "h w"]) -> Float[np.ndarray, "H W"]:
        return np.asarray(values[self.row, self.column])

    def planes(self, planes: Planes) -> Planes:
        """The same planes, followed from the small pixels' centres to the large ones'."""
        height, width = self.row.shape
        right = (np.arange(width) + 0.5) * self.scale[0] - 0.5 - self.column
        below = ((np.arange(height) + 0.5) * self.scale[1] - 0.5)[:, None] - self.row
        start, across, down = self(planes.inverse), self(planes.across), self(planes.down)
        inverse = np.clip(start + across * right + down * below, start / _FARTHEST, start * _FARTHEST)
        return Planes(inverse, across * self.scale[0], down * self.scale[1], self(planes.weight))


def finer(small: Float[np.ndarray, "h w"], large: Float[np.ndarray, "H W"]) -> Finer:
    """Of the four small pixels around each large one, the one nearest in brightness."""
    row, column = np.empty(large.shape, np.int64), np.empty(large.shape, np.int64)
    _most_alike(small, large, row, column)
    return Finer(row, column, (small.shape[1] / large.shape[1], small.shape[0] / large.shape[0]))


@njit(cache=True, nogil=True)
def _most_alike(small: Any, large: Any, row: Any, column: Any) -> None:
    height, width = large.shape
    for y in range(height):
        v = (y + 0.5) * small.shape[0] / height - 0.5
        for x in range(width):
            u = (x + 0.5) * small.shape[1] / width - 0.5
            least = np.inf
            for j in (int(np.floor(v)), int(np.floor(v)) + 1):
                for i in (int(np.floor(u)), int(np.floor(u)) + 1):
                    j, i = min(max(j, 0), small.shape[0] - 1), min(max(i, 0), small.shape[1] - 1)
                    # among equals the nearest
                    away = abs(small[j, i] - large[y, x]) + 4 * (abs(j - v) + abs(i - u))
                    if away < least:
                        least = away
                        row[y, x], column[y, x] = j, i

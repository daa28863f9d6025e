"""Depth and confidence of an observation at matched pixels, with only a few chunks in memory at a time."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import njit
from torch import Tensor

from geoweaver.datatypes import ChunkPrior, Observations
from geoweaver.errors import StoreError
from geoweaver.geometry.camera import pixel_centres
from geoweaver.matching.weights import confidence_quantiles

ReadPrior = Callable[[int], ChunkPrior]

_MAX_JUMP = 0.2
"""Relative depth step between neighbouring pixels that is still one surface, seen at a grazing angle."""


class Readings:
    """Maps of observations; asks for a chunk once as long as requests stay among few chunks."""

    def __init__(self, observations: Observations, read: ReadPrior, cached_chunks: int) -> None:
        self._observations = observations
        self._prior = lru_cache(maxsize=cached_chunks)(read)
        self._quantiles: dict[int, np.ndarray] = {}

    def maps(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """Depth and confidence (n H W) of a whole chunk."""
        prior = self._prior(chunk)
        return _compiled(prior.depth), _compiled(prior.confidence)

    def row(self, observation: int) -> int:
        """Which of its chunk's maps is the observation's."""
        chunk, frame = int(self._observations.chunk[observation]), int(self._observations.frame[observation])
        row = (self._prior(chunk).frame == frame).nonzero().flatten()
        if not len(row):
            raise StoreError(
                f"the stored prior of chunk {chunk} has no frame {frame}: not the one that was indexed: "
                "run again with --overwrite"
            )
        return int(row[0])

    def quantiles(self, observation: int) -> np.ndarray:
        """The observation's own confidence distribution."""
        if observation not in self._quantiles:
            depth, confidence = self.maps(int(self._observations.chunk[observation]))
            row = self.row(observation)
            self._quantiles[observation] = confidence_quantiles(confidence[row], depth[row])
        return self._quantiles[observation]

    def grid(self, observation: int, at_most: int) -> Float[Tensor, "n 2"]:
        """Pixel centres of the observation's own depth map, thinned evenly, in pixels of the full size."""
        height, width = self._prior(int(self._observations.chunk[observation])).depth.shape[1:]
        step = max(1, int((height * width / max(at_most, 1)) ** 0.5 + 0.999))
        centres = pixel_centres(width, height)[step // 2 :: step, step // 2 :: step].reshape(-1, 2)
        full = self._observations.size
        return centres / torch.tensor([width / full[0], height / full[1]], dtype=torch.float64)


def _compiled(maps: Tensor) -> np.ndarray:
    """As the compiled code reads it: half precision has no arithmetic there."""
    values: np.ndarray = (maps.float() if maps.dtype in (torch.float16, torch.bfloat16) else maps).numpy()
    return np.ascontiguousarray(values)


@njit(cache=True)
def depth_between(depth_map: Any, x: float, y: float) -> Any:
    """Depth between four pixel centres where all are valid and within a small jump; 0 elsewhere.

    The inverse depth is what is interpolated: on a plane it is linear in the pixel, the depth is not.
    """
    height, width = depth_map.shape
    x, y = x - 0.5, y - 0.5
    if not (x >= 0.0 and x <= width - 1 and y >= 0.0 and y <= height - 1):
        return 0.0
    left, top = min(int(x), max(width - 2, 0)), min(int(y), max(height - 2, 0))
    right, bottom = min(left + 1, width - 1), min(top + 1, height - 1)
    dx, dy = x - left, y - top
    a, b = float(depth_map[top, left]), float(depth_map[top, right])
    c, d = float(depth_map[bottom, left]), float(depth_map[bottom, right])
    least, most = min(min(a, b), min(c, d)), max(max(a, b), max(c, d))
    if not (a > 0.0 and b > 0.0 and c > 0.0 and d > 0.0 and most < math.inf):
        return 0.0
    if most > (1.0 + _MAX_JUMP) * least:
        return 0.0
    inverse = (1 - dx) * (1 - dy) / a + dx * (1 - dy) / b + (1 - dx) * dy / c + dx * dy / d
    return 1.0 / max(inverse, 1e-300)


@njit(cache=True)
def value_under(image: Any, x: float, y: float) -> float:
    """The value of the pixel that a position lies in; 0 outside and where it is no positive number."""
    height, width = image.shape
    if not (x >= 0.0 and x < width and y >= 0.0 and y < height):
        return 0.0
    value = float(image[int(y), int(x)])
    return value if value > 0.0 and value < math.inf else 0.0

"""Give pixels without a believable depth that of the believable ones around them, not across edges."""

from typing import Any

import numpy as np
from jaxtyping import Float
from numba import njit

_ROUNDS = 3
_REACH = 24.0
"""Pixels that a value travels on a blank surface."""
_EDGE = 10.0
"""Difference in brightness that counts as one reach."""


def fill(
    depth: Float[np.ndarray, "H W"], confidence: Float[np.ndarray, "H W"], image: Float[np.ndarray, "H W"]
) -> tuple[Float[np.ndarray, "H W"], Float[np.ndarray, "H W"]]:
    """Smoothed inverse depth weighted by confidence, and the weight that reached each pixel."""
    weight = np.where(depth > 0, confidence**2, 0).astype(np.float32)
    value = np.where(depth > 0, weight / np.maximum(depth, 1e-12), 0).astype(np.float32)
    across = _pull(np.abs(np.diff(image, axis=1)))
    down = _pull(np.abs(np.diff(image, axis=0)))
    for k in range(_ROUNDS):
        factor = np.float32(3**0.5 * 2.0 ** (_ROUNDS - k - 1) / (4**_ROUNDS - 1) ** 0.5)
        for channel in (value, weight):
            _along_rows(channel, across, factor)
            _along_rows(channel.T, down.T, factor)
    return (weight / np.maximum(value, 1e-20)).astype(np.float32), weight


def _pull(difference: Float[np.ndarray, "H W"]) -> Float[np.ndarray, "H W"]:
    """Distance between neighbours in reaches: a pixel's own plus what the edge adds."""
    return (1 / _REACH + difference / _EDGE).astype(np.float32)


@njit(cache=True)
def _along_rows(values: Any, distance: Any, factor: Any) -> None:
    """One recursive pass to the right and one back, in place: a value decays with the distance travelled."""
    height, width = values.shape
    for y in range(height):
        for x in range(1, width):
            keep = np.exp(np.float32(-1.4142135) * distance[y, x - 1] / factor)
            values[y, x] += keep * (values[y, x - 1] - values[y, x])
        for x in range(width - 2, -1, -1):
            keep = np.exp(np.float32(-1.4142135) * distance[y, x] / factor)
            values[y, x] += keep * (values[y, x + 1] - values[y, x])

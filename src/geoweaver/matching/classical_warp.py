"""A smooth displacement field through verified feature pairs: where each pixel of i roughly lies in j."""

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

_STEP = 16
"""Pixels between the nodes of the field."""
_NEIGHBOURS = 10
"""Feature pairs that speak at a node or for one of their own."""
_RIDGE = np.diag([0.01, 0.3, 0.3])
"""Pull of a node towards the whole image's affinity: few or distant pairs must not extrapolate."""

Field = Float[np.ndarray, "H W 2"]
Array = NDArray[np.float64]


def supported(pixel_i: Float[np.ndarray, "n 2"], pixel_j: Float[np.ndarray, "n 2"]) -> Bool[np.ndarray, "n"]:
    """Pairs that move as at least two of their neighbours do: the rest agree with the epipolar line alone."""
    count = min(_NEIGHBOURS, len(pixel_i) - 1)
    if count < 2:
        return np.ones(len(pixel_i), bool)
    distance, near = _nearest(pixel_i, pixel_i, count + 1)
    moved = pixel_j - pixel_i
    apart = np.linalg.norm(moved[near[:, 1:]] - moved[:, None], axis=-1)
    return np.asarray((apart < 3 + 0.25 * distance[:, 1:]).sum(1) >= 2)


def warp_field(
    pixel_i: Float[np.ndarray, "n 2"], pixel_j: Float[np.ndarray, "n 2"], size: tuple[int, int]
) -> Field:
    """For each pixel of a (width, height) image its place in j, both counted from the first pixel's centre.

    The whole image's robust affinity, and on top of it local affinities around the nodes of a grid.
    """
    import cv2

    width, height = size
    columns, rows = np.arange(0, width + _STEP, _STEP), np.arange(0, height + _STEP, _STEP)
    nodes = np.stack(np.meshgrid(columns, rows), -1).reshape(-1, 2).astype(np.float64)
    affinity = _affinity(pixel_i, pixel_j)
    local = _local_shift(nodes, pixel_i, pixel_j - _apply(affinity, pixel_i))
    coarse = (_apply(affinity, nodes) + local).reshape(len(rows), len(columns), 2).astype(np.float32)
    at = np.meshgrid(np.arange(width, dtype=np.float32) / _STEP, np.arange(height, dtype=np.float32) / _STEP)
    return np.asarray(cv2.remap(coarse, at[0], at[1], cv2.INTER_LINEAR))


def scaled_field(size_i: tuple[int, int], size_j: tuple[int, int]) -> Field:
    """Every pixel stays where it is, up to the images' sizes."""
    ratio = np.array(size_j) / np.array(size_i)
    grid = np.stack(np.meshgrid(np.arange(size_i[0]), np.arange(size_i[1])), -1)
    return np.asarray((grid + 0.5) * ratio - 0.5, dtype=np.float32)


def _apply(affinity: Array, pixel: Array) -> Array:
    return np.asarray(pixel @ affinity[:2] + affinity[2])


def _affinity(pixel_i: Array, pixel_j: Array) -> Array:
    """The affinity (3 2) that most pairs roughly follow, by reweighted least squares."""
    A, weight = np.concatenate([pixel_i, np.ones((len(pixel_i), 1))], 1), np.ones((len(pixel_i), 1))
    affinity = np.zeros((3, 2))
    for _ in range(5):
        affinity = np.linalg.lstsq(weight * A, weight * pixel_j, rcond=None)[0]
        error = np.linalg.norm(A @ affinity - pixel_j, axis=1, keepdims=True)
        weight = 1 / np.sqrt(1 + (error / (1.5 * np.median(error) + 1e-3)) ** 2)
    return affinity


def _local_shift(nodes: Array, pixel: Array, shift: Array) -> Array:
    """The shift at each node, by a robust local affinity through its nearest pairs."""
    count = min(_NEIGHBOURS, len(pixel))
    distance, near = _nearest(pixel, nodes, count)
    reach = np.maximum(distance[:, min(3, count - 1)], _STEP)[:, None]
    B = np.concatenate([np.ones((*near.shape, 1)), (pixel[near] - nodes[:, None]) / reach[..., None]], -1)
    nearness = np.exp(-0.5 * (distance / reach) ** 2) + 1e-6
    weight, target = nearness, shift[near]
    fit = np.zeros((len(nodes), 3, 2))
    for _ in range(2):
        weighted = (weight[..., None] * B).transpose(0, 2, 1)
        fit = np.linalg.solve(weighted @ B + _RIDGE, weighted @ target)
        error = np.linalg.norm(B @ fit - target, axis=-1)
        weight = nearness / (1 + (error / np.maximum(1.5 * np.median(error, 1, keepdims=True), 1)) ** 2)
    return np.asarray(fit[:, 0])


def _nearest(points: Array, at: Array, count: int) -> tuple[Array, NDArray[np.int64]]:
    """Distances to and indices of the nearest points (n count)."""
    from scipy.spatial import cKDTree

    distance, near = cKDTree(points).query(at, k=list(range(1, count + 1)))
    return np.asarray(distance), np.asarray(near)

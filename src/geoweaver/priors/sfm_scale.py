"""How well a model's own points carry its scale from frame to frame.

A model that lost nearly all of its points has few pairs left to contradict it. Points that both sides of a
cut see under an angle are what says that one unit of length holds for both.
"""

from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from geoweaver.priors.sfm_mapping import SparseModel

_MOST = 3000
"""Points that are looked at; the others are assumed to be like them."""
_LOST = 1.0
"""Log scale known no better than this is not known."""


def carries_scale(model: SparseModel) -> bool:
    """Whether most cuts through the sequence leave the scale of one side tied to the other's."""
    inner = scale_sigma(model)[1:-1]
    return bool(np.median(inner) < _LOST) if len(inner) else True


def scale_sigma(model: SparseModel) -> Float[np.ndarray, "cuts"]:
    """For the cut before each row but the first: sigma of the log scale across it, pixels erring by one."""
    row, column = np.nonzero(model.point_of >= 0)
    point = model.point_of[row, column]
    step = max(1, len(model.points) // _MOST)
    row, point = row[point % step == 0], point[point % step == 0]
    order = np.lexsort((row, point))
    row, point = row[order], point[order]
    away = model.points[point] - model.cam_from_chunk.centre.numpy()[row]
    ray = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
    information = np.zeros(max(len(model) - 1, 0))
    bounds = np.flatnonzero(np.diff(point, prepend=-1, append=-1))
    for start, stop in pairwise(bounds):
        if stop - start >= 4:
            _add_point(row[start:stop], ray[start:stop], information)
    noise = 1 / model.intrinsics[0]
    return np.asarray(noise / np.sqrt(np.maximum(step * information, 1e-30)))


def _add_point(
    row: Int[np.ndarray, "o"], ray: Float[np.ndarray, "o 3"], information: Float[np.ndarray, "cuts"]
) -> None:
    """What one point says across each cut between its first and its last sighting, at unit noise."""
    before = _spread(ray)
    after = _spread(ray[::-1])[::-1]
    for k in range(1, len(row) - 2):
        left, right = before[k], after[k + 1]
        if left > 0 and right > 0:
            information[row[k] : row[k + 1]] += left * right / (left + right)


def _spread(ray: Float[np.ndarray, "o 3"]) -> Float[np.ndarray, "o"]:
    """Squared scatter of the first one, two, three ... directions about their mean, summed."""
    count = np.arange(1, len(ray) + 1)
    total = np.cumsum(ray, 0)
    return np.asarray(np.cumsum((ray**2).sum(1)) - (total**2).sum(1) / count)

"""Surfaces are flat where their colour does not change: a plane through what is known around each pixel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numba import njit

from geoweaver.priors.plane_sweep_rims import rims

Picture = Float[np.ndarray, "H W"]

_ROUNDS = 3
"""Passes over rows and columns: three make a value travel evenly in all directions."""
_FITS = 3
"""Each after the first trusts less what the one before did not explain."""
_EDGE = 10.0
"""Difference in brightness that counts as one reach."""
_LEAST_SPREAD = 4.0
"""Squared pixels of spread without which a slope is not believed."""
_FARTHEST = 2.0
"""Factor to the mean around it beyond which a plane is not followed."""
_APART = 4
"""Pixels to either side at which a jump of depth is looked for: about as far as one is misplaced."""
_JUMP = 0.04
"""Relative bend of inverse depth that is half a jump."""
_BESIDE = 0.05
"""What depth beside a jump counts."""
_RIM = 1e-3
"""What depth counts that an edge left behind it."""
_NOTHING = 1e-30
_MOMENTS = 9
"""Sums per pixel; known when compiled, so that they become vector instructions."""


@dataclass(frozen=True)
class Planes:
    """Per pixel a plane, on which inverse depth is linear in the pixel."""

    inverse: Picture
    across: Picture
    """Inverse depth per pixel to the right."""
    down: Picture
    weight: Picture
    """What of the weights around arrived here."""


def fit_planes(
    inverse: Picture, weight: Picture, image: Picture, reach: float, scatter: float, least: float = _NOTHING
) -> Planes:
    """Robust planes through inverse depth within a reach (pixels), not across edges of the image.

    What differs from its plane by more than a relative `scatter` counts less and less. Differences are
    relative to `least` at the least: inverse depths below it cannot be told from each other.
    """
    known = np.where(inverse > 0, weight, 0).astype(np.float32)
    start = known * away_from_jumps(inverse, least) * np.where(rims(inverse, image, least), _RIM, 1.0)
    used = start
    paths = _paths(image, reach)
    for k in range(_FITS):
        planes = _fit(inverse, used, paths)
        if k + 1 < _FITS:
            miss = (inverse - planes.inverse) / (scatter * np.maximum(planes.inverse, least))
            used = start / (1 + miss**2) ** 2
    return planes


def away_from_jumps(inverse: Picture, least: float = _NOTHING) -> Picture:
    """Near 1 on surfaces, small beside jumps of depth, where windows saw both sides."""
    r = _APART
    padded = np.pad(inverse, r, mode="edge")
    height, width = inverse.shape
    bend = np.zeros(inverse.shape)
    for dy, dx in ((0, r), (r, 0), (r, r), (r, -r)):
        after = padded[r + dy : r + dy + height, r + dx : r + dx + width]
        before = padded[r - dy : r - dy + height, r - dx : r - dx + width]
        bend = np.maximum(bend, np.abs(after + before - 2 * inverse))
    share = np.where(inverse > 0, bend / np.maximum(inverse, least), 0) / _JUMP
    return np.asarray(_BESIDE + (1 - _BESIDE) / (1 + np.minimum(share, 1e3) ** 4))


def _paths(image: Picture, reach: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """What share of a value goes on from a pixel to the next, across and down, in each round."""
    across = 1 / reach + np.abs(np.diff(image, axis=1)) / _EDGE
    down = 1 / reach + np.abs(np.diff(image, axis=0)) / _EDGE
    factors = [(3 / (4**_ROUNDS - 1)) ** 0.5 * 2.0 ** (_ROUNDS - k - 1) for k in range(_ROUNDS)]
    kept = [(np.exp(-(2**0.5) * across / f), np.exp(-(2**0.5) * down / f)) for f in factors]
    return [(across.astype(np.float32), down.astype(np.float32)) for across, down in kept]


def _fit(inverse: Picture, weight: Picture, paths: list[tuple[np.ndarray, np.ndarray]]) -> Planes:
    sums = np.empty((*inverse.shape, _MOMENTS), np.float32)
    _moments(inverse, weight, sums)
    for across, down in paths:
        _travel_across(sums, across)
        _travel_down(sums, down)
    value, right, below = (np.zeros(inverse.shape) for _ in range(3))
    _solve(sums, value, right, below)
    return Planes(value, right, below, sums[..., 0].copy())


@njit(cache=True, nogil=True)
def _moments(inverse: Any, weight: Any, sums: Any) -> None:
    """Weight times 1, x, y, x2, xy, y2, q, qx, qy, from the image's middle."""
    height, width = inverse.shape
    for y in range(height):
        for x in range(width):
            k, q = float(weight[y, x]), float(inverse[y, x])
            u, v, m = x - 0.5 * width, y - 0.5 * height, sums[y, x]
            m[0], m[1], m[2], m[3], m[4], m[5] = k, k * u, k * v, k * u * u, k * u * v, k * v * v
            m[6], m[7], m[8] = k * q, k * q * u, k * q * v


@njit(cache=True, nogil=True)
def _travel_across(sums: Any, keep: Any) -> None:
    """One recursive pass to the right and one back, in place: a value decays with the distance travelled."""
    height, width, _ = sums.shape
    for y in range(height):
        row = sums[y]
        for x in range(1, width):
            for c in range(_MOMENTS):
                row[x, c] += keep[y, x - 1] * (row[x - 1, c] - row[x, c])
        for x in range(width - 2, -1, -1):
            for c in range(_MOMENTS):
                row[x, c] += keep[y, x] * (row[x + 1, c] - row[x, c])


@njit(cache=True, nogil=True)
def _travel_down(sums: Any, keep: Any) -> None:
    """The same down and up, a whole row at a time."""
    height = len(sums)
    for y in range(1, height):
        _mix_rows(sums[y], sums[y - 1], keep[y - 1])
    for y in range(height - 2, -1, -1):
        _mix_rows(sums[y], sums[y + 1], keep[y])


@njit(cache=True, nogil=True)
def _mix_rows(here: Any, before: Any, keep: Any) -> None:
    for x in range(len(here)):
        for c in range(_MOMENTS):
            here[x, c] += keep[x] * (before[x, c] - here[x, c])


@njit(cache=True, nogil=True)
def _solve(sums: Any, value: Any, across: Any, down: Any) -> None:
    """Weighted least squares; slopes fade where what is known lies in one place."""
    height, width, _ = sums.shape
    for y in range(height):
        for x in range(width):
            m, total = sums[y, x], float(sums[y, x, 0])
            if total <= _NOTHING:
                continue
            mx, my, mq = m[1] / total, m[2] / total, m[6] / total
            xx, yy = m[3] / total - mx * mx + _LEAST_SPREAD, m[5] / total - my * my + _LEAST_SPREAD
            xy, qx, qy = m[4] / total - mx * my, m[7] / total - mq * mx, m[8] / total - mq * my
            determinant = xx * yy - xy * xy
            a, b = (qx * yy - qy * xy) / determinant, (qy * xx - qx * xy) / determinant
            q = mq + a * (x - 0.5 * width - mx) + b * (y - 0.5 * height - my)
            value[y, x] = min(max(q, mq / _FARTHEST), mq * _FARTHEST)
            across[y, x], down[y, x] = a, b

"""Do matches agree with the predicted depth? Judged by the pair's own geometry, not by a drifting layout.

Compiled, one pair at a time; `pair_loops` runs it over many.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from geoweaver.matching.pair_fit import fit_similarity, refine_similarity
from geoweaver.matching.sampling import lower_median

GIVEN, FITTED, TIED = 0, 1, 2
"""What a pair is judged by: the prior's cameras, its own fit, or the depth ratio of a shared frame."""
FEWEST_FITTED = 4
"""Two-sided rows under which a similarity explains anything."""
_FINEST_RESIDUAL = 0.01
"""Share of half the diagonal (3 pixels in 512) within which no row stands out: what matchers are good to."""


class Rows(NamedTuple):
    """A pair's rows in sampling order; depth 0 = unknown."""

    pixel_i: Any
    pixel_j: Any
    depth_i: Any
    depth_j: Any
    weight: Any


class Errors(NamedTuple):
    """Relative errors of a pair's rows: over the depth, and over half the image diagonal."""

    depth: Any
    """|d_projected - d_j| / d_j; 0 where only one side has a depth, infinite behind the camera."""
    lateral: Any
    """Distance of the projection from its match."""
    chance: Any
    """The larger error of two-sided rows had their targets been exchanged: how wrong matches look."""
    residual: Any
    """The lateral error that is left under the similarity which fits the rows best."""


@njit(cache=True)
def pair_errors(
    rows: Any, both: Any, how: int, given: Any, K_i: Any, K_j: Any, triples: Any, fit_rows: int, reach: float,
    half_diagonal: float,
) -> Any:  # fmt: skip
    """Errors of a pair's rows by the prior's cameras (one chunk), the depth ratio (tie) or their own fit."""
    if how == TIED:
        return _tie_errors(rows, both)
    if len(both) < FEWEST_FITTED and how == FITTED:
        return _unknown_errors(len(rows.weight), len(both))
    few = both[:fit_rows]
    source = _lift_all(rows.pixel_i[few], rows.depth_i[few], K_i)
    target = _lift_all(rows.pixel_j[few], rows.depth_j[few], K_j)
    if how == FITTED:
        fitted = fit_similarity(source, target, rows.weight[few], triples, reach)
        depth, lateral, chance = _landing(rows, both, fitted, K_i, K_j, half_diagonal)
        return Errors(depth, lateral, chance, lateral)
    depth, lateral, chance = _landing(rows, both, given, K_i, K_j, half_diagonal)
    if len(both) < FEWEST_FITTED:
        return Errors(depth, lateral, chance, lateral)
    fitted = refine_similarity(given, source, target, rows.weight[few], reach)
    return Errors(depth, lateral, chance, _landing(rows, both, fitted, K_i, K_j, half_diagonal)[1])


@njit(cache=True)
def worst_errors(errors: Any) -> Any:
    """The error that a threshold is held against; a row with one depth has only its lateral error."""
    return np.where(errors.depth > errors.lateral, errors.depth, errors.lateral)


@njit(cache=True)
def selecting_errors(errors: Any, both: Any, consistency: float, lateral: bool, spread: float) -> Any:
    """The same for choosing rows: infinite for those that stand out from the pair's own residuals."""
    worst = worst_errors(errors)
    if not lateral:
        worst[both] = errors.depth[both]
        return worst
    agreeing = errors.residual[worst <= consistency]
    if len(agreeing):
        limit = max(spread * lower_median(agreeing), _FINEST_RESIDUAL)
        for n in range(len(worst)):
            if errors.residual[n] > limit:
                worst[n] = math.inf
    return worst


@njit(cache=True)
def _tie_errors(rows: Any, both: Any) -> Any:
    """One camera, one pose, identical pixels: only the scale between the two depths is unknown."""
    count = len(rows.weight)
    depth, same = np.full(count, math.inf), np.zeros(count)
    if len(both):
        ratio = rows.depth_i[both] / rows.depth_j[both]
        depth[both] = np.abs(ratio / lower_median(ratio) - 1.0)
    # nothing can be confused here: chance explains none of the agreement
    return Errors(depth, same, np.full(len(both), math.inf), same)


@njit(cache=True)
def _unknown_errors(count: int, both: int) -> Any:
    """Nothing to judge by: nothing agrees."""
    never = np.full(count, math.inf)
    return Errors(never, never, np.full(both, math.inf), never)


@njit(cache=True)
def _landing(rows: Any, both: Any, cam_j_from_cam_i: Any, K_i: Any, K_j: Any, half_diagonal: float) -> Any:
    """Where rows land in the other view and how deep, against what match and prior say."""
    count = len(rows.weight)
    pixel, z = np.empty((count, 2)), np.empty(count)
    depth, lateral, chance = np.empty(count), np.empty(count), np.empty(len(both))
    point, moved = np.empty(3), np.empty(3)
    for n in range(count):
        if rows.depth_i[n] > 0.0:
            _lift(rows.pixel_i[n], rows.depth_i[n], K_i, point)
            _move(cam_j_from_cam_i, point, moved)
            z[n] = _project(moved, K_j, pixel[n])
            depth[n], lateral[n] = _compare(pixel[n], z[n], rows.pixel_j[n], rows.depth_j[n], half_diagonal)
        else:
            _lift(rows.pixel_j[n], rows.depth_j[n], K_j, point)
            _move_back(cam_j_from_cam_i, point, moved)
            z[n] = _project(moved, K_i, pixel[n])
            depth[n], lateral[n] = _compare(pixel[n], z[n], rows.pixel_i[n], 0.0, half_diagonal)
    for k in range(len(both)):
        n, other = both[k], both[(k - len(both) // 2) % len(both)]
        deep, wide = _compare(pixel[n], z[n], rows.pixel_j[other], rows.depth_j[other], half_diagonal)
        chance[k] = max(deep, wide)
    return depth, lateral, chance


@njit(cache=True)
def _compare(pixel: Any, z: float, matched: Any, depth: float, half_diagonal: float) -> Any:
    """Depth and lateral error; where the prior has no depth only the lateral one says something."""
    if not z > 0.0:
        return math.inf, math.inf
    lateral = math.sqrt((pixel[0] - matched[0]) ** 2 + (pixel[1] - matched[1]) ** 2) / half_diagonal
    return (abs(z - depth) / depth if depth > 0.0 else 0.0), lateral


@njit(cache=True)
def _lift_all(pixel: Any, depth: Any, K: Any) -> Any:
    points = np.empty((len(pixel), 3))
    for n in range(len(pixel)):
        _lift(pixel[n], depth[n], K, points[n])
    return points


@njit(cache=True)
def _lift(pixel: Any, depth: float, K: Any, point: Any) -> None:
    point[0] = depth * ((pixel[0] - K[2]) / K[0])
    point[1] = depth * ((pixel[1] - K[3]) / K[1])
    point[2] = depth


@njit(cache=True)
def _project(point: Any, K: Any, pixel: Any) -> float:
    """Fills the pixel and gives its depth; means something only where that is positive."""
    z = point[2]
    if z > 0.0:
        pixel[0] = K[0] * (point[0] / z) + K[2]
        pixel[1] = K[1] * (point[1] / z) + K[3]
    return float(z)


@njit(cache=True)
def _move(transform: Any, x: Any, out: Any) -> None:
    scale, R, t = transform
    for r in range(3):
        out[r] = scale * (R[r, 0] * x[0] + R[r, 1] * x[1] + R[r, 2] * x[2]) + t[r]


@njit(cache=True)
def _move_back(transform: Any, x: Any, out: Any) -> None:
    scale, R, t = transform
    a, b, c = x[0] - t[0], x[1] - t[1], x[2] - t[2]
    for r in range(3):
        out[r] = (R[0, r] * a + R[1, r] * b + R[2, r] * c) / scale

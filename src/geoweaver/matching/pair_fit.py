"""The similarity between two cameras that one pair's matches agree on: a quick robust fit on few rows.

Lengths are relative to depth, in both cameras at once: a fit that shrinks one side to a point gains nothing.
Compiled; a similarity is (scale, rotation, translation), points are rows.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from geoweaver.matching.sampling import lower_median
from geoweaver.matching.umeyama import umeyama

_SCORED = 256
"""Rows that hypotheses are scored on: tells 30 % agreement from 20 % at three sigmas."""
_SCORED_AT_ONCE = 32
"""Rows after which a hypothesis that is already worse than the best is given up."""
_REFINEMENTS = 8
"""Re-weighted fits after the best hypothesis, at most."""
_SETTLED = 0.98
"""Re-weighting ends when the residuals' spread shrinks by less than this factor."""


@njit(cache=True)
def fit_similarity(source: Any, target: Any, weight: Any, triples: Any, reach: float) -> Any:
    """The best of many three-point fits, then re-weighted; relative errors beyond `reach` are out."""
    a, b, alike, least = np.empty((3, 3)), np.empty((3, 3)), np.ones(3), math.inf
    best = umeyama(source[triples[0]], target[triples[0]], alike)
    for h in range(len(triples)):
        for k in range(3):
            for r in range(3):
                a[k, r], b[k, r] = source[triples[h, k], r], target[triples[h, k], r]
        hypothesis = umeyama(a, b, alike)
        loss = _truncated_loss(hypothesis, source, target, weight, reach, least)
        if loss < least:
            best, least = hypothesis, loss
    return refine_similarity(best, source, target, weight, reach)


@njit(cache=True)
def _truncated_loss(
    similarity: Any, source: Any, target: Any, weight: Any, reach: float, enough: float
) -> float:
    """Weighted squares of the relative errors of the first rows, none above 1; infinite beyond `enough`."""
    scale, rotation, translation = similarity
    loss, rows = 0.0, min(_SCORED, len(source))
    for first in range(0, rows, _SCORED_AT_ONCE):
        for n in range(first, min(first + _SCORED_AT_ONCE, rows)):
            square = _relative_square(scale, rotation, translation, source[n], target[n]) / (reach * reach)
            loss += weight[n] * (square if square < 1.0 else 1.0)
        if loss > enough:
            return math.inf
    return loss


@njit(cache=True, inline="always")
def _relative_square(scale: float, rotation: Any, translation: Any, source: Any, target: Any) -> Any:
    apart = 0.0
    for r in range(3):
        moved = rotation[r, 0] * source[0] + rotation[r, 1] * source[1] + rotation[r, 2] * source[2]
        apart += (scale * moved + translation[r] - target[r]) ** 2
    nearer = max(min(scale * source[2], target[2]), 1e-150)
    return apart / (nearer * nearer)


@njit(cache=True)
def relative_distance(target_from_source: Any, source: Any, target: Any) -> Any:
    """|S x - y| over the smaller of the two depths in target units; huge for a collapsed similarity."""
    scale, rotation, translation = target_from_source
    error = np.empty(len(source))
    for n in range(len(source)):
        error[n] = math.sqrt(_relative_square(scale, rotation, translation, source[n], target[n]))
    return error


@njit(cache=True)
def refine_similarity(start: Any, source: Any, target: Any, weight: Any, reach: float) -> Any:
    """Re-weighted least squares (Geman-McClure) with a spread that follows the residuals down."""
    best, sigma, unit = start, math.inf, lower_median(target[:, 2].copy())
    trust = np.empty(len(source))
    for _ in range(_REFINEMENTS):
        error = relative_distance(best, source, target)
        inside = error[error <= reach]
        if len(inside) < 4:
            break
        spread = max(1.5 * lower_median(inside), 1e-3 * reach)
        if spread > _SETTLED * sigma:
            break
        sigma = spread
        for n in range(len(source)):
            near = 1.0 / (1.0 + (error[n] / sigma) ** 2) ** 2 if error[n] <= reach else 0.0
            trust[n] = weight[n] * near * (unit / target[n, 2]) ** 2
        best = umeyama(source, target, trust)
    return best

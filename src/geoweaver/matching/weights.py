"""How much a match counts: matcher's score times prior's confidence, made comparable (Eq. match_weight)."""

import math
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numba import njit

Normalisation = Literal["median", "rank"]

_STEPS = 256
"""Steps of the quantile table: a rank good to 0.4 % and an exact middle entry."""
_MAX_SORTED = 8192
"""Confidences sorted per frame: the median of that many is good to about 1 % of the spread."""


def confidence_quantiles(
    confidence: Float[np.ndarray, "H W"], depth: Float[np.ndarray, "H W"]
) -> Float[np.ndarray, "steps"]:
    """The frame's own confidence distribution where the prior knows a depth: all that normalising needs."""
    values = np.sort(_known_values(confidence, depth, _MAX_SORTED))
    if not len(values):
        return np.ones(_STEPS + 1)
    place = np.linspace(0, len(values) - 1, _STEPS + 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, len(values) - 1)
    return np.asarray(values[below] + (place - below) * (values[above] - values[below]))


@njit(cache=True)
def _known_values(confidence: Any, depth: Any, at_most: int) -> Any:
    """Evenly spread ones of the usable confidences of pixels with depth."""
    usable = 0
    for y in range(depth.shape[0]):
        for x in range(depth.shape[1]):
            usable += depth[y, x] > 0.0 and confidence[y, x] > 0.0 and confidence[y, x] < math.inf
    step = max(-(-usable // at_most), 1)
    values, seen = np.empty(-(-usable // step)), 0
    for y in range(depth.shape[0]):
        for x in range(depth.shape[1]):
            if depth[y, x] > 0.0 and confidence[y, x] > 0.0 and confidence[y, x] < math.inf:
                if seen % step == 0:
                    values[seen // step] = confidence[y, x]
                seen += 1
    return values


@njit(cache=True)
def normalised_confidence(confidence: float, quantiles: Any, by_rank: bool, ceiling: float) -> Any:
    """gamma: 1 for the frame's typical pixel whatever the model's scale, 0 where there is no confidence."""
    if not confidence > 0.0:
        return 0.0
    if not by_rank:
        return min(confidence / quantiles[len(quantiles) // 2], ceiling)
    # the middle of the tied entries, so that a constant confidence is typical everywhere
    first, last = _entries(quantiles, confidence, False), _entries(quantiles, confidence, True)
    return (first + last) / len(quantiles)


@njit(cache=True)
def _entries(sorted_values: Any, value: float, ties: bool) -> int:
    """How many of sorted values lie below a value, its ties with them if asked."""
    low, high = 0, len(sorted_values)
    while low < high:
        middle = (low + high) // 2
        if sorted_values[middle] < value or (ties and sorted_values[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def match_weight(score: float, gamma_i: float, gamma_j: float, known_i: bool, known_j: bool) -> float:
    """w_m = s_m sqrt(gamma_i gamma_j), where a side without depth has no say (Eq. match_weight)."""
    if not (score > 0.0 and score < math.inf):
        return 0.0
    if known_i and known_j:
        return score * math.sqrt(gamma_i * gamma_j)
    if known_i:
        return score * gamma_i
    return score * gamma_j if known_j else 0.0


@njit(cache=True)
def match_probability(weight: float, total: float) -> float:
    """p(m | i, j) = w_m / sum w of one pair's matches; 0 where nothing has weight (Eq. match_weight)."""
    return weight / total if total > 0.0 else 0.0

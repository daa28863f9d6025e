"""Loops over the pairs of a block, pairs in parallel: read and order their rows, judge them, choose.

Each pair is done by one thread in its own order, so the bytes do not depend on the number of threads.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from geoweaver.matching.consistency import Rows, pair_errors, selecting_errors, worst_errors
from geoweaver.matching.readings import depth_between, value_under
from geoweaver.matching.sampling import sampling_order
from geoweaver.matching.weights import match_weight, normalised_confidence


@njit(parallel=True, cache=True)
def read_pairs(
    start: Any, pixel_i: Any, pixel_j: Any, score: Any, uniform: Any,
    maps_i: Any, maps_j: Any, row_i: Any, row_j: Any, quantiles_i: Any, quantiles_j: Any, size: Any,
    by_rank: bool, ceiling: float, confidence: float, of_median: bool,
    source: Any, depth_i: Any, depth_j: Any, weight: Any, count: Any,
) -> None:  # fmt: skip
    """Confident rows of each pair in sampling order: where each comes from, its depths and its weight."""
    for p in prange(len(start) - 1):
        first, rows = start[p], start[p + 1] - start[p]
        deep_i, deep_j, heavy = np.empty(rows), np.empty(rows), np.empty(rows)
        gamma_i, gamma_j = np.empty(rows), np.empty(rows)
        at = slice(first, start[p + 1])
        _read(
            maps_i[0][row_i[p]], maps_i[1][row_i[p]], quantiles_i[p], pixel_i[at], size, by_rank, ceiling,
            deep_i, gamma_i,
        )  # fmt: skip
        _read(
            maps_j[0][row_j[p]], maps_j[1][row_j[p]], quantiles_j[p], pixel_j[at], size, by_rank, ceiling,
            deep_j, gamma_j,
        )  # fmt: skip
        for n in range(rows):
            heavy[n] = match_weight(
                score[first + n], gamma_i[n], gamma_j[n], deep_i[n] > 0.0, deep_j[n] > 0.0
            )
        order = sampling_order(heavy, uniform[at], confidence, of_median)
        count[p] = len(order)
        for k in range(len(order)):
            n = order[k]
            source[first + k] = first + n
            depth_i[first + k], depth_j[first + k], weight[first + k] = deep_i[n], deep_j[n], heavy[n]


@njit(cache=True)
def _read(
    depth_map: Any, confidence_map: Any, quantiles: Any, pixel: Any, size: Any, by_rank: bool, ceiling: float,
    depth: Any, gamma: Any,
) -> None:  # fmt: skip
    """Depth (0 = unknown) and normalised confidence at pixels of the full size."""
    x, y = depth_map.shape[1] / size[0], depth_map.shape[0] / size[1]
    u, v = confidence_map.shape[1] / size[0], confidence_map.shape[0] / size[1]
    for n in range(len(pixel)):
        depth[n] = depth_between(depth_map, pixel[n, 0] * x, pixel[n, 1] * y)
        confidence = value_under(confidence_map, pixel[n, 0] * u, pixel[n, 1] * v)
        gamma[n] = normalised_confidence(confidence, quantiles, by_rank, ceiling)


@njit(parallel=True, cache=True)
def judge_pairs(
    start: Any, count: Any, pixel_i: Any, pixel_j: Any, source: Any, depth_i: Any, depth_j: Any, weight: Any,
    how: Any, scale: Any, rotation: Any, translation: Any, K_i: Any, K_j: Any, triples: Any,
    fit_rows: int, reach: float, half_diagonal: float, lateral: bool, spread: float, steps: Any, finer: Any,
    selecting: Any, agreeing: Any, found: Any, lucky: Any,
) -> None:  # fmt: skip
    """The error each row is chosen by, and how many rows of each pair agree at each threshold."""
    for p in prange(len(start) - 1):
        if count[p] == 0:
            continue
        at = slice(start[p], start[p] + count[p])
        rows = Rows(pixel_i[source[at]], pixel_j[source[at]], depth_i[at], depth_j[at], weight[at])
        both = np.flatnonzero((rows.depth_i > 0.0) & (rows.depth_j > 0.0))
        errors = pair_errors(
            rows, both, how[p], (scale[p], rotation[p], translation[p]), K_i[p], K_j[p], triples[p],
            fit_rows, reach, half_diagonal,
        )  # fmt: skip
        chosen_by = selecting_errors(errors, both, reach, lateral, spread)
        selecting[at] = chosen_by
        _count_below(chosen_by, steps, agreeing[p])
        _count_below(worst_errors(errors)[both], finer, found[p])
        _count_below(errors.chance, finer, lucky[p])


@njit(cache=True)
def _count_below(values: Any, limits: Any, out: Any) -> None:
    for k in range(len(limits)):
        out[k] = np.sum(values <= limits[k])


@njit(cache=True)
def choose_rows(start: Any, count: Any, selecting: Any, threshold: Any, cap: int, kept: Any) -> Any:
    """The first rows of each pair within its threshold, at most `cap`; `kept` gets their number."""
    chosen = np.empty(len(selecting), np.int64)
    total = 0
    for p in range(len(count)):
        before = total
        for m in range(start[p], start[p] + count[p]):
            if selecting[m] <= threshold[p] and total - before < cap:
                chosen[total] = m
                total += 1
        kept[p] = total - before
    return chosen[:total]

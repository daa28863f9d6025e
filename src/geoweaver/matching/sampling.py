"""Confidence- and consistency-aware sampling (CCAS): which of a pair's matches the optimiser gets to see."""

import math
import os
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numba import njit
from torch import Tensor

from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.weights import match_probability

BYTES_PER_ROW = 160
"""80 for three indices, two pixels, two depths and a weight, and as much again while the pairs are joined."""


def pair_rng(seed: int, edge: int, observation_i: int, observation_j: int) -> np.random.Generator:
    """A pair's own random numbers: the same whichever worker or block the pair falls into."""
    return np.random.default_rng((seed, edge + 1, observation_i, observation_j))


def random_triples(rng: np.random.Generator, rows: int, count: int) -> np.ndarray:
    """Three different row numbers each."""
    first = rng.integers(rows, size=count)
    second = (first + 1 + rng.integers(rows - 1, size=count)) % rows
    third = rng.integers(rows - 2, size=count)
    third = third + (third >= np.minimum(first, second))
    third = third + (third >= np.maximum(first, second))
    return np.stack([first, second, third], -1)


@njit(cache=True)
def sampling_order(weight: Any, uniform: Any, share: float, of_median: bool) -> Any:
    """Rows with a share of the typical weight, ordered so that the first k are a weighted sample of k.

    Gumbel keys log p + G; `uniform` are one random number per row.
    """
    rows = np.flatnonzero(weight > 0.0)
    if len(rows) == 0:
        return rows
    usable, total = weight[rows], np.sum(weight)
    typical = lower_median(usable) if of_median else np.max(usable)
    rows = rows[usable >= share * typical]
    key = np.empty(len(rows))
    for n, m in enumerate(rows):
        gumbel = -math.log(-math.log(max(uniform[m], 1e-300)))
        key[n] = -math.log(match_probability(weight[m], total)) - gumbel
    return rows[np.argsort(key, kind="mergesort")]


@njit(cache=True)
def lower_median(values: Any) -> float:
    """The middle value, the lower of two."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def rows_per_pair(available: Int[Tensor, "P"], config: SamplingConfig, memory: int | None = None) -> int:
    """The largest cap that keeps the table within its budget; pairs with few matches leave room to others."""
    memory = _machine_memory() if memory is None else memory
    budget = min(config.max_rows, int(config.memory_share * memory) // BYTES_PER_ROW)
    low, high = 1, config.max_per_pair
    while low < high:
        middle = (low + high + 1) // 2
        fits = int(torch.clamp(available, max=middle).sum()) <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _machine_memory() -> int:
    """Bytes of physical memory: the whole, not what is free now, so that a machine repeats itself."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

"""Confidence- and consistency-aware sampling (CCAS): which of a pair's matches the optimiser gets to see."""

import os

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.weights import match_probability

BYTES_PER_ROW = 160
"""80 for three indices, two pixels, two depths and a weight, and as much again while the pairs are joined."""


def pair_rng(seed: int, edge: int, observation_i: int, observation_j: int) -> np.random.Generator:
    """A pair's own random numbers: the same whichever worker or block the pair falls into."""
    return np.random.default_rng((seed, edge + 1, observation_i, observation_j))


def gumbel_order(weight: Float[Tensor, "n"], rng: np.random.Generator) -> Int[Tensor, "k"]:
    """An order whose first k rows are a weighted sample without replacement, for every k."""
    uniform = torch.from_numpy(rng.random(len(weight)))
    gumbel = -(-uniform.clamp(min=1e-300).log()).log()
    key = match_probability(weight.double()).log() + gumbel
    order = key.argsort(descending=True, stable=True)
    return order[weight[order] > 0]


def confident(weight: Float[Tensor, "n"], config: SamplingConfig) -> Bool[Tensor, "n"]:
    """Rows whose weight is at least a share of the pair's typical one."""
    usable = weight[weight > 0]
    if not len(usable):
        return torch.zeros_like(weight, dtype=torch.bool)
    typical = usable.median() if config.relative_to == "median" else usable.max()
    return (weight > 0) & (weight >= config.confidence * typical)


def rows_per_pair(available: Int[Tensor, "P"], config: SamplingConfig, memory: int | None = None) -> int:
    """The largest cap that keeps the table within its budget; pairs with few matches leave room to others."""
    memory = _machine_memory() if memory is None else memory
    budget = min(config.max_rows, int(config.memory_share * memory) // BYTES_PER_ROW)
    low, high = 1, config.max_per_pair
    while low < high:
        middle = (low + high + 1) // 2
        fits = int(available.clamp(max=middle).sum()) <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _machine_memory() -> int:
    """Bytes of physical memory: the whole, not what is free now, so that a machine repeats itself."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

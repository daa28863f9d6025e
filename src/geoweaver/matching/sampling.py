"""Confidence- and consistency-aware sampling (CCAS): which of a pair's matches the optimiser gets to see."""

import os
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Correspondences
from geoweaver.matching.consistency import PairErrors
from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.weights import match_probability

_NAMED_PAIRS = 20
"""Relaxed pairs that the notes name one by one."""
BYTES_PER_ROW = 80
"""Of a table of correspondences: three indices, two pixels, two depths, one weight."""


@dataclass(frozen=True)
class SamplingReport:
    """What the sampling did with each pair."""

    pairs: Int[Tensor, "P 3"]
    """(edge, observation_i, observation_j) in the table's order."""
    kept: Int[Tensor, "P"]
    """Rows in the table; 0 for a dropped pair."""
    threshold: Float[Tensor, "P"]
    """Depth-consistency threshold that the pair was kept with; nan for a dropped pair."""
    support: Float[Tensor, "P"]
    """Share of the pair's matches that agree at the strict threshold, beyond chance."""
    notes: tuple[str, ...]
    """One line each: the totals, then each relaxed pair."""


@dataclass(frozen=True)
class Verdicts:
    """How many of each pair's rows agree at each threshold step, and how far beyond chance."""

    count: Int[Tensor, "P steps"]
    support: Float[Tensor, "P steps"]

    @classmethod
    def empty(cls, pairs: int, steps: int) -> "Verdicts":
        return cls(
            torch.zeros(pairs, steps, dtype=torch.long), torch.zeros(pairs, steps, dtype=torch.float64)
        )

    def sound(self, config: SamplingConfig) -> Bool[Tensor, "P steps"]:
        """Pairs worth keeping at each step."""
        return (self.count >= config.min_per_pair) & (self.support >= config.min_support)


def pair_rng(seed: int, edge: int, observation_i: int, observation_j: int) -> np.random.Generator:
    """A pair's own random numbers: the same whichever worker or block the pair falls into."""
    return np.random.default_rng((seed, edge + 1, observation_i, observation_j))


def gumbel_order(weight: Float[Tensor, "n"], rng: np.random.Generator) -> Int[Tensor, "n"]:
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


def consistent(errors: PairErrors, threshold: float, lateral: bool) -> Bool[Tensor, "n"]:
    """Rows that agree with the prior to within a relative error."""
    agree = errors.depth <= threshold
    # a row with one depth only has no depth error to be judged by: there the lateral error always counts
    judged = torch.ones_like(agree) if lateral else errors.depth == 0
    return agree & (~judged | (errors.lateral <= threshold))


def support(rows: Correspondences, errors: PairErrors, threshold: float) -> float:
    """Share of two-sided rows that agree, beyond what exchanged targets would give (0: chance, 1: all)."""
    both = (rows.depth_i > 0) & (rows.depth_j > 0)
    if not bool(both.any()):
        return 0.0
    found = float(consistent(errors, threshold, lateral=True)[both].double().mean())
    chance = float((errors.chance <= threshold).double().mean())
    return (found - chance) / (1 - chance) if chance < 1 else 0.0


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


def relaxations(
    nodes: Int[Tensor, "P 2"], sound: Bool[Tensor, "P steps"], support_at: Float[Tensor, "P steps"]
) -> Int[Tensor, "P"]:
    """The threshold step each pair is kept at, -1 if dropped; only pairs that join what is apart are relaxed.

    Steps rise together for the whole graph, and within a step the best supported pair comes first.
    """
    step = torch.where(sound[:, 0], 0, -1)
    parent = list(range(int(nodes.max()) + 1 if nodes.numel() else 0))
    for a, b in nodes[step == 0].tolist():
        parent[_root(parent, a)] = _root(parent, b)
    for level in range(1, sound.shape[1]):
        weak = ((step < 0) & sound[:, level]).nonzero().flatten()
        for pair in weak[support_at[weak, level].argsort(descending=True, stable=True)].tolist():
            a, b = (_root(parent, node) for node in nodes[pair].tolist())
            if a != b:
                parent[a] = b
                step[pair] = level
    return step


def report(
    pairs: Int[Tensor, "P 3"],
    step: Int[Tensor, "P"],
    kept: Int[Tensor, "P"],
    verdicts: Verdicts,
    config: SamplingConfig,
) -> SamplingReport:
    """What happened to each pair, and in words."""
    threshold = torch.tensor([*config.thresholds(), torch.nan], dtype=torch.float64)[step]
    few = (step < 0) & (verdicts.count[:, 0] < config.min_per_pair)
    chance = (step < 0) & ~few
    relaxed = (step > 0).nonzero().flatten().tolist()
    notes = [
        f"{int(kept.sum())} rows of {int((step >= 0).sum())} of {len(pairs)} pairs, {len(relaxed)} relaxed; "
        f"dropped {int(few.sum())} with too few consistent matches, {int(chance.sum())} no better than chance"
    ]
    for number in relaxed[:_NAMED_PAIRS]:
        edge, i, j = pairs[number].tolist()
        notes.append(
            f"edge {edge} (observations {i}, {j}) relaxed to depth consistency {threshold[number]:.2g} "
            "to hold the graph together"
        )
    if len(relaxed) > _NAMED_PAIRS:
        notes.append(f"and {len(relaxed) - _NAMED_PAIRS} more pairs relaxed")
    return SamplingReport(pairs, kept, threshold, verdicts.support[:, 0], tuple(notes))


def _root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def _machine_memory() -> int:
    """Bytes of physical memory: the whole, not what is free now, so that a machine repeats itself."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

"""Which pairs are kept: enough matches that agree, beyond chance, or needed to hold the graph together."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.matching.consistency import PairErrors
from geoweaver.matching.sampling import consistent
from geoweaver.matching.sampling_config import SamplingConfig

_SIGMAS = 3.0
"""How far beyond the scatter of chance a pair's support must lie."""
_GAIN_OF_FITTING = 1.0
"""Support that a fit to n wrong matches gains, times sqrt(n) (docs/decisions/0002-sampling.md)."""
_GAIN_OF_COUNTING = 0.5
"""The same for given cameras: few rows count in steps."""
_NAMED_PAIRS = 20
"""Relaxed pairs that the notes name one by one."""


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
    needed: Float[Tensor, "P steps"]
    """Support below which wrong matches could do as well."""

    @classmethod
    def empty(cls, pairs: int, steps: int) -> "Verdicts":
        real = torch.zeros(pairs, steps, dtype=torch.float64)
        return cls(torch.zeros(pairs, steps, dtype=torch.long), real, torch.ones_like(real))

    def judge(self, number: int, errors: PairErrors, config: SamplingConfig) -> bool:
        """Fill in one pair; True where it is worth keeping at the strict threshold."""
        for level, threshold in enumerate(config.thresholds()):
            self.count[number, level] = int(consistent(errors, threshold, config.lateral).sum())
            self.support[number, level], luck = support(errors, threshold)
            self.needed[number, level] = max(config.min_support, luck)
        return bool(self.sound(config)[number, 0])

    def sound(self, config: SamplingConfig) -> Bool[Tensor, "P steps"]:
        """Pairs worth keeping at each step."""
        return (self.count >= config.min_per_pair) & (self.support >= self.needed)


def support(errors: PairErrors, threshold: float) -> tuple[float, float]:
    """Share of two-sided rows that agree, beyond chance (0: chance, 1: all), and what luck could make of it."""
    found = float(consistent(errors, threshold, lateral=True)[~errors.one_sided].double().mean())
    chance = float((errors.chance <= threshold).double().mean())
    # no rows, or a threshold that everything meets: nothing can be told
    if not chance < 1:
        return 0.0, 1.0
    scatter = (2 * chance / (1 - chance)) ** 0.5
    gain = _GAIN_OF_FITTING if errors.fitted else _GAIN_OF_COUNTING
    return (found - chance) / (1 - chance), (gain + _SIGMAS * scatter) / len(errors.chance) ** 0.5


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

"""Which pairs are kept: enough matches that agree, beyond chance, or needed to hold the graph together."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.matching.sampling_config import SamplingConfig

_SIGMAS = 3.0
"""How far beyond the scatter of chance a pair's support must lie."""
_GAIN_OF_FITTING = 1.0
"""Support that a fit to n wrong matches gains, times sqrt(n) (docs/decisions/0002-sampling.md)."""
_GAIN_OF_COUNTING = 0.5
"""The same for given cameras, where it is the coarseness of small counts."""
FINENESS = (1.0, 2.0, 4.0)
"""Divisors of the threshold at which a pair may show that it is no chance."""
_NAMED_PAIRS = 20
"""Pairs that a note names one by one."""


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
    contradicts_prior: Bool[Tensor, "P"]
    """Kept pairs inside a chunk whose matches agree with each other, but not with the prior's cameras."""
    notes: tuple[str, ...]
    """One line each: the total, then which pairs were dropped, kept against the prior, relaxed."""


@dataclass(frozen=True)
class Verdicts:
    """How many of each pair's rows agree at each threshold step, and how far beyond chance."""

    count: Int[Tensor, "P steps"]
    support: Float[Tensor, "P steps"]
    beyond_luck: Bool[Tensor, "P steps"]
    """Where wrong matches could not do as well."""

    @classmethod
    def empty(cls, pairs: int, steps: int) -> "Verdicts":
        real = torch.zeros(pairs, steps, dtype=torch.float64)
        return cls(torch.zeros(pairs, steps, dtype=torch.long), real, torch.zeros(pairs, steps).bool())

    def judge(
        self, numbers: Int[Tensor, "q"], tallies: "Tallies", config: SamplingConfig
    ) -> Bool[Tensor, "q"]:
        """Fill in some pairs; True where one is worth keeping at the strict threshold."""
        self.count[numbers] = tallies.agreeing
        found, luck = (column.reshape(len(numbers), len(FINENESS), -1) for column in support(tallies))
        self.support[numbers] = found[:, 0]
        # matches that crowd in a corner of the image agree by chance too, but not finely
        beyond = (found >= luck.clamp(min=config.min_support)).any(1)
        self.beyond_luck[numbers] = beyond & (tallies.two_sided > 0)[:, None]
        return self.sound(config)[numbers, 0]

    def sound(self, config: SamplingConfig) -> Bool[Tensor, "P steps"]:
        """Pairs worth keeping at each step."""
        return (self.count >= config.min_per_pair) & self.beyond_luck


@dataclass(frozen=True)
class Tallies:
    """How many rows of some pairs agree: what a verdict rests on."""

    agreeing: Int[Tensor, "q steps"]
    """Rows that could be kept at each threshold step."""
    found: Int[Tensor, "q finer"]
    """Two-sided rows that agree at each step, then at the finer ones."""
    lucky: Int[Tensor, "q finer"]
    """The same with their targets exchanged."""
    two_sided: Int[Tensor, "q"]
    fitted: Bool[Tensor, "q"]
    """True where errors refer to the pair's own fit, and so suit the rows a little."""

    @classmethod
    def empty(cls, pairs: int, config: SamplingConfig) -> "Tallies":
        steps = len(config.thresholds())
        agreeing, found, lucky, two_sided = (
            torch.zeros(shape, dtype=torch.long)
            for shape in ((pairs, steps), *((pairs, steps * len(FINENESS)),) * 2, (pairs,))
        )
        return cls(agreeing, found, lucky, two_sided, torch.zeros(pairs, dtype=torch.bool))


def support(tallies: Tallies) -> tuple[Float[Tensor, "q finer"], Float[Tensor, "q finer"]]:
    """Share of two-sided rows that agree beyond chance (0: chance, 1: all), and what luck could reach."""
    count = tallies.two_sided[:, None].double()
    found, chance = tallies.found / count.clamp(min=1), tallies.lucky / count.clamp(min=1)
    # one more by chance than was seen, and never all: few rows say little
    at_least = (tallies.lucky + 1) / (count + 2)
    scatter = (2 * at_least / (1 - at_least)).sqrt()
    gain = torch.where(tallies.fitted, _GAIN_OF_FITTING, _GAIN_OF_COUNTING)[:, None]
    beyond = torch.where(chance < 1, (found - chance) / (1 - chance), 0)
    return beyond, (gain + _SIGMAS * scatter) / count.clamp(min=1).sqrt()


def relaxations(
    nodes: Int[Tensor, "P 2"], sound: Bool[Tensor, "P steps"], support_at: Float[Tensor, "P steps"]
) -> Int[Tensor, "P"]:
    """The threshold step each pair is kept at, -1 if dropped; only pairs that join what is apart are relaxed.

    Steps rise together for the whole graph, and within a step the best supported pair comes first.
    """
    step = torch.where(sound[:, 0], 0, -1)
    parent = _joined(nodes, step == 0)
    for level in range(1, sound.shape[1]):
        weak = ((step < 0) & sound[:, level]).nonzero().flatten()
        for pair in weak[support_at[weak, level].argsort(descending=True, stable=True)].tolist():
            a, b = (_root(parent, node) for node in nodes[pair].tolist())
            if a != b:
                parent[a] = b
                step[pair] = level
    return step


def doubtful(
    nodes: Int[Tensor, "P 2"], inside: Bool[Tensor, "P"], verdicts: Verdicts, config: SamplingConfig
) -> Bool[Tensor, "P"]:
    """Dropped pairs inside a chunk that may be the fault of a wrong camera, not of their matches.

    Such are the pairs of a node that most of its pairs speak against, and those whose ends nothing joins.
    """
    sound = verdicts.sound(config)[:, 0]
    voting = inside & (sound | (verdicts.count[:, -1] >= config.min_per_pair))
    suspect = _suspects(nodes[voting], sound[voting], int(nodes.max()) + 1 if len(nodes) else 0)
    parent = _joined(nodes, sound)
    apart = [_root(parent, a) != _root(parent, b) for a, b in nodes.tolist()]
    return inside & ~sound & (suspect[nodes].any(-1) | torch.tensor(apart, dtype=torch.bool))


def _suspects(nodes: Int[Tensor, "q 2"], sound: Bool[Tensor, "q"], count: int) -> Bool[Tensor, "nodes"]:
    """Nodes that most of their pairs speak against, the worst first: its pairs then blame nobody else."""
    suspect = torch.zeros(count, dtype=torch.bool)
    while len(nodes):
        total = torch.bincount(nodes.flatten(), minlength=count)
        good = torch.bincount(nodes[sound].flatten(), minlength=count)
        share = torch.where(total > 0, good / total.clamp(min=1), 1)
        # of equally bad nodes the one with more pairs: it explains more
        worst = int((share - 1e-6 * total / (total.max() + 1)).argmin())
        if share[worst] >= 0.5:
            break
        suspect[worst] = True
        rest = (nodes != worst).all(-1)
        nodes, sound = nodes[rest], sound[rest]
    return suspect


def report(
    pairs: Int[Tensor, "P 3"],
    step: Int[Tensor, "P"],
    own_fit: Bool[Tensor, "P"],
    kept: Int[Tensor, "P"],
    verdicts: Verdicts,
    config: SamplingConfig,
) -> SamplingReport:
    """What happened to each pair, and in words."""
    threshold = torch.tensor([*config.thresholds(), torch.nan], dtype=torch.float64)[step]
    few = (step < 0) & (verdicts.count[:, 0] < config.min_per_pair)
    contradicting = own_fit & (step >= 0)
    notes = [
        f"{int(kept.sum())} rows of {int((step >= 0).sum())} of {len(pairs)} pairs",
        *_named("dropped, too few consistent matches", pairs[few]),
        *_named("dropped, no better than chance", pairs[~few & (step < 0)]),
        *_named("kept against the prior's cameras, which their matches contradict", pairs[contradicting]),
    ]
    for level, value in enumerate(config.thresholds()[1:], 1):
        notes += _named(
            f"relaxed to depth consistency {value:.2g} to hold the graph together", pairs[step == level]
        )
    return SamplingReport(pairs, kept, threshold, verdicts.support[:, 0], contradicting, tuple(notes))


def _named(what: str, pairs: Int[Tensor, "q 3"]) -> list[str]:
    """One line with the edges it is true of, the last of many counted only; none where there are none."""
    if not len(pairs):
        return []
    names = [f"{e} (observations {i}, {j})" for e, i, j in pairs[:_NAMED_PAIRS].tolist()]
    rest = [f"{len(pairs) - len(names)} more"] if len(pairs) > len(names) else []
    return [f"{what}: {len(pairs)} pairs, of edge {', '.join(names + rest)}"]


def _joined(nodes: Int[Tensor, "P 2"], kept: Bool[Tensor, "P"]) -> list[int]:
    """Union-find over the nodes that kept pairs join."""
    parent = list(range(int(nodes.max()) + 1 if nodes.numel() else 0))
    for a, b in nodes[kept].tolist():
        parent[_root(parent, a)] = _root(parent, b)
    return parent


def _root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node

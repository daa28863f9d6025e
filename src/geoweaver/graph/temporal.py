"""Temporal edges: neighbours of one sub-folder, doubling offsets, and more across chunk borders."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import Chunk, EdgeKind
from geoweaver.errors import ConfigError


@dataclass(frozen=True)
class TemporalConfig:
    """Which neighbours in time are matched; their number is linear in the frames."""

    offsets: tuple[int, ...] = (1, 2, 4, 8)
    """Steps along a chain's own frames: doubling gives each frame short and long baselines."""
    border: tuple[int, ...] = (1, 2, 4, 8)
    """Every frame so many steps before a chunk border is paired with every one so many after it."""
    mend: int = 3
    """Frames on each side of a weak link of the chain that are all paired with each other."""

    def __post_init__(self) -> None:
        if 1 not in self.offsets or min(self.offsets) < 1 or min(self.border, default=1) < 1 or self.mend < 1:
            raise ConfigError(
                "temporal edges: offsets, border and mend must be at least 1, and 1 must be among the offsets"
            )


def frame_chains(chunks: Sequence[Chunk], chain: Int[Tensor, "F"]) -> list[list[int]]:
    """The frames of each chain in order, as far as chunks hold them; two cameras may take turns in one."""
    chains: dict[int, set[int]] = {}
    for chunk in chunks:
        for frame in chunk.frames:
            chains.setdefault(int(chain[frame]), set()).add(frame)
    return [sorted(chains[c]) for c in sorted(chains)]


def temporal_pairs(
    chunks: Sequence[Chunk], chain: Int[Tensor, "F"], config: TemporalConfig
) -> Int[Tensor, "p 2"]:
    """Pairs of neighbours in time, each once, sorted."""
    pairs = {
        (row[a], row[a + offset])
        for row in frame_chains(chunks, chain)
        for offset in config.offsets
        for a in range(len(row) - offset)
    }
    for left, right in pairwise(chunks):
        follows = left.frames[-1] <= right.frames[0]
        if follows and chain[left.frames[0]] == chain[right.frames[0]]:
            pairs |= _across(left, right, config.border)
    return as_pairs(pairs)


def mending_pairs(
    weak: Int[Tensor, "w 2"], chunks: Sequence[Chunk], chain: Int[Tensor, "F"], config: TemporalConfig
) -> Int[Tensor, "p 2"]:
    """More pairs around links of the chain that hardly hold: all of a few frames before with all after."""
    chains = frame_chains(chunks, chain)
    place = {frame: (c, k) for c, row in enumerate(chains) for k, frame in enumerate(row)}
    pairs = set()
    for _, j in weak.tolist():
        row, k = chains[place[j][0]], place[j][1]
        before, after = row[max(0, k - config.mend) : k], row[k : k + config.mend]
        pairs |= {(a, b) for a in before for b in after}
    return as_pairs(pairs)


def temporal_kind(pairs: Int[Tensor, "p 2"], chunks: Sequence[Chunk]) -> Int[Tensor, "p"]:
    """TEMPORAL where a chunk holds both frames, else CROSS_CHUNK."""
    member: dict[int, set[int]] = {}
    for k, chunk in enumerate(chunks):
        for frame in chunk.frames:
            member.setdefault(frame, set()).add(k)
    together = [not member.get(i, set()).isdisjoint(member.get(j, set())) for i, j in pairs.tolist()]
    inside = torch.tensor(together, dtype=torch.bool)
    return torch.where(inside, int(EdgeKind.TEMPORAL), int(EdgeKind.CROSS_CHUNK))


def as_pairs(pairs: set[tuple[int, int]]) -> Int[Tensor, "p 2"]:
    """A set of pairs as a sorted tensor."""
    return torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2)


def _across(left: Chunk, right: Chunk, steps: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs over a border; where the chunks share their frame, that frame is step 0 on both sides."""
    shared = left.frames[-1] == right.frames[0]
    before = [left.frames[-1 - a + (not shared)] for a in steps if a - (not shared) < len(left)]
    after = [right.frames[b - (not shared)] for b in steps if b - (not shared) < len(right)]
    return {(min(i, j), max(i, j)) for i in before for j in after if i != j}

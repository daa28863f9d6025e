"""Non-local candidates: frames that look alike though far apart in time, found block by block."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.errors import ConfigError

_BLOCK = 256
"""Frames compared with all others at once: what bounds the memory."""
_SAMPLE = 1024
"""Frames whose similarities tell what is usual in this sequence."""


@dataclass(frozen=True)
class RetrievalConfig:
    """How candidates are looked for."""

    per_frame: int = 5
    """Candidates that a frame may name."""
    min_gap: int = 16
    """Fewest steps between candidates of one camera: below it the temporal edges serve."""
    spread: int = 4
    """A candidate must be the most alike within so many steps around it: neighbours say the same twice."""

    def __post_init__(self) -> None:
        if min(self.per_frame, self.min_gap) < 1 or self.spread < 0:
            raise ConfigError("retrieval: per_frame and min_gap must be at least 1, spread at least 0")


@dataclass(frozen=True)
class Candidates:
    """Pairs of frames, i < j, each once, sorted; rank is the share of far pairs that look less alike."""

    pairs: Int[Tensor, "c 2"]
    rank: Float[Tensor, "c"]

    def __len__(self) -> int:
        return len(self.pairs)


def find_candidates(
    descriptors: Float[Tensor, "F D"], chains: Sequence[Sequence[int]], config: RetrievalConfig
) -> Candidates:
    """Each frame's most similar frames that are not its neighbours in time; zero descriptors find nothing."""
    frames = torch.tensor([f for chain in chains for f in chain], dtype=torch.long)
    place = _places(chains, config)
    unit = torch.nn.functional.normalize(descriptors[frames].float(), dim=1)
    blind = unit.norm(dim=1) < 0.5
    named, likeness = [], []
    for start in range(0, len(frames), _BLOCK):
        rows = torch.arange(start, min(start + _BLOCK, len(frames)))
        similar = _similar(unit, place, blind, rows, config.min_gap)
        top = _peaks(similar, config.spread).topk(min(config.per_frame, len(frames)), 1)
        row, column = (top.values > -1).nonzero(as_tuple=True)
        named.append(torch.stack([frames[rows[row]], frames[top.indices[row, column]]], 1))
        likeness.append(top.values[row, column])
    if not named:
        return Candidates(torch.zeros(0, 2, dtype=torch.long), torch.zeros(0))
    usual = _usual(unit, place, blind, config.min_gap)
    return _unique(torch.cat(named).sort(1).values, torch.cat(likeness), usual)


def _places(chains: Sequence[Sequence[int]], config: RetrievalConfig) -> Int[Tensor, "n"]:
    """A frame's step in its chain, with gaps between the chains: cameras are never neighbours in time."""
    parts, start = [torch.zeros(0, dtype=torch.long)], 0
    for chain in chains:
        parts.append(start + torch.arange(len(chain)))
        start += len(chain) + config.min_gap
    return torch.cat(parts)


def _similar(
    unit: Float[Tensor, "n D"], place: Int[Tensor, "n"], blind: Tensor, rows: Int[Tensor, "b"], gap: int
) -> Float[Tensor, "b n"]:
    """Cosines of some frames with all; -2 where they are neighbours in time or one sees nothing."""
    similar = unit[rows] @ unit.T
    near = (place[rows][:, None] - place[None]).abs() < gap
    return similar.masked_fill_(near | blind[None] | blind[rows][:, None], -2)


def _peaks(similar: Float[Tensor, "b n"], spread: int) -> Float[Tensor, "b n"]:
    """-2 everywhere but at the largest within `spread` steps."""
    if spread == 0 or similar.shape[1] <= 1:
        return similar
    highest = torch.nn.functional.max_pool1d(similar[:, None], 2 * spread + 1, 1, spread)[:, 0]
    return similar.masked_fill(similar < highest, -2)


def _usual(
    unit: Float[Tensor, "n D"], place: Int[Tensor, "n"], blind: Tensor, gap: int
) -> Float[Tensor, "s"]:
    """Similarities of far pairs, sorted: of all frames or of some spread through the sequence."""
    some = torch.linspace(0, len(unit) - 1, min(len(unit), _SAMPLE)).long()
    similar = _similar(unit[some], place[some], blind[some], torch.arange(len(some)), gap)
    return similar[similar > -2].sort().values


def _unique(pairs: Int[Tensor, "m 2"], likeness: Float[Tensor, "m"], usual: Float[Tensor, "s"]) -> Candidates:
    """Each pair once, sorted, with its rank."""
    pairs, inverse = torch.unique(pairs, dim=0, return_inverse=True)
    best = torch.full((len(pairs),), -2.0).scatter_reduce(0, inverse, likeness, "amax")
    return Candidates(pairs, torch.searchsorted(usual, best).double() / max(len(usual), 1))

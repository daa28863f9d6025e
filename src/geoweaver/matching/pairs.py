"""Which observations a match is read at: all of them for chunks, the canonical one for frames."""

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import Observations, ViewGraph

TIE = -1
"""The edge number of a shared frame tied to itself: two observations, identical pixels, no matcher."""


def chunk_pairs(graph: ViewGraph, observations: Observations) -> Int[Tensor, "P 3"]:
    """(edge, observation_i, observation_j): each reading of an edge across two chunks, and the ties."""
    order, start, count = _by_frame(observations, _frames(graph, observations))
    edge, i, j = _combinations(graph.edges[:, 0], graph.edges[:, 1], order, start, count)
    frame = (count > 1).nonzero().squeeze(-1)
    _, tie_i, tie_j = _combinations(frame, frame, order, start, count)
    once = tie_i < tie_j
    tie = torch.full_like(tie_i[once], TIE)
    pairs = torch.stack(
        [torch.cat([tie, edge]), torch.cat([tie_i[once], i]), torch.cat([tie_j[once], j])], -1
    )
    crossing = observations.chunk[pairs[:, 1]] != observations.chunk[pairs[:, 2]]
    return sorted_pairs(pairs[crossing])


def frame_pairs(
    graph: ViewGraph, observations: Observations, canonical: Int[Tensor, "F"]
) -> Int[Tensor, "P 3"]:
    """(edge, observation_i, observation_j) with each edge once, at its frames' canonical observations."""
    padded = torch.full((max(_frames(graph, observations), len(canonical)),), -1)
    padded[: len(canonical)] = canonical
    ends = padded[graph.edges]
    edge = (ends >= 0).all(-1).nonzero().squeeze(-1)
    return sorted_pairs(torch.cat([edge[:, None], ends[edge]], -1))


def canonical_observation(observations: Observations, frames: int | None = None) -> Int[Tensor, "F"]:
    """Each frame's most confident observation, the first of equals; -1 where it has none."""
    frames = int(observations.frame.max()) + 1 if frames is None and len(observations) else frames or 0
    confidence = torch.nan_to_num(observations.confidence.double(), nan=-torch.inf)
    canonical = torch.full((frames,), -1)
    order = confidence.argsort(stable=True, descending=True).flip(0)
    # the flip puts the most confident last, and the first of equals after its equals; the last write stays
    for observation in order.tolist():
        canonical[observations.frame[observation]] = observation
    return canonical


def sorted_pairs(pairs: Int[Tensor, "P 3"]) -> Int[Tensor, "P 3"]:
    """By edge, then observation_i, then observation_j: the order of the table."""
    for column in (2, 1, 0):
        pairs = pairs[pairs[:, column].argsort(stable=True)]
    return pairs


def _frames(graph: ViewGraph, observations: Observations) -> int:
    """How many physical frames are spoken of."""
    highest = [int(t.max()) for t in (graph.edges, observations.frame) if t.numel()]
    return max(highest, default=-1) + 1


def _by_frame(observations: Observations, frames: int) -> tuple[Tensor, Tensor, Tensor]:
    """Observations ordered by frame, where each frame's begin, and how many they are."""
    order = observations.frame.argsort(stable=True)
    count = torch.bincount(observations.frame, minlength=frames)
    return order, count.cumsum(0) - count, count


def _combinations(
    frame_i: Tensor, frame_j: Tensor, order: Tensor, start: Tensor, count: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Every (row, observation of frame_i, observation of frame_j)."""
    ways = count[frame_i] * count[frame_j]
    row = torch.repeat_interleave(torch.arange(len(ways)), ways)
    nth = torch.arange(int(ways.sum())) - (ways.cumsum(0) - ways)[row]
    i = order[start[frame_i[row]] + nth // count[frame_j[row]]]
    j = order[start[frame_j[row]] + nth % count[frame_j[row]]]
    return row, i, j

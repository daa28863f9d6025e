"""Tables of correspondences over the box room, and what is asked of them."""

import torch
from box_room import Room, generator

from geoweaver.datatypes import Correspondences, Matches, ViewGraph
from geoweaver.matching import (
    SamplingConfig,
    SamplingReport,
    build_table,
    canonical_observation,
    chunk_pairs,
    frame_pairs,
)

TWO_CHUNKS = [[0, 1, 2, 3], [3, 4, 5, 6]]
CROSSING = [(2, 4), (2, 5), (3, 4)]
ALL_CONFIDENT = SamplingConfig(confidence=1e-9)


def of_chunks(
    room: Room, graph: ViewGraph, matches: Matches, config: SamplingConfig = ALL_CONFIDENT, seed: int = 0
) -> tuple[Correspondences, SamplingReport]:
    pairs = chunk_pairs(graph, room.observations)
    return build_table(pairs, matches, room.observations, room.read, config, generator(seed), "chunks")


def of_frames(
    room: Room, graph: ViewGraph, matches: Matches, config: SamplingConfig = ALL_CONFIDENT
) -> tuple[Correspondences, SamplingReport]:
    pairs = frame_pairs(graph, room.observations, canonical_observation(room.observations))
    return build_table(pairs, matches, room.observations, room.read, config, generator(), "frames")


def truth_of(table: Correspondences, matches: Matches, right: torch.Tensor) -> torch.Tensor:
    """Whether each row of a table is a right match, found again by its pixels."""
    every = zip(matches.edge.tolist(), matches.pixel_i.tolist(), matches.pixel_j.tolist(), strict=True)
    known = {(e, *u, *v): bool(r) for (e, u, v), r in zip(every, right, strict=True)}
    rows = zip(table.edge.tolist(), table.pixel_i.tolist(), table.pixel_j.tolist(), strict=True)
    return torch.tensor([known[(e, *u, *v)] for e, u, v in rows])


def same_columns(a: Correspondences, b: Correspondences, but: tuple[str, ...] = ()) -> bool:
    names = [name for name in vars(a) if name not in but]
    return len(a) == len(b) and all(torch.allclose(getattr(a, n), getattr(b, n)) for n in names)

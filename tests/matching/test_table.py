"""The table on a box room with exact depth: right matches stay, wrong ones fall, gauges do not matter."""

import pytest
import torch
from box_room import generator, make_graph, make_matches, make_room, walk

from geoweaver.datatypes import Correspondences, Matches
from geoweaver.matching import (
    TIE,
    SamplingConfig,
    build_table,
    canonical_observation,
    chunk_pairs,
    frame_pairs,
)

TWO_CHUNKS = [[0, 1, 2, 3], [3, 4, 5, 6]]
CROSSING = [(2, 4), (2, 5), (3, 4)]


def truth_of(table: Correspondences, matches: Matches, right: torch.Tensor) -> torch.Tensor:
    """Whether each row of a table is a right match, found again by its pixels."""
    key = {(int(e), *u.tolist(), *v.tolist()): bool(r) for e, u, v, r in zip(
        matches.edge, matches.pixel_i, matches.pixel_j, right, strict=True)}  # fmt: skip
    rows = zip(table.edge.tolist(), table.pixel_i.tolist(), table.pixel_j.tolist(), strict=True)
    return torch.tensor([key[(e, *u, *v)] for e, u, v in rows])


def same(a: Correspondences, b: Correspondences, names: tuple[str, ...]) -> bool:
    return len(a) == len(b) and all(torch.allclose(getattr(a, n), getattr(b, n)) for n in names)


def test_exact_matches_survive_across_chunks_and_inside_them() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph([*CROSSING, (0, 1)])
    matches, _ = make_matches(room, graph)
    config = SamplingConfig(confidence=1e-9)
    pairs = frame_pairs(graph, room.observations, canonical_observation(room.observations))
    table, report = build_table(pairs, matches, room.observations, room.read, config, generator(), "frames")
    both = (table.depth_i > 0) & (table.depth_j > 0)
    assert (report.kept > 0).all()
    assert len(table) > 0.95 * len(matches)
    assert both.double().mean() > 0.9


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_wrong_matches_fall(share: float) -> None:
    room = make_room(walk(7), TWO_CHUNKS, noise=0.02)
    graph = make_graph([*CROSSING, (0, 1), (4, 5)])
    matches, right = make_matches(room, graph, wrong=dict.fromkeys(range(5), share))
    pairs = chunk_pairs(graph, room.observations)
    table, _ = build_table(pairs, matches, room.observations, room.read, SamplingConfig(), generator())
    rows = table[table.edge != TIE]
    assert truth_of(rows, matches, right).double().mean() > (0.93 if share < 0.5 else 0.85)
    assert set(rows.edge.tolist()) == {0, 1, 2}


def test_loop_between_drifted_chunks_survives_and_wrong_pair_falls() -> None:
    frames, turn = 52, 0.125
    room = make_room(walk(frames, turn), [list(range(k, k + 14)) for k in (0, 13, 26, 38)], noise=0.02)
    graph = make_graph([(0, 50), (1, 51), (2, 20), (12, 14)])
    matches, _ = make_matches(room, graph)
    wrong, _ = make_matches(room, make_graph([(2, 3)]), wrong={0: 1.0})
    matches = Matches(
        torch.cat(
            [matches.edge[matches.edge < 2], torch.full((len(wrong),), 2), matches.edge[matches.edge > 2]]
        ),
        *(
            torch.cat([a[matches.edge < 2], b, a[matches.edge > 2]])
            for a, b in (
                (matches.pixel_i, wrong.pixel_i),
                (matches.pixel_j, wrong.pixel_j),
                (matches.score, wrong.score),
            )
        ),
    )
    table, report = build_table(
        chunk_pairs(graph, room.observations),
        matches,
        room.observations,
        room.read,
        SamplingConfig(),
        generator(),
    )
    count = torch.bincount(table.edge[table.edge >= 0], minlength=4)
    assert (count[:2] > 150).all(), report.notes
    assert count[2] == 0, report.support

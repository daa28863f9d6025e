"""The table where depth is unknown, inputs are empty or wrong, and rows, reads and operations are counted."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from box_room import generator, make_graph, make_matches, make_room, walk
from room_tables import ALL_CONFIDENT, CROSSING, TWO_CHUNKS, of_chunks, of_frames, truth_of
from torch.utils._python_dispatch import TorchDispatchMode

from geoweaver.datatypes import ChunkPrior, Matches
from geoweaver.errors import StoreError
from geoweaver.matching import (
    build_table,
    chunk_pairs,
)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, -2.0, 0.0])
def test_depth_that_is_no_depth_is_unknown(bad: float) -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph([*CROSSING, (4, 5)])
    matches, _ = make_matches(room, graph)
    holes, half = room.priors[1].depth.clone(), room.priors[1].depth.shape[2] // 2
    holes[:, :, :half] = bad
    table, _ = of_chunks(room.with_prior(1, depth=holes), graph, matches)
    rows = table[table.edge == 0]
    left = rows.pixel_j[:, 0] < half
    assert (rows.depth_j[left] == 0).all() and (rows.depth_i[left] > 0).all() and left.any()
    assert (rows.depth_j[rows.pixel_j[:, 0] > half + 1] > 0).all()
    assert all(getattr(table, name).isfinite().all() for name in vars(table))
    assert ((table.depth_i > 0) | (table.depth_j > 0)).all() and (table.weight > 0).all()


def test_one_sided_rows_are_judged_by_where_they_land() -> None:
    room = make_room(walk(3), [[0, 1, 2]])
    holes = room.priors[0].depth.clone()
    holes[1] = 0
    room = room.with_prior(0, depth=holes)
    graph = make_graph([(0, 1), (0, 2), (1, 2)])
    matches, right = make_matches(room, graph, count=600, wrong={0: 0.4, 2: 0.4})
    config = replace(ALL_CONFIDENT, min_support=0.0)
    table, report = of_frames(room, graph, matches, config)
    assert (report.kept == 0).tolist() == [True, False, True], (
        "no pair can be verified by depth on one side alone"
    )
    patched = holes.clone()
    patched[1, :, :48] = make_room(walk(3), [[0, 1, 2]]).priors[0].depth[1, :, :48]
    table, _ = of_frames(room.with_prior(0, depth=patched), graph, matches, config)
    one_sided = table[(table.depth_i == 0) | (table.depth_j == 0)]
    for edge in (0, 2):
        rows = one_sided[one_sided.edge == edge]
        assert len(rows) > 50
        assert truth_of(rows, matches, right).double().mean() > 0.9


def test_depth_known_nowhere_gives_an_empty_table() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph(CROSSING)
    matches, _ = make_matches(room, graph)
    for k in (0, 1):
        room = room.with_prior(k, depth=torch.full_like(room.priors[k].depth, torch.nan))
    table, report = of_chunks(room, graph, matches)
    assert len(table) == 0 and (report.kept == 0).all()


def test_no_pairs_and_no_matches_give_an_empty_table() -> None:
    room = make_room(walk(4), [[0, 1], [2, 3]])
    graph = make_graph([(1, 2)])
    none = Matches(torch.zeros(0).long(), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))
    assert len(of_chunks(room, graph, none)[0]) == 0
    assert len(of_chunks(room, make_graph([]), none)[0]) == 0


def test_a_prior_that_is_not_the_indexed_one_is_told() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph(CROSSING)
    matches, _ = make_matches(room, graph)
    with pytest.raises(StoreError, match="chunk 1 has no frame 3"):
        of_chunks(room.with_prior(1, frame=torch.tensor([10, 11, 12, 13])), graph, matches)


def test_the_budget_is_divided_over_the_pairs() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph(CROSSING)
    matches, _ = make_matches(room, graph)
    table, report = of_chunks(room, graph, matches, replace(ALL_CONFIDENT, max_rows=400))
    assert len(table) <= 400 and (report.kept == 100).all()


def test_each_chunk_is_read_about_once_along_a_chain() -> None:
    chunks = [list(range(3 * k, 3 * k + 4)) for k in range(8)]
    room = make_room(walk(25, 0.05), chunks, resolution=4)
    graph = make_graph([(3 * k - 1, 3 * k + 1) for k in range(1, 8)])
    matches, _ = make_matches(room, graph, count=60)
    reads: Counter[int] = Counter()

    def read(chunk: int) -> ChunkPrior:
        reads[chunk] += 1
        return room.priors[chunk]

    pairs = chunk_pairs(graph, room.observations)
    build_table(pairs, matches, room.observations, read, replace(ALL_CONFIDENT, cached_chunks=2), generator())
    assert sum(reads.values()) == 8, reads


class OpCount(TorchDispatchMode):
    """How many tensor operations run inside."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def _operations(count: int, pairs: list[tuple[int, int]]) -> int:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph(pairs)
    matches, _ = make_matches(room, graph, count=count)
    with OpCount() as ops:
        of_chunks(room, graph, matches)
    return ops.count


def test_operations_do_not_grow_with_the_matches_and_hardly_with_the_pairs() -> None:
    few = _operations(100, [(1, 4), (2, 4), (2, 5)])
    assert _operations(2000, [(1, 4), (2, 4), (2, 5)]) <= few + 10
    assert _operations(100, [(0, 4), (1, 4), (1, 5), (2, 4), (2, 5), (2, 6)]) <= few + 3 * 40

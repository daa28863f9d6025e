"""The table on a box room with exact depth: right matches stay, wrong ones fall, gauges do not matter."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from box_room import SIZE, generator, make_graph, make_matches, make_room, smooth_field, walk
from room_tables import ALL_CONFIDENT, CROSSING, TWO_CHUNKS, of_chunks, of_frames, same_columns, truth_of

from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import so3_exp
from geoweaver.matching import (
    TIE,
    SamplingConfig,
    build_table,
    chunk_pairs,
)


@pytest.mark.parametrize("resolution", [1, 4])
def test_exact_matches_survive_across_chunks_and_inside_them(resolution: int) -> None:
    room = make_room(walk(7), TWO_CHUNKS, resolution=resolution)
    graph = make_graph([*CROSSING, (0, 1)])
    matches, _ = make_matches(room, graph)
    table, report = of_frames(room, graph, matches)
    both = (table.depth_i > 0) & (table.depth_j > 0)
    assert (report.kept > 0).all() and (report.threshold == 0.2).all()
    assert len(table) > 0.9 * len(matches)
    assert both.double().mean() > 0.8


def test_depth_is_read_exactly_in_the_chunks_own_units() -> None:
    room = make_room(walk(7), TWO_CHUNKS, scale=(1.0, 3.0))
    graph = make_graph([(2, 4)])
    table, _ = of_chunks(room, graph, make_matches(room, graph)[0])
    rows = table[(table.edge == 0) & (table.depth_i > 0) & (table.depth_j > 0)]
    tie = table[table.edge == TIE]
    assert torch.allclose(3 * tie.depth_i, tie.depth_j, rtol=1e-9)
    chunk = room.observations.chunk[torch.stack([rows.observation_i, rows.observation_j])]
    assert chunk.unique(dim=1).tolist() == [[0], [1]]
    world_j = room.cam_from_world[4] @ room.cam_from_world[2].inverse()
    ray = torch.cat([(rows.pixel_i - torch.tensor([48.0, 32])) / 80, torch.ones(len(rows), 1)], -1).double()
    moved = world_j.act(rows.depth_i[:, None] * ray)
    # only where a wall meets another is the depth between four pixels not exact
    assert float((moved[:, 2] / rows.depth_j - 1 / 3).abs().quantile(0.8)) < 1e-9


@pytest.mark.parametrize(("share", "precision"), [(0.3, 0.95), (0.6, 0.9)])
def test_wrong_matches_fall(share: float, precision: float) -> None:
    room = make_room(walk(7), TWO_CHUNKS, noise=0.02)
    graph = make_graph([*CROSSING, (0, 1), (4, 5)])
    matches, right = make_matches(room, graph, wrong=dict.fromkeys(range(5), share))
    for table, _ in (of_chunks(room, graph, matches), of_frames(room, graph, matches)):
        rows = table[table.edge != TIE]
        edges = set(rows.edge.tolist())
        truth = truth_of(rows, matches, right)
        assert truth.double().mean() > precision
        assert truth.sum() > 0.9 * right[torch.isin(matches.edge, torch.tensor(list(edges)))].sum()
        assert edges >= {0, 1, 2}


def test_loop_between_drifted_chunks_survives_and_wrong_pair_falls() -> None:
    chunks = [list(range(k, k + 14)) for k in (0, 13, 26, 38)]
    room = make_room(walk(52, 0.125), chunks, resolution=2, noise=0.02)
    graph = make_graph([(0, 50), (1, 51), (2, 20), (12, 14)])
    # frames 2 and 20 look opposite ways: a matcher that is sure of itself there is wrong everywhere
    matches, _ = make_matches(room, make_graph([(0, 50), (1, 51), (2, 3), (12, 14)]), wrong={2: 1.0})
    table, report = of_chunks(room, graph, matches)
    count = torch.bincount(table.edge[table.edge >= 0], minlength=4)
    assert (count[[0, 1, 3]] > 250).all(), report.notes
    assert count[2] == 0, report.support


def test_rows_are_sorted_and_ties_come_first() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph([*CROSSING, (3, 5)])
    table, report = of_chunks(room, graph, make_matches(room, graph)[0])
    key = torch.stack([table.edge, table.observation_i, table.observation_j], -1).tolist()
    assert key == sorted(key) and key[0] == [TIE, 3, 4]
    assert torch.equal(table.pixel_i[table.edge == TIE], table.pixel_j[table.edge == TIE])
    assert Counter(map(tuple, key)) == {
        tuple(p): int(n) for p, n in zip(report.pairs.tolist(), report.kept, strict=True)
    }


def test_the_unit_of_a_chunk_does_not_matter() -> None:
    graph = make_graph([*CROSSING, (0, 1), (4, 6)])
    rooms = [make_room(walk(7), TWO_CHUNKS, scale=(1.0, s), noise=0.03) for s in (1.1, 1100.0, 0.0011)]
    matches, _ = make_matches(rooms[0], graph, wrong=dict.fromkeys(range(5), 0.3))
    for build in (of_chunks, of_frames):
        metres, *others = (build(room, graph, matches, SamplingConfig())[0] for room in rooms)
        assert len(metres) > 500
        assert all(same_columns(metres, other, but=("depth_i", "depth_j")) for other in others)


def test_the_models_confidence_scale_does_not_matter() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph(CROSSING)
    matches, _ = make_matches(room, graph)
    louder = room.with_prior(1, confidence=1000 * room.priors[1].confidence)
    assert same_columns(of_chunks(room, graph, matches)[0], of_chunks(louder, graph, matches)[0])


def test_the_result_depends_neither_on_other_pairs_nor_on_their_order() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph(CROSSING)
    matches, _ = make_matches(room, graph)
    pairs = chunk_pairs(graph, room.observations)
    shuffled = pairs[torch.randperm(len(pairs), generator=generator())]
    config = SamplingConfig(max_per_pair=50, cached_chunks=1)
    everything, fewer = (
        build_table(p, matches, room.observations, room.read, config, generator(5))[0]
        for p in (shuffled, pairs[1:3])
    )
    assert same_columns(everything[torch.isin(everything.edge, fewer.edge)], fewer)
    assert len(fewer) == 100
    other, _ = of_chunks(room, graph, matches, config, seed=6)
    assert not same_columns(everything, other)


def test_fewer_rows_per_pair_are_the_first_of_more() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph([(2, 4)])
    matches, _ = make_matches(room, graph)
    few, many = (of_chunks(room, graph, matches, SamplingConfig(max_per_pair=n))[0] for n in (40, 150))
    assert same_columns(few[few.edge == 0], many[many.edge == 0][:40])


def test_likely_rows_are_drawn_more_often_and_weights_can_be_uniform() -> None:
    room = make_room(walk(7), TWO_CHUNKS)
    graph = make_graph([(2, 4)])
    matches, _ = make_matches(room, graph, count=1000)
    kept, all_of_them = (
        of_chunks(room, graph, matches, replace(ALL_CONFIDENT, max_per_pair=n))[0] for n in (100, 9999)
    )
    uniform, _ = of_chunks(room, graph, matches, replace(ALL_CONFIDENT, max_per_pair=100, weights="uniform"))
    assert (uniform.weight == 1).all()
    assert same_columns(kept, uniform, but=("weight",))
    assert kept[kept.edge == 0].weight.mean() > 1.03 * all_of_them[all_of_them.edge == 0].weight.mean()


def test_a_bad_pair_is_relaxed_only_where_the_graph_needs_it() -> None:
    room = make_room(walk(4), [[0, 1, 2, 3]])
    bent = room.priors[0].depth.clone()
    bent[3] *= (0.5 * smooth_field(1, SIZE, generator(3))[0]).exp()
    room = room.with_prior(0, depth=bent)
    config = replace(ALL_CONFIDENT, min_per_pair=200)
    needed, spare = make_graph([(0, 1), (1, 2), (2, 3)]), make_graph([(0, 1), (0, 2), (1, 2), (2, 3), (1, 3)])
    table, report = of_frames(room, needed, make_matches(room, needed)[0], config)
    assert report.threshold[:2].tolist() == [0.2, 0.2] and report.threshold[2] > 0.2
    assert (torch.bincount(table.edge) >= 200).all()
    assert any("edge 2 " in note and note.startswith("relaxed") for note in report.notes)
    _, report = of_frames(room, spare, make_matches(room, spare)[0], config)
    assert (report.kept[3:] > 0).sum() == 1 and int((report.threshold > 0.2).sum()) == 1


def test_a_wrong_pair_is_not_relaxed_into_the_graph() -> None:
    room = make_room(walk(4), [[0, 1], [2, 3]])
    graph = make_graph([(0, 1), (1, 2), (2, 3)])
    matches, _ = make_matches(room, graph, wrong={1: 1.0})
    table, report = of_frames(room, graph, matches)
    assert set(table.edge.tolist()) == {0, 2}
    assert report.kept[1] == 0 and report.threshold[1].isnan()
    assert report.notes[1] == "dropped, no better than chance: 1 pairs, of edge 1 (observations 1, 2)"


def test_a_wrong_camera_inside_a_chunk_does_not_cost_its_frame() -> None:
    room = make_room(walk(4), [[0, 1, 2, 3]])
    turned = room.observations.cam_from_chunk.rotation.clone()
    turned[3] = so3_exp(torch.tensor([0.1, 0.9, 0.3]).double()) @ turned[3]
    cameras = SE3(turned, room.observations.cam_from_chunk.translation)
    room = replace(room, observations=replace(room.observations, cam_from_chunk=cameras))
    graph = make_graph([(0, 1), (1, 2), (2, 3), (1, 3)])
    table, report = of_frames(room, graph, make_matches(room, graph)[0])
    assert (torch.bincount(table.edge) > 250).all() and (report.threshold == 0.2).all()
    assert report.contradicts_prior.tolist() == [False, False, True, True]
    assert any("edge 2 (observations 2, 3), 3 (observations 1, 3)" in note for note in report.notes)


def test_a_wrong_camera_does_not_cost_its_frame_good_matches_nor_let_wrong_ones_in() -> None:
    room = make_room(walk(6), [[0, 1, 2, 3], [4, 5]])
    turned = room.observations.cam_from_chunk.rotation.clone()
    turned[3] = so3_exp(torch.tensor([0.1, 0.9, 0.3]).double()) @ turned[3]
    cameras = SE3(turned, room.observations.cam_from_chunk.translation)
    room = replace(room, observations=replace(room.observations, cam_from_chunk=cameras))
    # frame 3 is held by frame 4; edge 4 says of frames 0 and 2 what is true of frames 0 and 5
    graph = make_graph([(0, 1), (1, 2), (2, 3), (1, 3), (0, 2), (3, 4), (4, 5)])
    matches, _ = make_matches(room, make_graph([(0, 1), (1, 2), (2, 3), (1, 3), (0, 5), (3, 4), (4, 5)]))
    _, report = of_frames(room, graph, matches)
    assert report.contradicts_prior.tolist() == [False, False, True, True, False, False, False]
    assert (report.kept > 0).tolist() == [True, True, True, True, False, True, True]


@pytest.mark.parametrize("chunks", [TWO_CHUNKS, [[0, 1, 2, 3, 4, 5, 6]]])
def test_a_patch_moved_by_a_common_shift_stands_out(chunks: list[list[int]]) -> None:
    room = make_room(walk(7), chunks, noise=0.02)
    graph = make_graph([(2, 4)])
    matches, _ = make_matches(room, graph)
    patch = (matches.pixel_i[:, 0] > 60) & (matches.pixel_i[:, 1] > 30)
    moved = matches.pixel_j + torch.where(patch[:, None], torch.tensor([-6.0, 5.0]).double(), 0)
    matches = replace(matches, pixel_j=moved)
    strict, loose = (of_frames(room, graph, matches, replace(ALL_CONFIDENT, spread=s))[0] for s in (4.0, 1e9))
    share = [float(truth_of(table, matches, ~patch).double().mean()) for table in (strict, loose)]
    assert 0.1 < float(patch.double().mean()) < 0.4
    assert share[0] > 0.97 and share[1] < 0.9
    assert truth_of(strict, matches, ~patch).sum() > 0.9 * (~patch).sum()

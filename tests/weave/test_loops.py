"""Wrong long-range edges must not bend the map, right ones must stay, and no edge falls at a border."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from geoweaver.assembly.alignment import AlignmentConfig
from geoweaver.assembly.loops import LoopConfig, wide_pairs
from geoweaver.assembly.pairs import group_pairs
from geoweaver.datatypes import Correspondences, Matches, ViewGraph
from geoweaver.synth.simulated_graph import GraphChoice
from geoweaver.synth.simulated_matches import simulate_matches
from geoweaver.synth.simulated_sequence import PRESETS, sequence_truth
from geoweaver.synth.simulated_truth import consecutive_chunks
from geoweaver.weave import WeaveConfig, Woven
from tests.weave.tiny import Tiny, assert_finite, ate, long_range, tiny, woven


def edges_in(result: Woven, case: Tiny) -> torch.Tensor:
    """Which edges Stage 3 ended on."""
    kept = torch.zeros(len(case.graph), dtype=torch.bool)
    kept[torch.unique(result.matches.edge)] = True
    return kept


def check(case: Tiny, fakes_tried: int, right_lost: float, error: float) -> Woven:
    result = woven(case)
    assert_finite(result)
    kept, loops = edges_in(result, case), long_range(case.graph)
    assert int(case.wrong.sum()) >= 0.29 * int(loops.sum())
    tried = torch.unique(torch.cat([result.tables.crossing.edge, result.tables.frames.edge]))
    assert int(case.wrong[tried[tried >= 0]].sum()) >= fakes_tried, "sampling left nothing to judge"
    assert int((kept & case.wrong).sum()) <= 0.05 * int(case.wrong.sum())
    assert int((loops & ~case.wrong & ~kept).sum()) <= right_lost * int((loops & ~case.wrong).sum())
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < error
    return result


def test_wrong_loops_in_a_room_do_not_survive() -> None:
    choice = GraphChoice(offsets=(1, 2), border=(1, 2), long_range=1, gap=20, spread=4, wrong=0.3)
    case = tiny(frames=64, chunk=10, laps=2.0, choice=choice, per_edge=70)
    result = check(case, fakes_tried=6, right_lost=0.1, error=0.06)
    named = {edge for report in result.reports for edge in report.rejected_edges}
    assert len(named & set(case.wrong.nonzero().flatten().tolist())) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "hard"])
def test_wrong_loops_in_a_corridor_do_not_survive(preset: str) -> None:
    truth = sequence_truth("corridor_loop", frames=150, depth_size=(64, 36))
    choice = GraphChoice(offsets=(1, 2), border=(1, 2), long_range=2, gap=30, spread=6, wrong=0.3)
    case = tiny(truth=truth, chunk=16, errors=PRESETS[preset], choice=choice, per_edge=80)
    check(case, fakes_tried=0, right_lost=0.1, error=0.15 if preset == "default" else 0.4)


def test_every_edge_across_a_border_reaches_stage_three() -> None:
    """A shared frame's matches are read at its canonical observation: none is lost, none counted twice."""
    case = tiny(frames=22, chunk=8, laps=0.25, errors=PRESETS["exact"], per_edge=60)
    result = woven(case)
    table, first, second = result.tables.frames, *case.graph.edges.unbind(1)
    rows = torch.bincount(table.edge, minlength=len(case.graph))
    assert set(table.observation_i.tolist()) <= set(result.tables.canonical.tolist())
    for left, right in pairwise(consecutive_chunks(22, 8)):
        border = right.frames[0]
        assert left.frames[-1] == border
        across = (first <= border) & (second >= border)
        assert int(across.sum()) > 8
        assert (rows[across] > 0).all(), f"{int((rows[across] == 0).sum())} edges lost at frame {border}"
    pairs = torch.stack([table.edge, table.observation_i, table.observation_j], 1).unique(dim=0)
    assert len(pairs) == len(pairs[:, 0].unique()) == len(case.graph)


def slipped(case: Tiny, border: int, back: int) -> tuple[Tiny, torch.Tensor]:
    """Wide temporal edges across a border show what was seen some frames earlier; few near ones cross it."""
    first, second = case.graph.edges.unbind(1)
    across = (first < border) & (second >= border)
    wide = across & (second - first > 4)
    edges = torch.stack([first, torch.where(wide, second - back, second)], 1)
    other = ViewGraph(edges, case.graph.kind)
    alike = simulate_matches(case.truth, other, PRESETS["default"].matches, 0, 120, torch.zeros_like(wide))
    right, fake = ~wide[case.matches.edge], wide[alike.edge]
    columns = ("edge", "pixel_i", "pixel_j", "score")
    both = [torch.cat([getattr(case.matches, c)[right], getattr(alike, c)[fake]]) for c in columns]
    order = torch.argsort(both[0], stable=True)
    mixed = replace(case, matches=Matches(*(column[order] for column in both)))
    near = across & ~wide
    dropped = near & (near.cumsum(0) > 1)
    return mixed.without_edges(dropped), wide[~dropped]


def test_wide_temporal_edges_that_see_another_place_do_not_shift_the_frames() -> None:
    """Facades repeat: frames eight apart were matched one window too early, and half of a step was lost."""
    choice = GraphChoice(offsets=(1, 2, 4, 8), border=(1, 3), long_range=0, wrong=0.0)
    case, wrong = slipped(tiny(frames=34, chunk=12, laps=0.4, choice=choice), border=12, back=5)
    assert int(wrong.sum()) >= 5
    settings = (WeaveConfig(), WeaveConfig(alignment=AlignmentConfig(loops=LoopConfig(wide_share=0.0))))
    judged, believed = (woven(case, config) for config in settings)
    tried = torch.unique(judged.tables.frames.edge)
    assert int(wrong[tried].sum()) >= 4, "sampling left nothing to judge"
    assert not (edges_in(judged, case) & wrong).any()
    assert (edges_in(believed, case) & wrong).any()
    assert (edges_in(judged, case) | wrong)[tried].all()


def test_steps_in_time_are_counted_in_frames_that_have_matches() -> None:
    """Of eight frames of two cameras two have no matches: between them lie fewer steps."""
    frames = torch.tensor([[0, 1], [0, 6], [1, 6], [8, 9], [8, 15], [0, 8]])
    rows = torch.zeros(len(frames), 2)
    one = torch.ones(len(frames))
    table = Correspondences(torch.arange(len(frames)), *frames.unbind(1), rows, rows, one, one, one)
    kind = torch.tensor([0, 0, 0, 0, 0, 2])
    group = torch.tensor([0] * 8 + [1] * 8)
    found = wide_pairs(group_pairs(table), kind, group, LoopConfig(near=1))
    assert found.tolist() == [False, True, False, False, True, False]


def test_neighbours_in_time_of_two_cameras_are_near() -> None:
    """A phone is turned after three frames: the last one before and the first one after it are neighbours."""
    frames = torch.tensor([[0, 1], [1, 2], [2, 3], [1, 4], [3, 4], [4, 5]])
    rows, one = torch.zeros(len(frames), 2), torch.ones(len(frames))
    table = Correspondences(torch.arange(len(frames)), *frames.unbind(1), rows, rows, one, one, one)
    kind, group = torch.zeros(len(frames), dtype=torch.long), torch.tensor([0, 0, 0, 1, 1, 1])
    found = wide_pairs(group_pairs(table), kind, group, LoopConfig(near=1))
    assert found.tolist() == [False, False, False, True, False, False]

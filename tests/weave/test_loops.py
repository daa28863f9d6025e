"""Wrong long-range edges must not bend the map, right ones must stay, and no edge falls at a border."""

from itertools import pairwise

import pytest
import torch

from geoweaver.synth.simulated_graph import GraphChoice
from geoweaver.synth.simulated_sequence import PRESETS, sequence_truth
from geoweaver.synth.simulated_truth import consecutive_chunks
from geoweaver.weave import Woven
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

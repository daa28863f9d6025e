"""Both solvers on a device that is not the CPU: the tensor path, and no tensor that meets another's."""

from dataclasses import replace

import pytest
import torch

from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig, align_chunks
from geoweaver.assembly.frame_refinement import refine_frames
from geoweaver.assembly.frame_settings import FrameRefinementConfig, paper_phases
from geoweaver.assembly.pairs import group_pairs
from geoweaver.assembly.stopping import StopRule
from geoweaver.datatypes import ChunkLayout, StageReport
from geoweaver.weave import WeaveConfig, weave
from tests.assembly.elsewhere import ELSEWHERE, SecondDevice
from tests.assembly.scenes import scene
from tests.assembly.test_problems import frame_setup, perturbed, shaken
from tests.weave.tiny import tiny

BRIEF = StopRule(most=6, window=200, median_only=True)


def test_the_second_device_computes_and_refuses_to_mix() -> None:
    here = torch.arange(6.0).reshape(2, 3)
    with SecondDevice():
        there = here.to(ELSEWHERE)
        assert there.device == ELSEWHERE
        total = torch.zeros(3, device=there.device).index_add_(
            0, torch.tensor([0, 2]).to(ELSEWHERE), there[:, 0]
        )
        total[1:2] += 1
        assert torch.equal(total.cpu(), torch.tensor([0.0, 1, 3]))
        assert float((there * torch.tensor(2.0)).sum()) == 30
        grown = here.clone().requires_grad_()
        (grown.to(ELSEWHERE).square().sum().cpu() + grown.sum()).backward()
        assert torch.equal(grown.grad, 2 * here + 1)
        for mixed in (
            lambda: there + here,
            lambda: here + there.sum(),
            lambda: here[there[0].long()],
            lambda: there[torch.tensor([0, 1])],
            lambda: torch.cat([here, there]),
            lambda: there.index_add_(0, torch.tensor([0]), there[:1]),
        ):
            with pytest.raises(RuntimeError, match="two devices meet"):
                mixed()
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()


def same_way_down(here: StageReport, there: StageReport) -> bool:
    return (
        here.why_stopped == there.why_stopped
        and there.objective == pytest.approx(here.objective, rel=1e-9)
        and there.median_at == pytest.approx(here.median_at, rel=1e-6)
    )


@pytest.mark.parametrize(
    "config",
    [
        ChunkAlignmentConfig(),
        ChunkAlignmentConfig(solver="adam", adam_rule=BRIEF),
        ChunkAlignmentConfig(solver="adam", adam_rule=BRIEF, residual="world", both_directions=False),
    ],
    ids=["lm", "adam", "adam in the world"],
)
def test_stage_2_is_the_same_elsewhere(config: ChunkAlignmentConfig) -> None:
    s = scene(frames=12, points=40, noise=0.01)
    layout = perturbed(s.world_from_chunk, 0.05)
    start = ChunkLayout(layout, torch.zeros(len(layout), dtype=torch.long))
    matches = group_pairs(s.chunk_table)
    here, told = align_chunks(matches, s.observations, start, config)
    with SecondDevice() as second:
        there, told_there = align_chunks(matches.to(ELSEWHERE), s.observations, start, config)
    assert second.operations > 100
    assert torch.allclose(there.world_from_chunk.matrix(), here.world_from_chunk.matrix(), rtol=0, atol=1e-9)
    assert same_way_down(told, told_there)


@pytest.mark.parametrize(
    ("config", "calibrated"),
    [
        (FrameRefinementConfig(), True),
        (FrameRefinementConfig(), False),
        (FrameRefinementConfig(solver="adam"), False),
        (FrameRefinementConfig(solver="adam", residual="world", phases=paper_phases()), True),
    ],
    ids=["lm, calibrated", "lm", "adam", "adam in the world"],
)
def test_stage_3_is_the_same_elsewhere(config: FrameRefinementConfig, calibrated: bool) -> None:
    _, start = frame_setup(0.01, calibrated)
    config = replace(config, adam_rule=BRIEF, lm_rule=StopRule(most=3), matches_first=20)
    state = shaken(start.state, 0.01)
    here, told = refine_frames(start.matches, start.setup, state, config)
    with SecondDevice() as second:
        there, told_there = refine_frames(start.matches.to(ELSEWHERE), start.setup, state, config)
    assert second.operations > 100
    bends = ("depth_bend",) if any(phase.bend for phase in config.phases) else ()
    for name in ("depth_scale", "depth_shift", "focal_delta", *bends):
        assert torch.allclose(getattr(there, name), getattr(here, name), rtol=1e-9, atol=1e-9), name
    moved = there.cam_from_world.matrix() - here.cam_from_world.matrix()
    assert float(moved.abs().max()) < 1e-9
    assert all(same_way_down(a, b) for a, b in zip(told, told_there, strict=True))


def test_the_whole_weave_is_the_same_elsewhere() -> None:
    case = tiny(frames=13, chunk=5, laps=0.16, per_edge=30)
    told = (case.observations, case.graph, case.matches, case.priors.__getitem__)
    group, brief = torch.zeros(13, dtype=torch.long), StopRule(most=3)
    usual = WeaveConfig()
    config = replace(
        usual,
        links=replace(usual.links, rule=brief),
        alignment=replace(usual.alignment, solver=ChunkAlignmentConfig(lm_rule=brief)),
        refinement=FrameRefinementConfig(lm_rule=brief),
    )
    here = weave(*told, group, False, config)
    with SecondDevice() as second:
        there = weave(*told, group, False, config, device=ELSEWHERE)
    assert second.operations > 1000
    moved = there.state.cam_from_world.matrix() - here.state.cam_from_world.matrix()
    assert float(moved.abs().max()) < 1e-9
    assert there.trust.reason == here.trust.reason
    assert torch.allclose(there.trust.sigma, here.trust.sigma, rtol=1e-6)
    assert all(same_way_down(a, b) for a, b in zip(here.reports[1:], there.reports[1:], strict=True))

"""Both stages' linear systems against finite differences, and both solvers on exact scenes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from geoweaver.assembly import adam
from geoweaver.assembly.blocks import BlockSystem
from geoweaver.assembly.chunk_alignment import (
    ChunkAlignmentConfig,
    align_chunks,
    chunk_problem,
    first_of_each,
)
from geoweaver.assembly.frame_problem import FrameProblem, frame_problem
from geoweaver.assembly.frame_refinement import refine_frames
from geoweaver.assembly.frame_settings import FrameRefinementConfig
from geoweaver.assembly.frames_start import start_frames
from geoweaver.assembly.links import LinkConfig
from geoweaver.assembly.pairs import group_pairs
from geoweaver.assembly.sequential import initialise_chunks
from geoweaver.assembly.stopping import StopRule
from geoweaver.assembly.trust import TrustConfig, frame_sigma
from geoweaver.datatypes import ChunkLayout, EdgeKind, FrameState
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.registration import umeyama
from tests.assembly.scenes import SIZE, scene


def perturbed(layout: Sim3, size: float, seed: int = 1) -> Sim3:
    g = torch.Generator().manual_seed(seed)
    delta = size * torch.randn(len(layout), 7, generator=g, dtype=torch.float64)
    delta[0] = 0
    return layout @ Sim3.exp(delta)


def test_chunk_gradient_is_the_derivative() -> None:
    s = scene(noise=0.02)
    matches = group_pairs(s.chunk_table)
    held = first_of_each(torch.zeros(len(s.world_from_chunk), dtype=torch.long))
    problem = chunk_problem(matches, s.observations, held, ChunkAlignmentConfig())
    layout = perturbed(s.world_from_chunk, 0.01)
    _, system = problem.linearise(layout)
    for chunk in range(len(layout)):
        for axis in range(7):
            step = torch.zeros(len(layout), 7, dtype=torch.float64)
            step[chunk, axis] = 1e-6
            numeric = (problem.loss(layout @ Sim3.exp(step)) - problem.loss(layout @ Sim3.exp(-step))) / 2e-6
            assert numeric == pytest.approx(float(system.gradient[chunk, axis]), rel=1e-4, abs=1e-7)


def frame_setup(noise: float, calibrated: bool = False):  # type: ignore[no-untyped-def]
    s = scene(noise=noise)
    layout = ChunkLayout(s.world_from_chunk, torch.zeros(len(s.world_from_chunk), dtype=torch.long))
    group = torch.arange(len(s.cam_from_world)) % 2
    return s, start_frames(s.frame_table, s.observations, layout, s.canonical, group, calibrated)


def shaken(state: FrameState, size: float, seed: int = 3) -> FrameState:
    g = torch.Generator().manual_seed(seed)
    n = len(state.depth_scale)
    delta = size * torch.randn(n, 6, generator=g, dtype=torch.float64)
    delta[0] = 0
    a, b = (size * torch.randn(n, generator=g, dtype=torch.float64) for _ in range(2))
    return FrameState(SE3.exp(delta) @ state.cam_from_world, 1 + a, b, state.focal_delta + 2.0)


@pytest.mark.parametrize("phase", [0, 1])
def test_frame_gradient_is_the_derivative(phase: int) -> None:
    _, start = frame_setup(0.02)
    config = FrameRefinementConfig()
    problem = frame_problem(start.matches, start.setup, config, config.phases[phase])
    state = shaken(start.state, 0.01)
    _, system = problem.linearise(state)

    def loss(frame: int, axis: int, h: float) -> float:
        delta = torch.zeros(len(state.depth_scale), 8, dtype=torch.float64)
        delta[frame, axis] = h
        moved = SE3.exp(delta[:, :6]) @ state.cam_from_world
        return problem.loss(
            FrameState(
                moved, state.depth_scale + delta[:, 6], state.depth_shift + delta[:, 7], state.focal_delta
            )
        )

    for frame in (0, 5, 11, 20):
        for axis in range(8):
            numeric = (loss(frame, axis, 1e-6) - loss(frame, axis, -1e-6)) / 2e-6
            assert numeric == pytest.approx(float(system.gradient[frame, axis]), rel=1e-3, abs=1e-7)
    for g in range(2):
        for axis in range(2):
            ends = []
            for h in (1e-4, -1e-4):
                focal = state.focal_delta.clone()
                focal[g, axis] += h
                ends.append(
                    problem.loss(
                        FrameState(state.cam_from_world, state.depth_scale, state.depth_shift, focal)
                    )
                )
            numeric = (ends[0] - ends[1]) / 2e-4
            assert numeric == pytest.approx(float(system.corner_gradient[2 * g + axis]), rel=1e-3, abs=1e-9)


def centres_error(estimate: SE3, truth: SE3) -> float:
    fit = umeyama(estimate.centre, truth.centre)
    return float((fit.act(estimate.centre) - truth.centre).norm(dim=-1).square().mean().sqrt())


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_lm_finds_the_exact_layout(unit: float) -> None:
    s = scene(unit=unit)
    start = ChunkLayout(
        perturbed(s.world_from_chunk, 0.15), torch.zeros(len(s.world_from_chunk), dtype=torch.long)
    )
    layout, report = align_chunks(group_pairs(s.chunk_table), s.observations, start, ChunkAlignmentConfig())
    assert torch.allclose(
        layout.world_from_chunk.scale / s.world_from_chunk.scale, torch.ones(1).double(), atol=1e-3
    )
    assert report.median_px < 0.02
    assert report.objective[-1] < 0.2 * report.objective[0]


@pytest.mark.parametrize("calibrated", [True, False])
def test_lm_refines_shaken_frames(calibrated: bool) -> None:
    s, start = frame_setup(0.0, calibrated)
    state = shaken(start.state, 0.02)
    state = FrameState(state.cam_from_world, state.depth_scale, state.depth_shift, 0 * state.focal_delta)
    before = centres_error(state.cam_from_world, s.cam_from_world)
    refined, _ = refine_frames(start.matches, start.setup, state, FrameRefinementConfig())
    assert centres_error(refined.cam_from_world, s.cam_from_world) < 0.02 * before
    assert (refined.depth_scale - 1).abs().max() < 0.02


def test_adam_descends_the_same_objective() -> None:
    s = scene(noise=0.01)
    start = ChunkLayout(
        perturbed(s.world_from_chunk, 0.05), torch.zeros(len(s.world_from_chunk), dtype=torch.long)
    )
    matches = group_pairs(s.chunk_table)
    rule = StopRule(most=150, window=200, median_only=True)
    config = ChunkAlignmentConfig(solver="adam", adam_rule=rule)
    _, by_adam = align_chunks(matches, s.observations, start, config)
    _, by_lm = align_chunks(matches, s.observations, start, ChunkAlignmentConfig(matches_first=10_000))
    assert by_adam.objective[0] == pytest.approx(by_lm.objective[0], rel=1e-12)
    assert by_adam.objective[-1] < 0.7 * by_adam.objective[0]
    assert by_lm.objective[-1] <= by_adam.objective[-1]


def test_adam_returns_the_state_that_its_trace_ends_with() -> None:
    _, start = frame_setup(0.02)
    seen: list[FrameState] = []
    rule = StopRule(most=3, median_only=True)
    config = FrameRefinementConfig(solver="adam", adam_rule=rule, learning_rate=1e-2)
    config = replace(config, phases=config.phases[:1])
    begun = shaken(start.state, 0.02)

    refined, (report,) = refine_frames(
        start.matches, start.setup, begun, config, watch=lambda state, _: seen.append(state)
    )

    problem = frame_problem(start.matches, start.setup, config, config.phases[0])
    assert len(report.objective) == len(report.median_at) == len(seen) == 4
    assert problem.loss(refined) == pytest.approx(report.objective[-1], rel=1e-9)
    assert problem.median_px(refined) == pytest.approx(report.median_at[-1], rel=1e-5)
    # a watcher may keep what it saw: no later step changes it
    assert [problem.loss(s) for s in seen] == pytest.approx(list(report.objective), rel=1e-9)


def test_reports_hold_the_medians_that_the_test_to_stop_looks_at() -> None:
    s = scene(noise=0.01)
    layout = perturbed(s.world_from_chunk, 0.1)
    start = ChunkLayout(layout, torch.zeros(len(layout), dtype=torch.long))
    matches = group_pairs(s.chunk_table)
    _, chunks = align_chunks(matches, s.observations, start, ChunkAlignmentConfig())
    _, begin = frame_setup(0.01)
    _, frames = refine_frames(begin.matches, begin.setup, shaken(begin.state, 0.01), FrameRefinementConfig())
    for report in (chunks, *frames):
        assert len(report.median_at) == len(report.objective) == len(report.seconds_at) > 1
        assert report.median_at[-1] == report.median_px
    assert chunks.median_at[-1] < 0.2 * chunks.median_at[0]


def test_stage_1_reports_what_its_layout_leaves_of_the_matches() -> None:
    s = scene(noise=0.01)
    kind = torch.full((int(s.chunk_table.edge.max()) + 1,), int(EdgeKind.TEMPORAL))
    matches = group_pairs(s.chunk_table)
    layout, _, report = initialise_chunks(matches, s.observations, kind, LinkConfig(), 0)
    held = first_of_each(layout.component)
    problem = chunk_problem(matches, s.observations, held, ChunkAlignmentConfig())
    assert report.median_px == problem.median_px(layout.world_from_chunk)
    assert 0 < report.median_px < 5


def test_adam_stand_in_has_the_gradient() -> None:
    """The linear stand-in that Adam descends has the objective's own gradient."""
    _, start = frame_setup(0.02)
    config = FrameRefinementConfig()
    problem = frame_problem(start.matches, start.setup, config, config.phases[1])
    state = shaken(start.state, 0.01)
    shift = state.cam_from_world.translation.clone().requires_grad_()
    live = FrameState(
        SE3(state.cam_from_world.rotation, shift), state.depth_scale, state.depth_shift, state.focal_delta
    )
    _, stand_in = adam._objective(problem, live, problem.parameters)
    (gradient,) = torch.autograd.grad(stand_in, shift)
    h = 1e-6
    for frame, axis in ((2, 0), (9, 1), (17, 2)):
        ends = []
        for sign in (h, -h):
            t = shift.detach().clone()
            t[frame, axis] += sign
            ends.append(
                problem.loss(
                    FrameState(
                        SE3(state.cam_from_world.rotation, t),
                        *[getattr(state, n) for n in ("depth_scale", "depth_shift", "focal_delta")],
                    )
                )
            )
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(
            float(gradient[frame, axis]), rel=1e-3, abs=1e-8
        )


def test_two_level_solve_equals_the_dense_one() -> None:
    _, start = frame_setup(0.02)
    config = FrameRefinementConfig()
    problem = frame_problem(start.matches, start.setup, config, config.phases[1])
    _, system = problem.linearise(shaken(start.state, 0.01))
    assert isinstance(system, BlockSystem)
    frames, focal = system.solve(1e-3)
    iterative = system.solve_many(1e-3, system.right_side()[:, None], 1e-9)[:, 0]
    exact = torch.cat([frames.flatten(), focal]).numpy()
    assert np.abs(iterative - exact).max() < 1e-6 * np.abs(exact).max()


def test_cameras_that_no_linear_system_determines_have_infinite_sigmas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, start = frame_setup(0.02)
    config = FrameRefinementConfig()
    problem = frame_problem(start.matches, start.setup, config, config.phases[0])
    assert frame_sigma(problem, start.state, SIZE, TrustConfig()).isfinite().all()
    system = problem.linearise(start.state)[1]
    spoiled = replace(system, diagonal=-system.diagonal)
    monkeypatch.setattr(FrameProblem, "linearise", lambda *_: (0.0, spoiled))
    assert frame_sigma(problem, start.state, SIZE, TrustConfig()).isposinf().all()

"""Depth that bends inside a frame: its sums, its elimination, and what it is worth."""

from dataclasses import replace

import numba
import pytest
import torch

from geoweaver.assembly import adam, lm
from geoweaver.assembly.bend import bend_grid, bent_matches
from geoweaver.assembly.bend_tensors import bend_sums_of_rows
from geoweaver.assembly.frame_priors import bend_stiffness
from geoweaver.assembly.frame_problem import FrameProblem, frame_problem
from geoweaver.assembly.frame_refinement import refine_frames
from geoweaver.assembly.frame_settings import FrameRefinementConfig, Phase
from geoweaver.assembly.kernel import Kernel
from geoweaver.assembly.pairs import select_pairs
from geoweaver.assembly.stopping import StopRule
from geoweaver.datatypes import FrameState
from geoweaver.errors import ConfigError
from geoweaver.geometry.grid import bilinear_nodes
from geoweaver.geometry.registration import umeyama
from tests.assembly.test_problems import frame_setup, shaken

BENDING = Phase("depth bending", Kernel(4.0, 80, 3.0), False, 0.0, True, True)
CONFIG = FrameRefinementConfig(phases=(BENDING,), bend_nodes=4)


def bent_problem(noise: float = 0.02, calibrated: bool = False) -> tuple[FrameProblem, FrameState]:
    _, start = frame_setup(noise, calibrated)
    problem = frame_problem(start.matches, start.setup, CONFIG, BENDING)
    g = torch.Generator().manual_seed(5)
    nodes = bend_grid(start.setup.size, CONFIG.bend_nodes).nodes
    bend = 0.03 * torch.randn(len(start.setup.group), *nodes, generator=g, dtype=torch.float64)
    return problem, replace(shaken(start.state, 0.003), depth_bend=bend)


def test_nodes_lie_about_as_far_apart_both_ways() -> None:
    assert bend_grid((512, 288), 8).nodes == (5, 8)
    assert bend_grid((288, 512), 8).nodes == (8, 5)
    assert bend_grid((1000, 10), 8).nodes == (3, 8)


def test_the_gradient_by_a_node_is_the_derivative() -> None:
    problem, state = bent_problem()
    assert state.depth_bend is not None
    gradient = problem.bend_gradient(state)
    stiff = 2 * bend_stiffness(state.depth_bend, problem.setup, CONFIG) / state.depth_bend.numel()
    for frame, row, column in ((0, 0, 0), (3, 1, 2), (5, 2, 3)):
        change = torch.zeros_like(state.depth_bend)
        change[frame, row, column] = 1e-5
        up, down = (
            problem.loss(replace(state, depth_bend=state.depth_bend + sign * change)) for sign in (1, -1)
        )
        expected = gradient[frame, row, column] + stiff * state.depth_bend[frame, row, column]
        assert (up - down) / 2e-5 == pytest.approx(float(expected), rel=2e-2, abs=1e-6)


@pytest.mark.parametrize("calibrated", [False, True])
def test_compiled_sums_agree_with_those_on_tensors(calibrated: bool) -> None:
    problem, state = bent_problem(calibrated=calibrated)
    bending, matches, geometry = problem.bending, problem.matches_at(state), problem.geometry(state)
    assert bending is not None
    told = (matches, geometry, problem.objective, problem.norm, problem.parameters)
    gradient, normal, mixed = bend_sums_of_rows(*told, bending.frames, bending.grid.size, bending.grid.nodes)
    for sums in bending.sums(*told):
        for fused, plain in (
            (sums.gradient, gradient[sums.frame]), (sums.normal, normal[sums.frame]),
            (sums.mixed, mixed[sums.end]),
        ):  # fmt: skip
            assert (fused - plain).abs().max() <= 1e-6 * plain.abs().max()


def test_the_step_solves_the_whole_system_nodes_included() -> None:
    """Eliminating the nodes gives what one dense solve of everything gives."""
    problem, state = bent_problem()
    assert problem.bending is not None and state.depth_bend is not None
    matches, geometry = problem.matches_at(state), problem.geometry(state)
    plain = replace(problem, bending=None).linearise(state)[1]
    N = len(problem.setup.group)
    K, size = len(problem.bending.grid), plain.size
    whole = torch.zeros(size + N * K, size + N * K, dtype=torch.float64)
    whole[:size, :size] = torch.from_numpy(plain.matrix.toarray())
    right = torch.cat([torch.from_numpy(plain.right_side()), torch.zeros(N * K, dtype=torch.float64)])
    free = torch.cat([plain.free.flatten(), torch.ones(size - N * 8, dtype=torch.bool)])
    for sums in problem._bend_sums(matches, geometry):
        c = problem._coupling(sums, state, geometry.z)
        for row, block in enumerate(c.block.tolist()):
            own = slice(size + block * K, size + (block + 1) * K)
            whole[own, own], right[own] = c.normal[row], -c.gradient[row]
            whole[own, N * 8 : size] = c.border[row]
            for link in (c.link[:, 0] == row).nonzero().squeeze(1).tolist():
                other = int(c.link[link, 1]) * 8
                whole[own, other : other + 8] = c.mixed[link]
    whole[size:, :size] *= free
    whole[:size, size:] = whole[size:, :size].mT
    reduced = problem.linearise(state)[1]
    damping = torch.from_numpy(reduced.damping(1e-6))
    whole.diagonal()[:size] += damping
    expected = torch.linalg.solve(whole, right)
    moved = problem.step(state, reduced, 1e-6)
    assert moved.depth_bend is not None
    found = (moved.depth_bend - state.depth_bend).flatten()
    assert (found - expected[size:]).abs().max() <= 1e-6 * expected[size:].abs().max()


def test_bends_that_a_prior_made_are_found() -> None:
    """Exact matches, bulged depth: bending finds the bulge and so the cameras, affine depth cannot."""
    s, start = frame_setup(0.0)
    g = torch.Generator().manual_seed(2)
    nodes = bend_grid(start.setup.size, CONFIG.bend_nodes).nodes
    bulge = 0.05 * torch.randn(len(start.setup.group), *nodes, generator=g, dtype=torch.float64)
    matches = bent_matches(start.matches, bulge, start.setup.size)
    affine = replace(BENDING, bend=False)
    error = {}
    for phase in (BENDING, affine):
        config = replace(CONFIG, phases=(phase,), bend_prior=0.01)
        state, _ = refine_frames(matches, start.setup, start.state, config)
        centre = state.cam_from_world.centre
        fit = umeyama(centre, s.cam_from_world.centre)
        error[phase.bend] = float((fit.act(centre) - s.cam_from_world.centre).norm(dim=-1).mean())
    assert error[True] < 0.3 * error[False]


def test_adam_and_lm_descend_the_same_objective() -> None:
    problem, state = bent_problem(0.005)
    rule = StopRule(most=60, window=60)
    first = problem.loss(state)
    by_adam, _, _ = adam.refine(problem, state, 1e-3, rule, None)
    by_lm, _, _ = lm.minimise(problem, state, StopRule(most=20))
    assert by_adam.depth_bend is not None and not torch.equal(by_adam.depth_bend, state.depth_bend)
    assert problem.loss(by_lm) < problem.loss(by_adam) < first


def test_the_same_bytes_for_any_number_of_threads() -> None:
    problem, state = bent_problem()
    before, made = numba.get_num_threads(), []
    for threads in (1, before):
        numba.set_num_threads(threads)
        made.append(problem.step(state, problem.linearise(state)[1], 1e-4))
    one, two = made
    assert one.depth_bend is not None and two.depth_bend is not None
    assert torch.equal(one.depth_bend, two.depth_bend)
    assert torch.equal(one.cam_from_world.translation, two.cam_from_world.translation)


def test_blocks_of_frames_give_what_all_at_once_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, state = bent_problem()
    whole = problem.step(state, problem.linearise(state)[1], 1e-4)
    monkeypatch.setattr("geoweaver.assembly.bend.FRAMES", 3)
    pieces = problem.step(state, problem.linearise(state)[1], 1e-4)
    assert whole.depth_bend is not None and pieces.depth_bend is not None
    assert torch.allclose(whole.depth_bend, pieces.depth_bend, atol=1e-10)


def test_a_bending_phase_wants_pixel_errors_alone() -> None:
    with pytest.raises(ConfigError, match="points_weight=0"):
        FrameRefinementConfig(phases=(replace(BENDING, points_weight=0.1),))


def test_frames_without_matches_say_nothing_about_their_bend() -> None:
    problem, state = bent_problem()
    empty = select_pairs(problem.matches, torch.zeros(len(problem.matches), dtype=torch.bool))
    bare = frame_problem(empty, problem.setup, CONFIG, BENDING)
    for sums in bare._bend_sums(empty, bare.geometry(state)):
        assert not sums.gradient.any() and not sums.normal.any()


def test_matches_read_their_frames_bend() -> None:
    problem, state = bent_problem()
    assert state.depth_bend is not None
    matches, bent = problem.matches, problem.matches_at(state)
    for frame, pixel, flat, found in (
        (matches.observation_i, matches.pixel_i, matches.depth_i, bent.depth_i),
        (matches.observation_j, matches.pixel_j, matches.depth_j, bent.depth_j),
    ):
        nodes = (state.depth_bend.shape[1], state.depth_bend.shape[2])
        index, share = bilinear_nodes(pixel, problem.setup.size, nodes)
        own = state.depth_bend.flatten(1)[frame[matches.pair_of_row]]
        expected = flat * (own.gather(1, index) * share).sum(1).exp()
        assert torch.allclose(found, expected.float(), rtol=1e-5)

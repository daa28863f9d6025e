"""Stated sigmas: the errors behind them are measured rightly, and the cameras err about as much."""

import numba
import pytest
import torch

from geoweaver.assembly.frame_problem import FrameProblem, frame_problem
from geoweaver.assembly.fused import error_forces
from geoweaver.assembly.pairs import select_pairs
from geoweaver.assembly.trust import TrustConfig, _without_gauge, frame_sigma, measured_errors
from geoweaver.geometry import SE3
from geoweaver.geometry.registration import umeyama
from geoweaver.synth.simulated_graph import GraphChoice
from geoweaver.synth.simulated_matches import MatchNoise
from geoweaver.synth.simulated_prior import PriorNoise
from geoweaver.synth.simulated_sequence import Errors
from geoweaver.weave import WeaveConfig, Woven
from tests.weave.tiny import tiny, woven

LAP = GraphChoice(wrong=0.0, gap=15)


def depth_errs_by(size: float) -> Errors:
    prior = PriorNoise(**{**vars(PriorNoise.exact()), "smooth": size})
    return Errors(prior, MatchNoise.exact(), LAP)


@pytest.fixture(scope="module")
def bulged() -> tuple[Woven, torch.Tensor]:
    case = tiny(frames=40, chunk=20, laps=1.1, errors=depth_errs_by(0.03), choice=LAP)
    result = woven(case)
    return result, case.truth.cam_from_world.centre


def problem_of(result: Woven) -> FrameProblem:
    refinement = WeaveConfig().refinement
    return frame_problem(result.matches, result.setup, refinement, refinement.phases[-1])


def test_the_priors_depth_error_is_measured(bulged: tuple[Woven, torch.Tensor]) -> None:
    result, _ = bulged
    problem = problem_of(result)
    size = result.tables.observations.size
    told = (problem.geometry(result.state), size, TrustConfig())
    flat = measured_errors(problem.matches, *told)
    assert flat.depth == pytest.approx(0.03, rel=0.4)
    bent = measured_errors(problem.matches_at(result.state), *told)
    assert bent.depth < 0.6 * flat.depth, "what bends mended is no error any more"
    assert bent.pixel < 0.5


def test_cameras_err_about_as_much_as_their_sigmas_say(bulged: tuple[Woven, torch.Tensor]) -> None:
    result, truth = bulged
    fit = umeyama(result.state.cam_from_world.centre, truth)
    error = (fit.act(result.state.cam_from_world.centre) - truth).norm(dim=-1)
    ratio = error / (result.trust.sigma[:, 0] * fit.scale)
    assert 0.3 < float(ratio.median()) < 2.5


def test_forces_depend_on_no_thread_and_grow_with_the_error(bulged: tuple[Woven, torch.Tensor]) -> None:
    result, _ = bulged
    problem, config = problem_of(result), TrustConfig(draws=4)
    geometry = problem.geometry(result.state)
    model = measured_errors(problem.matches, geometry, result.tables.observations.size, config)
    run = torch.arange(len(result.setup.group)) // 5
    before, made = numba.get_num_threads(), []
    for threads in (1, before):
        numba.set_num_threads(threads)
        made.append(
            error_forces(
                problem.matches, geometry, problem.objective, problem.norm, problem.parameters, run, model
            )
        )
    assert torch.equal(*made) and made[0].abs().max() > 0


def test_no_matches_leave_every_sigma_open(bulged: tuple[Woven, torch.Tensor]) -> None:
    result, _ = bulged
    empty = select_pairs(result.matches, torch.zeros(len(result.matches), dtype=torch.bool))
    refinement = WeaveConfig().refinement
    problem = frame_problem(empty, result.setup, refinement, refinement.phases[-1])
    assert frame_sigma(problem, result.state, (64, 36), TrustConfig()).isinf().all()


def test_a_similarity_is_no_error_however_many_frames_stand_still_between() -> None:
    centre = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cameras = SE3(torch.eye(3, dtype=torch.float64).expand(40, 3, 3), -centre)
    tied = torch.arange(40) % 4 == 0
    grown = 0.01 * centre * tied[:, None]
    shift, turn = _without_gauge(cameras, grown[None], torch.zeros_like(grown)[None], tied, 0.05)
    assert shift[:, tied].abs().max() < 1e-9 and turn[:, tied].abs().max() < 1e-9

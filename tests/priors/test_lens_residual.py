"""A calibration of four numbers is asked how the lens bends: what windows say beside the given focal."""

from dataclasses import replace

import pytest
from test_lens import CORNER, FOCAL, SIZE, filmed, good

from geoweaver.datatypes import Camera, Chunk
from geoweaver.geometry.distortion import Lens
from geoweaver.priors.lens_residual import agree_on_residual, residual_vote
from geoweaver.priors.lens_vote import NO_VOTE, LensVote, lens_start

PARAMS = (2 * FOCAL, 2.2 * FOCAL, 320.0, 240.0)
camera = Camera("PINHOLE", PARAMS, 640, 528, calibrated=True, rectified=(FOCAL, 1.1 * FOCAL, 160.0, 120.0))
start = lens_start(camera, SIZE)


def sure(k1: float, sigma: float = 0.002) -> LensVote:
    return replace(good, k1=k1, k2=0.0, covariance=(sigma**2,))


@pytest.mark.parametrize("k1", [0.0, 0.03, -0.03])
def test_a_window_finds_what_the_calibration_left_out(k1: float) -> None:
    lens = Lens("OPENCV", (FOCAL, 1.1 * FOCAL, 160.0, 120.0, k1, 0.0, 0.0, 0.0), SIZE)
    features = filmed(lens)
    vote = residual_vote(start, lambda frame: features[frame], Chunk(0, tuple(range(12))))
    assert vote.sound and vote.focal == FOCAL
    (variance,) = vote.covariance
    assert 0 < variance < 0.02**2
    assert abs(vote.k1 - k1) < min(3 * variance**0.5, 0.01)


def test_agreeing_windows_add_the_bending_to_the_given_numbers() -> None:
    verdict = agree_on_residual(camera, start, [sure(0.02), sure(0.021, 0.001), sure(-0.01, 0.05), NO_VOTE])
    assert verdict.lens is not None
    assert verdict.lens.model == "OPENCV" and verdict.lens.params[:4] == PARAMS
    # the window that knows better counts more, the one that cannot tell not at all
    assert verdict.lens.params[4] == pytest.approx(0.0208, abs=1e-4)
    assert "--lens pinhole" in verdict.note


@pytest.mark.parametrize(
    "votes",
    [
        pytest.param([sure(0.02)], id="one alone"),
        pytest.param([sure(0.02), sure(-0.02)], id="windows contradict each other"),
        pytest.param([sure(0.02, 0.01), sure(0.02, 0.01)], id="none is certain"),
        pytest.param([sure(0.002, 1e-4), sure(0.002, 1e-4)], id="too small to matter"),
        pytest.param([replace(sure(0.02), share=0.3)] * 2, id="badly conditioned"),
    ],
)
def test_the_given_numbers_stay(votes: list[LensVote]) -> None:
    assert agree_on_residual(camera, start, votes).lens is None


def test_the_corner_is_that_of_the_image() -> None:
    assert start.corner == pytest.approx(CORNER, rel=0.05) and start.camera.fixed

"""Lenses found from the images themselves: what windows say, and what they agree on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.datatypes import Camera, Chunk, Features
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing
from geoweaver.geometry.distortion import Lens, distort_points
from geoweaver.geometry.so3 import so3_exp
from geoweaver.priors.lens import LensConfig, agree_on_lens, lens_windows
from geoweaver.priors.lens_fusion import fuse_votes
from geoweaver.priors.lens_vote import NO_VOTE, LensVote, lens_start, lens_vote

SIZE = (320, 240)
FOCAL = 250.0
CORNER = 200.0
camera = Camera("PINHOLE", (768.0, 768.0, 320.0, 240.0), 640, 480, rectified=(384.0, 384.0, 160.0, 120.0))
start = lens_start(camera, SIZE)
MIDDLE = (160.0, 120.0)
SIGMA = (2.0, 1.0, 1.0, 0.004, 0.005)


def known(sigma: tuple[float, ...] = SIGMA) -> tuple[float, ...]:
    return tuple(np.diag(np.square(sigma)).ravel().tolist())


good = LensVote(FOCAL, -0.2, 0.02, 20, 1000, 0.4, 0.85, 0.2, 1.0, middle=MIDDLE, covariance=known())


def bent(pixels: float) -> LensVote:
    """A sound vote whose corners move by so many pixels."""
    return replace(good, k1=pixels / CORNER * (FOCAL / CORNER) ** 2, k2=0.0)


def filmed(lens: Lens, frames: int = 12, points: int = 500) -> list[Features]:
    """Points in front of a camera that moves sideways and turns, seen through a lens with a little noise."""
    rng = torch.Generator().manual_seed(0)
    # twice as wide as the view, so that every image is full to its corners
    spread = torch.tensor([6.0, 5.0, 3.0], dtype=torch.float64)
    world = (torch.rand(points, 3, generator=rng, dtype=torch.float64) - 0.5) * spread
    world[:, 2] += 3.5
    words = torch.randint(0, 256, (points, 128), generator=rng, dtype=torch.uint8)
    pinhole = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    made = []
    for k in range(frames):
        turn = torch.tensor([0.05 * np.sin(k), 0.04 * (k - frames / 2), 0.02 * k], dtype=torch.float64)
        place = torch.tensor([0.15 * (frames / 2 - k), 0.1 * np.cos(k), 0.05 * k], dtype=torch.float64)
        seen = SE3(so3_exp(turn), place).act(world)
        pixel = distort_points(seen[:, :2] / seen[:, 2:], lens, pinhole)
        pixel += 0.2 * torch.randn(points, 2, generator=rng, dtype=torch.float64)
        # a bending polynomial comes back into the image far outside of the view
        ahead = (seen[:, :2] / seen[:, 2:]).norm(dim=-1) < 1.1
        inside = ((pixel > 0) & (pixel < torch.tensor(SIZE))).all(-1) & ahead & (seen[:, 2] > 0.5)
        one = torch.ones(int(inside.sum()))
        made.append(Features(pixel[inside].float(), words[inside], one, 0 * one))
    return made


@pytest.mark.parametrize("k1", [-0.2, 0.0, 0.08])
def test_a_window_finds_its_lens(k1: float) -> None:
    features = filmed(Lens("RADIAL", (FOCAL, 168.0, 115.0, k1, 0.0), SIZE))
    vote = lens_vote(start, lambda frame: features[frame], Chunk(0, tuple(range(12))))
    assert vote.sound
    assert vote.focal == pytest.approx(FOCAL, rel=0.02)
    # the axis is not in the image's middle, and the window says how well it knows that
    sigma = np.sqrt(np.diag(np.reshape(vote.covariance, (5, 5))))
    assert (sigma[1:3] < 3).all()
    assert (np.abs(np.subtract(vote.middle, (168.0, 115.0))) < 3 * sigma[1:3]).all()
    truth = replace(good, k1=k1, k2=0.0)
    for radius in (0.5 * CORNER, 0.8 * CORNER):
        assert vote.bend(radius) == pytest.approx(truth.bend(radius), abs=1.0)


def test_a_window_without_matches_has_no_vote() -> None:
    features = filmed(Lens("RADIAL", (FOCAL, 160.0, 120.0, 0.0, 0.0), SIZE), frames=4, points=10)
    vote = lens_vote(start, lambda frame: features[frame], Chunk(0, (0, 1, 2, 3)))
    assert not vote.sound


def test_agreeing_windows_give_a_lens_at_the_original_size() -> None:
    votes = [good, replace(good, focal=252.0), replace(good, k1=-0.205, middle=(161.0, 120.0)), NO_VOTE]
    verdict = agree_on_lens(camera, start, votes)
    assert verdict.lens is not None
    focal, cx, cy, k1, k2 = verdict.lens.params
    assert verdict.lens.model == "RADIAL" and verdict.lens.size == (640, 480)
    assert (cx, cy) == pytest.approx((320.7, 240.0), abs=0.1)
    assert focal == pytest.approx(2 * 250.7, rel=0.001)
    assert (k1, k2) == pytest.approx((-0.2017, 0.02), abs=1e-3)
    assert "rectified" in verdict.note


def test_bending_that_cancels_at_the_corner_is_seen() -> None:
    # k1 and k2 of a phone: nothing at the corner, two pixels half way
    phone = replace(good, k1=0.06, k2=-0.06 * (FOCAL / CORNER) ** 2)
    lens = agree_on_lens(camera, start, [phone, phone]).lens
    assert lens is not None and lens.params[3:] == pytest.approx((phone.k1, phone.k2), rel=0.01)


@pytest.mark.parametrize(
    "bends",
    [
        pytest.param([0.8, 0.7, 0.9], id="too small to matter"),
        pytest.param([25.0, -24.0], id="windows contradict each other"),
        pytest.param([9.0], id="one alone"),
        pytest.param([], id="none"),
    ],
)
def test_images_stay_where_windows_do_not_agree(bends: list[float]) -> None:
    assert agree_on_lens(camera, start, [bent(b) for b in bends]).lens is None


def test_images_stay_where_windows_cannot_tell() -> None:
    vague = replace(bent(6.0), covariance=known((9.0, 9.0, 9.0, 0.2, 0.4)))
    assert agree_on_lens(camera, start, [vague] * 3).lens is None
    assert agree_on_lens(camera, start, [replace(good, covariance=())] * 3).lens is None


def test_one_window_alone_is_believed_only_where_a_lens_bends_plainly() -> None:
    wide = replace(bent(-30.0), covariance=known((1.0, 1.0, 1.0, 0.002, 0.002)))
    found = agree_on_lens(camera, start, [wide, NO_VOTE])
    assert found.lens is not None and "one stretch" in found.note
    assert found.lens.params[3] == pytest.approx(wide.k1, rel=0.02)
    slight = replace(bent(-5.0), covariance=wide.covariance)
    vague = replace(wide, covariance=known((1.0, 1.0, 1.0, 0.02, 0.02)))
    assert all(agree_on_lens(camera, start, [vote, NO_VOTE]).lens is None for vote in (slight, vague))


def test_one_window_that_errs_is_left_out() -> None:
    lens = agree_on_lens(camera, start, [bent(-8), bent(-8.4), bent(40)]).lens
    assert lens is not None
    assert lens.params[3] == pytest.approx(bent(-8.2).k1, rel=1e-3)


def test_a_principal_point_beside_the_middle_moves_without_bending() -> None:
    straight = replace(bent(0.0), middle=(167.0, 120.0))
    verdict = agree_on_lens(camera, start, [straight, straight])
    assert verdict.lens is not None and verdict.lens.model == "PINHOLE"
    # drawn a little to the middle, where such points usually lie
    assert verdict.lens.params == pytest.approx((768.0, 768.0, 2 * 167.0, 240.0), abs=0.4)
    near = replace(straight, middle=(161.5, 119.0))
    assert agree_on_lens(camera, start, [near, near]).lens is None


def test_what_bending_would_explain_moves_when_there_is_none() -> None:
    # focal and k1 explain each other: without bending the focal is another
    covariance = np.diag(np.square(SIGMA))
    covariance[0, 3] = covariance[3, 0] = 0.9 * SIGMA[0] * SIGMA[3]
    vote = replace(good, k1=0.008, k2=0.0, covariance=tuple(covariance.ravel().tolist()))
    fused = fuse_votes(start, [vote, vote])
    straight = fused.straight()
    assert straight.params[0] == pytest.approx(FOCAL - 0.9 * SIGMA[0] * 0.008 / SIGMA[3], rel=1e-3)
    assert straight.covariance[0, 0] < 0.3 * fused.covariance[0, 0]


@pytest.mark.parametrize(
    "flaw", [{"share": 0.4}, {"points": 60}, {"error": 1.4}, {"reach": 0.4}, {"angle": 0.01}]
)
def test_a_badly_conditioned_window_does_not_count(flaw: dict[str, float]) -> None:
    poor = replace(good, **flaw)
    assert good.sound and not poor.sound
    assert agree_on_lens(camera, start, [good, poor]).lens is None


def test_an_absurd_lens_is_not_used() -> None:
    assert agree_on_lens(camera, start, [replace(good, k1=-90.0)] * 3).lens is None


@given(st.integers(0, 400), st.integers(2, 6), st.integers(10, 30))
def test_windows_are_whole_spread_and_few(count: int, windows: int, length: int) -> None:
    keyframes = list(range(0, 3 * count, 3))
    made = lens_windows(keyframes, LensConfig(windows=windows, length=length))
    assert bool(made) == (count >= 20)
    assert len(made) <= max(windows, 2)
    if made:
        assert made[0].frames[0] == keyframes[0] and made[-1].frames[-1] == keyframes[-1]
        assert {len(w) for w in made} == {min(length, count // 2)}
        frames = [f for w in made for f in w.frames]
        assert len(set(frames)) == len(frames), "no frame votes twice"


def test_pinhole_asks_nobody() -> None:
    assert lens_windows(range(100), LensConfig(lens="pinhole")) == []


def test_the_corner_of_a_padded_image_is_its_own() -> None:
    padded = replace(camera, rectified=(384.0, 384.0, 200.0, 120.0))
    assert lens_start(padded, (400, 240)).corner == pytest.approx(CORNER)
    assert lens_start(replace(camera, focal_hint=True), SIZE).camera.intrinsics[0] == 384.0
    assert bearing(torch.zeros(2), torch.tensor(start.camera.intrinsics)).shape == (3,)

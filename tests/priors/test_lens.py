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
from geoweaver.priors.lens_vote import NO_VOTE, LensVote, lens_start, lens_vote

SIZE = (320, 240)
FOCAL = 250.0
CORNER = 200.0
camera = Camera("PINHOLE", (768.0, 768.0, 320.0, 240.0), 640, 480, rectified=(384.0, 384.0, 160.0, 120.0))
start = lens_start(camera, SIZE)
good = LensVote(FOCAL, -0.2, 0.02, 20, 1000, 0.4, 0.85, 0.2, 1.0)


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
    features = filmed(Lens("RADIAL", (FOCAL, 160.0, 120.0, k1, 0.0), SIZE))
    vote = lens_vote(start, lambda frame: features[frame], Chunk(0, tuple(range(12))))
    assert vote.sound
    assert vote.focal == pytest.approx(FOCAL, rel=0.02)
    truth = replace(good, k1=k1, k2=0.0)
    for radius in (0.5 * CORNER, 0.8 * CORNER):
        assert vote.bend(radius) == pytest.approx(truth.bend(radius), abs=1.0)


def test_a_window_without_matches_has_no_vote() -> None:
    features = filmed(Lens("RADIAL", (FOCAL, 160.0, 120.0, 0.0, 0.0), SIZE), frames=4, points=10)
    vote = lens_vote(start, lambda frame: features[frame], Chunk(0, (0, 1, 2, 3)))
    assert not vote.sound


def test_agreeing_windows_give_a_lens_at_the_original_size() -> None:
    votes = [good, replace(good, focal=252.0), replace(good, k1=-0.205), NO_VOTE]
    verdict = agree_on_lens(camera, start, votes)
    assert verdict.lens is not None
    focal, cx, cy, k1, k2 = verdict.lens.params
    assert (verdict.lens.size, cx, cy) == ((640, 480), 320.0, 240.0)
    assert focal == pytest.approx(2 * 250.5, rel=0.01)
    assert (k1, k2) == pytest.approx((-0.2, 0.02), abs=0.01)
    assert "rectified" in verdict.note


@pytest.mark.parametrize(
    "bends",
    [
        pytest.param([0.8, 0.7, 0.9], id="too small to matter"),
        pytest.param([5.0, -4.0, 1.0, 9.0], id="windows contradict each other"),
        pytest.param([6.0, 3.0], id="two that differ by half"),
        pytest.param([9.0], id="one alone"),
        pytest.param([], id="none"),
    ],
)
def test_images_stay_where_windows_do_not_agree(bends: list[float]) -> None:
    assert agree_on_lens(camera, start, [bent(b) for b in bends]).lens is None


def test_one_window_that_errs_is_outvoted() -> None:
    lens = agree_on_lens(camera, start, [bent(-8), bent(-8.4), bent(40)]).lens
    assert lens is not None
    assert lens.params[3] == pytest.approx(bent(-8.2).k1, rel=1e-6)


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

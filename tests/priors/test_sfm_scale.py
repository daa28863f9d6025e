"""A model has one scale where its points are seen from the side on both sides of every cut."""

from dataclasses import replace

import numpy as np
import pytest

from geoweaver.geometry import SE3
from geoweaver.priors.sfm_check import is_sound, pair_verdicts
from geoweaver.priors.sfm_scale import carries_scale, scale_sigma
from tests.priors.test_sfm_check import scene


def test_a_true_model_carries_its_scale_to_a_percent() -> None:
    model, _, _ = scene()
    assert carries_scale(model)
    assert scale_sigma(model)[2:-2].max() < 0.05


def test_cameras_that_shrank_to_one_place_carry_no_scale() -> None:
    model, _, _ = scene()
    cameras = model.cam_from_chunk
    assert not carries_scale(replace(model, cam_from_chunk=SE3(cameras.rotation, 1e-6 * cameras.translation)))


def test_a_model_that_lost_its_points_is_contradicted_by_no_pair_and_carries_no_scale() -> None:
    model, pairs, keypoints = scene()
    lost = replace(model, point_of=np.where(np.arange(24)[:, None] < 3, model.point_of, -1))
    assert is_sound(pair_verdicts(lost, pairs, keypoints))
    assert not carries_scale(lost)


def test_the_unit_of_length_does_not_matter() -> None:
    model, _, _ = scene()
    large = replace(
        model,
        points=1e3 * model.points,
        cam_from_chunk=SE3(model.cam_from_chunk.rotation, 1e3 * model.cam_from_chunk.translation),
    )
    assert scale_sigma(large) == pytest.approx(scale_sigma(model), rel=1e-6)


def test_the_sigma_is_what_noise_makes_of_the_scale() -> None:
    """Depths of points from either side, with pixels that err by one: the scatter of their median ratio."""
    model, _, _ = scene()
    cut, focal = 12, model.intrinsics[0]
    rng = np.random.default_rng(0)
    left, right = (_inverse_depths(model, rows, focal, rng) for rows in (range(cut), range(cut, 24)))
    both = np.isfinite(left).all(0) & np.isfinite(right).all(0)
    weight = 1 / (left.var(0) + right.var(0))[both]
    scale = ((right - left)[:, both] * weight).sum(1) / weight.sum()
    assert scale.std() == pytest.approx(scale_sigma(model)[cut - 1], rel=0.4)


def _inverse_depths(model, rows, focal, rng, trials: int = 200) -> np.ndarray:
    """Log inverse depth of every point from some rows alone, where four see it, over noisy trials."""
    centre = model.cam_from_chunk.centre.numpy()[:, 0]
    seen = np.stack([model.point_of[r] >= 0 for r in rows])
    x, depth = centre[list(rows)], model.points[:, 2]
    count = np.maximum(seen.sum(0), 1)
    apart = (x[:, None] - (seen * x[:, None]).sum(0) / count) * seen
    spread = (apart**2).sum(0)
    noise = rng.standard_normal((trials, *seen.shape)) * seen / focal
    slope = (noise * apart).sum(1) / np.maximum(spread, 1e-12)
    return np.where((seen.sum(0) >= 2) & (spread > 0), slope * depth, np.nan)


def test_short_models_are_not_judged() -> None:
    model, _, _ = scene(frames=3, reach=12)
    assert carries_scale(model)

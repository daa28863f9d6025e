import cv2
import numpy as np
import pytest
import torch
from tiny_world import tiny_world

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import pixel_centres
from geoweaver.geometry.distortion import distort_points, rectify
from geoweaver.synth.effects import Effects, pose_at, row_times
from geoweaver.synth.paths import default_path
from geoweaver.synth.rays import camera_lens, pixel_slopes
from geoweaver.synth.render import render
from geoweaver.synth.world import World

SIZE = (160, 90)
FOUR = (115.0, 115.0, 80.0, 45.0)
K = torch.tensor(FOUR, dtype=torch.float64)
BARREL = (-0.28, 0.09, 0.001, -0.0007, -0.012)


@pytest.fixture(scope="module")
def world() -> World:
    return tiny_world()


@pytest.fixture(scope="module")
def camera(world: World) -> SE3:
    return default_path(world, 12)[2]


def test_distorted_rays_project_back_to_their_pixels() -> None:
    slopes = torch.from_numpy(pixel_slopes(FOUR, BARREL, SIZE))
    pinhole = slopes * K[:2] + K[2:]
    back = distort_points(pinhole, camera_lens(FOUR, BARREL, SIZE), K)
    assert (back - pixel_centres(*SIZE).reshape(-1, 2)).norm(dim=-1).max() < 1e-7


def test_a_distorted_image_rectifies_to_the_pinhole_image(world: World, camera: SE3) -> None:
    bent = render(world, camera, K, SIZE, Effects(distortion=BARREL))
    view = rectify(camera_lens(FOUR, BARREL, SIZE))
    straightened = cv2.remap(bent.rgb, view.map_x, view.map_y, cv2.INTER_LINEAR)
    straight = render(world, camera, view.intrinsics, view.size)
    untouched = render(world, camera, K, SIZE).rgb
    difference = np.abs(straightened.astype(float) - straight.rgb)
    assert difference.mean() < 5
    assert (
        difference.mean() < 0.4 * np.abs(cv2.resize(bent.rgb, view.size) - straight.rgb.astype(float)).mean()
    )
    assert not np.array_equal(bent.rgb, untouched)


def test_noise_has_the_stated_size_and_is_seeded(world: World, camera: SE3) -> None:
    clean = render(world, camera, K, SIZE).rgb.astype(float)
    one, same, other = (render(world, camera, K, SIZE, Effects(noise=6.0), seed=s).rgb for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    middle = (clean > 100) & (clean < 156)
    assert (one - clean)[middle].std() == pytest.approx(6.0, rel=0.15)


def test_exposure_brightens_every_lit_pixel(world: World, camera: SE3) -> None:
    dark, light = (render(world, camera, K, SIZE, Effects(exposure=e)).rgb.astype(int) for e in (0.5, 2.0))
    assert (light >= dark).all()
    assert light.mean() > 1.3 * dark.mean()


def test_motion_blur_smears_along_the_motion_and_leaves_depth_sharp(world: World, camera: SE3) -> None:
    sharp = render(world, camera, K, SIZE)
    pan = torch.tensor([0, 0, 0, 0, 0.08, 0], dtype=torch.float64)
    blurred = render(world, camera, K, SIZE, Effects(shutter=0.8, blur_samples=9), pan)

    def contrast(rgb: np.ndarray, axis: int) -> float:
        return float(np.abs(np.diff(rgb.astype(float), axis=axis)).mean())

    assert contrast(blurred.rgb, 1) < 0.6 * contrast(sharp.rgb, 1)
    assert contrast(blurred.rgb, 0) > contrast(blurred.rgb, 1)
    assert torch.equal(blurred.depth, sharp.depth)


def test_without_motion_the_shutter_changes_only_silhouettes(world: World, camera: SE3) -> None:
    sharp, open_ = render(world, camera, K, SIZE), render(world, camera, K, SIZE, Effects(shutter=0.9))
    assert (np.abs(sharp.rgb.astype(int) - open_.rgb).max(-1) <= 1).mean() > 0.75


def test_each_row_of_a_rolling_shutter_is_the_row_of_its_own_pose(world: World, camera: SE3) -> None:
    twist = torch.tensor([0.1, 0.02, -0.03, 0.01, 0.1, 0.02], dtype=torch.float64)
    rolled = render(world, camera, K, SIZE, Effects(readout=0.9), twist)
    times = row_times(SIZE[1], 0.9)
    for row in (0, 31, 89):
        alone = render(world, pose_at(camera, twist, times[row]), K, SIZE)
        assert torch.allclose(rolled.depth[row], alone.depth[row], rtol=1e-9, atol=0)
        assert torch.allclose(rolled.normal[row], alone.normal[row], atol=1e-9)
    assert not torch.allclose(rolled.depth, render(world, camera, K, SIZE).depth)


def test_the_middle_of_the_frame_is_taken_at_the_stated_time() -> None:
    times = row_times(90, 0.5)
    assert float(times.mean()) == pytest.approx(0, abs=1e-12)
    assert float(times[-1] - times[0]) == pytest.approx(0.5 * 89 / 90)


def test_impossible_lenses_and_shutters_are_refused_in_words(world: World, camera: SE3) -> None:
    with pytest.raises(ConfigError, match="give a weaker one"):
        render(world, camera, K, SIZE, Effects(distortion=(-2.0, 0.0, 0.0, 0.0, 0.0)))
    for wrong in ({"noise": -1.0}, {"exposure": 0.0}, {"blur_samples": 0}, {"readout": -0.1}):
        with pytest.raises(ConfigError, match="positive exposure"):
            Effects(**wrong)

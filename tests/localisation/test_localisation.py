"""A frame's camera from what a keyframe's depth says about the points that both see."""

import numpy as np
import pytest
import torch

from geoweaver.geometry import SE3
from geoweaver.geometry.camera import project_with_depth
from geoweaver.localisation import known_points, localise, points_to_track, track_points
from geoweaver.results import DepthMap

SIZE = (320, 240)
INTRINSICS = torch.tensor([300.0, 300.0, 160.0, 120.0], dtype=torch.float64)
MOVED = SE3.exp(torch.tensor([0.1, -0.05, 0.08, 0.02, -0.03, 0.01], dtype=torch.float64))


def cloud(n: int = 200) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    flat = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    return flat * torch.tensor([3.0, 2.0, 3.0]) + torch.tensor([-1.5, -1.0, 2.0])


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_exact_points_give_the_exact_camera_in_any_unit(unit: float) -> None:
    world = unit * cloud()
    camera = SE3(MOVED.rotation, unit * MOVED.translation)
    pixel, _ = project_with_depth(camera.act(world), INTRINSICS)
    found = localise(pixel, world, INTRINSICS, SIZE)
    assert found is not None and found.believed
    assert torch.allclose(found.cam_from_world.rotation, camera.rotation, atol=1e-6)
    assert torch.allclose(found.cam_from_world.translation, camera.translation, atol=1e-5 * unit)


def test_wrong_points_are_left_out_and_counted() -> None:
    world = cloud()
    pixel, _ = project_with_depth(MOVED.act(world), INTRINSICS)
    pixel[::3] += 40
    found = localise(pixel, world, INTRINSICS, SIZE)
    assert found is not None and found.believed
    assert found.inliers <= 200 - len(pixel[::3]) + 5
    assert (found.cam_from_world @ MOVED.inverse()).log().norm() < 1e-3


def test_points_that_mean_nothing_are_not_believed() -> None:
    generator = torch.Generator().manual_seed(3)
    pixel = 200 * torch.rand(200, 2, generator=generator, dtype=torch.float64)
    found = localise(pixel, cloud(), INTRINSICS, SIZE)
    assert found is None or not found.believed


def test_too_few_points_give_no_camera() -> None:
    assert localise(torch.zeros(5, 2, dtype=torch.float64), cloud(5), INTRINSICS, SIZE) is None


def test_points_on_the_edge_between_two_surfaces_are_left_out() -> None:
    depth = torch.full((24, 32), 2.0)
    depth[:, 16:] = 4.0
    half = DepthMap(depth, torch.ones(24, 32), INTRINSICS / 10)
    pixel = torch.tensor([[50.0, 100.0], [160.0, 100.0], [250.0, 100.0]], dtype=torch.float64)
    points = known_points(pixel, SIZE, half, SE3.identity())
    assert points.row.tolist() == [0, 2]
    assert points.world[:, 2].tolist() == pytest.approx([2.0, 4.0])
    back, _ = project_with_depth(points.world, INTRINSICS)
    assert torch.allclose(back, pixel[points.row])


def test_unknown_depth_gives_no_points() -> None:
    empty = DepthMap(torch.zeros(24, 32), torch.zeros(24, 32), INTRINSICS / 10)
    assert (
        len(known_points(torch.tensor([[50.0, 100.0]], dtype=torch.float64), SIZE, empty, SE3.identity()))
        == 0
    )


def textured(shift: int) -> np.ndarray:
    import cv2

    noise = np.random.default_rng(0).integers(0, 255, (280, 360)).astype(np.float32)
    picture = cv2.GaussianBlur(noise, (0, 0), 2.5)
    picture = (255 * (picture - picture.min()) / (picture.max() - picture.min())).astype(np.uint8)
    return np.repeat(picture[20:260, 20 + shift : 340 + shift, None], 3, axis=2)


def test_points_are_followed_and_those_that_leave_the_image_are_said_lost() -> None:
    one, two = textured(0), textured(7)
    depth = DepthMap(torch.full((240, 320), 3.0), torch.ones(240, 320), INTRINSICS)
    points = points_to_track(one, None, depth, SE3.identity())
    assert len(points) > 100
    there, good = track_points(one, two, points.pixel)
    inside = points.pixel[:, 0] > 20
    assert good[inside].float().mean() > 0.95
    shift = (there - points.pixel)[good & inside]
    assert torch.allclose(shift.median(0).values, torch.tensor([-7.0, 0.0], dtype=torch.float64), atol=0.05)
    assert not good[points.pixel[:, 0] < 6].any()


def test_masked_pixels_are_not_tracked() -> None:
    depth = DepthMap(torch.full((240, 320), 3.0), torch.ones(240, 320), INTRINSICS)
    usable = np.zeros((240, 320), bool)
    usable[:, 160:] = True
    points = points_to_track(textured(0), usable, depth, SE3.identity())
    assert len(points) and bool((points.pixel[:, 0] >= 160).all())

"""Pinhole cameras: lift and project undo each other, Jacobians are autograd's, intrinsics follow pixels."""

import math

import cv2
import numpy as np
import pytest
import torch
from geometry_strategies import positions
from hypothesis import assume, given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import Tensor

from geoweaver.geometry import camera

_pixel = st.tuples(st.floats(-100, 2000), st.floats(-100, 1200)).map(
    lambda p: torch.tensor(p, dtype=torch.float64)
)
_depth = st.floats(1e-3, 1e6).map(lambda d: torch.tensor(d, dtype=torch.float64))
_intrinsics = st.tuples(st.floats(50, 5000), st.floats(50, 5000), st.floats(0, 1920), st.floats(0, 1080)).map(
    lambda k: torch.tensor(k, dtype=torch.float64)
)


@given(_pixel, _depth, _intrinsics)
def test_project_inverts_lift(pixel: Tensor, depth: Tensor, intrinsics: Tensor) -> None:
    point = camera.lift(pixel, depth, intrinsics)
    back, z = camera.project_with_depth(point, intrinsics)
    torch.testing.assert_close(back, pixel, rtol=0, atol=1e-10)
    torch.testing.assert_close(z, depth, rtol=0, atol=0)
    torch.testing.assert_close(camera.project(point, intrinsics), back, rtol=0, atol=0)
    homogeneous = torch.cat([pixel, torch.ones(1, dtype=torch.float64)])
    by_matrix = depth * torch.linalg.solve(camera.intrinsic_matrix(intrinsics), homogeneous)
    torch.testing.assert_close(point, by_matrix, rtol=1e-9, atol=1e-9 * float(depth))


@given(positions(), _intrinsics)
def test_projection_jacobians_are_autograd(point: Tensor, intrinsics: Tensor) -> None:
    assume(float(point[2]) > 1e-4 * float(point.norm()))
    by_point, by_intrinsics = torch.func.jacrev(camera.project, argnums=(0, 1))(point, intrinsics)
    torch.testing.assert_close(camera.project_point_jacobian(point, intrinsics), by_point, rtol=1e-12, atol=0)
    focal = camera.project_focal_jacobian(point)
    torch.testing.assert_close(focal, by_intrinsics[:, :2], rtol=1e-12, atol=0)


@given(_pixel, _depth, _intrinsics)
def test_lift_jacobians_are_autograd(pixel: Tensor, depth: Tensor, intrinsics: Tensor) -> None:
    by_depth, by_intrinsics = torch.func.jacrev(camera.lift, argnums=(1, 2))(pixel, depth, intrinsics)
    torch.testing.assert_close(camera.bearing(pixel, intrinsics), by_depth, rtol=1e-12, atol=1e-15)
    focal = camera.lift_focal_jacobian(pixel, depth, intrinsics)
    torch.testing.assert_close(focal, by_intrinsics[:, :2], rtol=1e-12, atol=1e-15)


def test_shapes_broadcast() -> None:
    pixel, depth = torch.rand(4, 7, 2), torch.rand(4, 7) + 1
    intrinsics = torch.rand(4, 1, 4) + 1
    points = camera.lift(pixel, depth, intrinsics)
    assert points.shape == (4, 7, 3)
    assert camera.project(points, intrinsics).shape == (4, 7, 2)
    assert camera.project(points[0], intrinsics).shape == (4, 7, 2)
    assert camera.project_point_jacobian(points, intrinsics).shape == (4, 7, 2, 3)
    assert camera.project_focal_jacobian(points).shape == (4, 7, 2, 2)
    assert camera.lift_focal_jacobian(pixel, depth, intrinsics).shape == (4, 7, 3, 2)


@given(st.floats(0.01, math.pi - 0.01), st.integers(1, 8000))
def test_fov_and_focal_are_inverse(fov: float, extent: int) -> None:
    angle = torch.tensor(fov, dtype=torch.float64)
    focal = camera.focal_from_fov(angle, extent)
    torch.testing.assert_close(camera.fov_from_focal(focal, extent), angle, rtol=1e-12, atol=0)
    # the rays through both image sides enclose the angle
    intrinsics = torch.stack([focal, focal, torch.tensor(extent / 2), torch.tensor(0.0)]).to(torch.float64)
    left, right = camera.bearing(torch.tensor([[0.0, 0.0], [extent, 0.0]], dtype=torch.float64), intrinsics)
    enclosed = torch.atan2(torch.linalg.cross(left, right).norm(), left @ right)
    torch.testing.assert_close(enclosed, angle, rtol=1e-9, atol=0)


@given(_pixel, _depth, _intrinsics, st.integers(1, 4000), st.integers(1, 4000))
def test_resized_intrinsics_give_resized_pixels(
    pixel: Tensor, depth: Tensor, intrinsics: Tensor, width: int, height: int
) -> None:
    point = camera.lift(pixel, depth, intrinsics)
    resized = camera.resize_intrinsics(intrinsics, (1920, 1080), (width, height))
    expected = pixel * torch.tensor([width / 1920, height / 1080], dtype=torch.float64)
    torch.testing.assert_close(camera.project(point, resized), expected, rtol=1e-10, atol=1e-8)
    back = camera.resize_intrinsics(resized, (width, height), (1920, 1080))
    torch.testing.assert_close(back, intrinsics, rtol=1e-12, atol=1e-300)


def test_resize_agrees_with_the_image_library() -> None:
    """A blob painted by a projection is found where the resized camera projects it."""
    intrinsics = torch.tensor([300.0, 310.0, 161.3, 118.2], dtype=torch.float64)
    point = torch.tensor([0.31, -0.17, 2.0], dtype=torch.float64)
    for new in [(160, 120), (80, 60), (640, 480), (200, 90)]:
        small = cv2.resize(
            _blob(camera.project(point, intrinsics), 320, 240, 12.0), new, interpolation=cv2.INTER_AREA
        )
        expected = camera.project(point, camera.resize_intrinsics(intrinsics, (320, 240), new))
        np.testing.assert_allclose(_centroid(small), expected.numpy(), atol=0.02)


def test_crop_agrees_with_cropped_pixels() -> None:
    intrinsics = torch.tensor([300.0, 310.0, 161.3, 118.2], dtype=torch.float64)
    point = torch.tensor([0.31, -0.17, 2.0], dtype=torch.float64)
    cropped = _blob(camera.project(point, intrinsics), 320, 240, 6.0)[20:, 50:]
    expected = camera.project(point, camera.crop_intrinsics(intrinsics, 50, 20))
    np.testing.assert_allclose(_centroid(cropped), expected.numpy(), atol=1e-3)


def test_opencv_counts_from_the_first_pixels_centre() -> None:
    typed = torch.tensor([300.0, 310.0, 159.5, 119.5], dtype=torch.float64)
    inside = camera.corner_from_centre_origin(typed)
    torch.testing.assert_close(inside, torch.tensor([300.0, 310.0, 160.0, 120.0], dtype=torch.float64))
    torch.testing.assert_close(camera.centre_from_corner_origin(inside), typed)
    point = np.array([[0.3, -0.2, 2.0]])
    theirs, _ = cv2.projectPoints(
        point, np.zeros(3), np.zeros(3), camera.intrinsic_matrix(typed).numpy(), None
    )
    ours = camera.project(torch.from_numpy(point), inside)
    np.testing.assert_allclose(theirs.reshape(1, 2) + 0.5, ours.numpy(), atol=1e-9)


def test_matrix_goes_round_and_pixels_start_at_a_half() -> None:
    intrinsics = torch.rand(2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(camera.intrinsics_from_matrix(camera.intrinsic_matrix(intrinsics)), intrinsics)
    grid = camera.pixel_centres(4, 3)
    assert grid.shape == (3, 4, 2)
    assert grid[0, 0].tolist() == [0.5, 0.5] and grid[2, 3].tolist() == [3.5, 2.5]


def test_shape_errors_are_caught() -> None:
    with pytest.raises(TypeCheckError):
        camera.lift(torch.zeros(3, 2), torch.zeros(4), torch.ones(4))


def _blob(centre: Tensor, width: int, height: int, sigma: float) -> np.ndarray:
    distance = (camera.pixel_centres(width, height) - centre).square().sum(-1)
    return torch.exp(-distance / (2 * sigma**2)).numpy()


def _centroid(image: np.ndarray) -> np.ndarray:
    height, width = image.shape
    mass = torch.from_numpy(image)[..., None]
    return ((mass * camera.pixel_centres(width, height)).sum((0, 1)) / mass.sum()).numpy()

"""Lenses: agreement with OpenCV, round trips, and a view that shows what a pinhole camera would see."""

import math

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from geoweaver.errors import InputError
from geoweaver.geometry import distortion
from geoweaver.geometry.camera import bearing, centre_from_corner_origin, intrinsic_matrix, pixel_centres
from geoweaver.geometry.distortion import Lens, rectify

RADTAN = (458.654, 457.296, 367.715, 248.875, -0.28340811, 0.07395907, 0.00019359, 1.76187114e-05)
LENSES = {
    "radtan": Lens("OPENCV", RADTAN, (752, 480)),
    "barrel": Lens("SIMPLE_RADIAL", (500.0, 320.0, 240.0, -0.1), (640, 480)),
    "pincushion": Lens("SIMPLE_RADIAL", (500.0, 330.0, 236.0, 0.1), (640, 480)),
    "radial": Lens("RADIAL", (480.0, 322.0, 241.0, -0.2, 0.05), (640, 480)),
    "k3": Lens(
        "FULL_OPENCV",
        (517.3, 516.5, 319.1, 255.8, 0.2624, -0.9531, -0.0054, 0.0026, 1.1633, 0.0, 0.0, 0.0),
        (640, 480),
    ),
    "fisheye": Lens(
        "OPENCV_FISHEYE", (190.97, 190.96, 254.9, 256.9, 0.0034, 7.7e-4, -3.7e-4, 0.0), (512, 512)
    ),
    "narrow fisheye": Lens("OPENCV_FISHEYE", (500.0, 500.0, 320.0, 240.0, -0.02, 0.01, 0.0, 0.0), (640, 480)),
    "fov": Lens("FOV", (300.0, 300.0, 320.0, 240.0, 0.9), (640, 480)),
}
folds = Lens("RADIAL", (500.0, 320.0, 240.0, -0.4, 0.0), (640, 480))
each_lens = pytest.mark.parametrize("lens", LENSES.values(), ids=LENSES.keys())


def scene(rays: Tensor) -> Tensor:
    """Smooth brightness of a direction, up to the middle grey of 8 bits."""
    direction = rays / rays.norm(dim=-1, keepdim=True)
    return 127 + 60 * torch.sin(9 * direction[..., 0] + 1) + 60 * torch.cos(11 * direction[..., 1])


@each_lens
def test_points_go_round(lens: Lens) -> None:
    view = rectify(lens)
    generator = torch.Generator().manual_seed(0)
    pixel = torch.rand(4, 50, 2, dtype=torch.float64, generator=generator) * torch.tensor(view.size)
    distorted = distortion.distort_points(pixel, lens, view.intrinsics)
    back = distortion.undistort_points(distorted, lens, view.intrinsics)
    torch.testing.assert_close(back, pixel, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["radtan", "barrel", "radial", "k3"])
def test_a_refined_lens_bends_the_image_as_before(name: str) -> None:
    lens = LENSES[name]
    view = rectify(lens)
    found = view.intrinsics * torch.tensor([1.2, 1.2, 1.0, 1.0], dtype=torch.float64)
    refined = distortion.refine_lens(lens, view.intrinsics, found)
    pixel = torch.rand(50, 2, dtype=torch.float64) * torch.tensor(view.size)
    before = distortion.distort_points(pixel, lens, view.intrinsics)
    after = distortion.distort_points(pixel, refined, found)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-6)
    assert refined.params[0] == pytest.approx(1.2 * lens.params[0])


@each_lens
def test_every_pixel_of_the_view_is_covered_and_the_view_is_wide(lens: Lens) -> None:
    view = rectify(lens)
    width, height = lens.size
    assert view.map_x.shape == view.map_y.shape == (view.size[1], view.size[0])
    assert view.map_x.min() >= 0 and view.map_x.max() <= width - 1
    assert view.map_y.min() >= 0 and view.map_y.max() <= height - 1
    fx, fy, cx, cy = view.intrinsics.tolist()
    assert fx == fy and (2 * cx, 2 * cy) == view.size
    slack = min(
        view.map_x.min(), view.map_y.min(), width - 1 - view.map_x.max(), height - 1 - view.map_y.max()
    )
    field = 2 * math.atan(max(view.size) / 2 / fx)
    assert slack < 2 or field > distortion.MAX_FOV - 0.02


@each_lens
def test_the_view_shows_what_a_pinhole_camera_sees(lens: Lens) -> None:
    original = pixel_centres(*lens.size)
    unit = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    plane = distortion.undistort_points(original, lens, unit)
    image = scene(bearing(plane, unit)).nan_to_num(0).numpy()
    view = rectify(lens)
    seen = cv2.remap(image, view.map_x, view.map_y, cv2.INTER_LINEAR)
    expected = scene(bearing(pixel_centres(*view.size), view.intrinsics)).numpy()
    # remap interpolates between pixels and keeps 1/32 of one; half a pixel of error would cost about 1
    assert np.abs(seen - expected).max() < 0.12


def test_opencv_distorts_the_same() -> None:
    lens, view = LENSES["radtan"], rectify(LENSES["radtan"])
    pixel = torch.rand(200, 2, dtype=torch.float64) * torch.tensor(view.size)
    rays = bearing(pixel, view.intrinsics).numpy()
    K = intrinsic_matrix(centre_from_corner_origin(torch.tensor(RADTAN[:4], dtype=torch.float64))).numpy()
    theirs, _ = cv2.projectPoints(rays, np.zeros(3), np.zeros(3), K, np.array(RADTAN[4:]))
    ours = distortion.distort_points(pixel, lens, view.intrinsics)
    np.testing.assert_allclose(ours.numpy(), theirs.reshape(-1, 2) + 0.5, atol=1e-6)


def test_opencvs_fisheye_distorts_the_same() -> None:
    lens, view = LENSES["fisheye"], rectify(LENSES["fisheye"])
    pixel = torch.rand(200, 2, dtype=torch.float64) * torch.tensor(view.size)
    rays = bearing(pixel, view.intrinsics).numpy()[:, None]
    K = intrinsic_matrix(
        centre_from_corner_origin(torch.tensor(lens.params[:4], dtype=torch.float64))
    ).numpy()
    theirs, _ = cv2.fisheye.projectPoints(rays, np.zeros(3), np.zeros(3), K, np.array(lens.params[4:]))
    ours = distortion.distort_points(pixel, lens, view.intrinsics)
    np.testing.assert_allclose(ours.numpy(), theirs.reshape(-1, 2) + 0.5, atol=1e-6)


@pytest.mark.parametrize("count", [4, 6, 8, 9])
def test_typed_intrinsics_are_opencvs(count: int) -> None:
    typed = (500.0, 510.0, 319.5, 241.0, -0.2, 0.03, 1e-3, -2e-3, 0.01)[:count]
    lens = distortion.lens_from_opencv(typed, (640, 480))
    points = np.array([[0.3, -0.2, 1.0], [0.1, 0.4, 2.0], [-0.5, 0.3, 1.5]])
    K = np.array([[typed[0], 0, typed[2]], [0, typed[1], typed[3]], [0, 0, 1.0]])
    coefficients = np.zeros(5)
    coefficients[: count - 4] = typed[4:]
    theirs, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), K, coefficients)
    unit = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    plane = torch.from_numpy(points[:, :2] / points[:, 2:])
    ours = distortion.distort_points(plane, lens, unit)
    np.testing.assert_allclose(ours.numpy(), theirs.reshape(-1, 2) + 0.5, atol=1e-6)
    assert distortion.is_pinhole(lens) == (count == 4)


@pytest.mark.parametrize(
    "lens",
    [
        Lens("PINHOLE", (500.0, 510.0, 310.0, 250.0), (640, 480)),
        Lens("SIMPLE_PINHOLE", (500.0, 310.0, 250.0), (640, 480)),
        Lens("OPENCV", (500.0, 510.0, 310.0, 250.0, 0.0, 0.0, 0.0, 0.0), (640, 480)),
    ],
)
def test_a_pinhole_stays_as_it_is(lens: Lens) -> None:
    view = rectify(lens)
    assert distortion.is_pinhole(lens) and view.size == lens.size
    assert view.intrinsics.tolist() == [500.0, 500.0 if len(lens.params) == 3 else 510.0, 310.0, 250.0]
    x, y = np.meshgrid(np.arange(640), np.arange(480))
    np.testing.assert_allclose(view.map_x, x, atol=1e-4)
    np.testing.assert_allclose(view.map_y, y, atol=1e-4)


def test_equidistant_fisheye_without_coefficients_is_no_pinhole() -> None:
    assert not distortion.is_pinhole(
        Lens("OPENCV_FISHEYE", (300.0, 300.0, 320.0, 240.0, 0, 0, 0, 0), (640, 480))
    )


def test_rays_behind_the_camera_have_no_pinhole_position() -> None:
    lens = LENSES["fisheye"]
    corner = torch.tensor([[0.5, 0.5], [256.0, 256.0]], dtype=torch.float64)
    undistorted = distortion.undistort_points(corner, lens, rectify(lens).intrinsics)
    assert bool(undistorted[0].isnan().all()) and bool(undistorted[1].isfinite().all())


def test_a_polynomial_that_folds_back_is_cut_before_it_does() -> None:
    view = rectify(folds)
    fold = 500 * math.sqrt(1 / (3 * 0.4))
    assert math.hypot(*view.size) / 2 < fold
    radius = np.hypot(view.map_x + 0.5 - 320, view.map_y + 0.5 - 240)
    middle = view.size[1] // 2
    assert (np.diff(radius[middle, view.size[0] // 2 + 1 :]) > 0).all()


def test_the_field_of_view_is_bounded() -> None:
    narrow = rectify(LENSES["fisheye"], max_fov=math.radians(60))
    focal = float(narrow.intrinsics[0])
    assert abs(2 * math.atan(narrow.size[0] / 2 / focal) - math.radians(60)) < 0.01


@each_lens
def test_a_resized_lens_sees_resized_pixels(lens: Lens) -> None:
    half = distortion.resize_lens(lens, (lens.size[0] // 2, lens.size[1] // 2))
    plane = torch.rand(20, 2, dtype=torch.float64) - 0.5
    unit = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    large = distortion.distort_points(plane, lens, unit)
    torch.testing.assert_close(distortion.distort_points(plane, half, unit), large / 2, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("lens", "word"),
    [
        (Lens("PINOLE", (1.0, 1.0, 1.0, 1.0), (4, 4)), "PINHOLE"),
        (Lens("EQUIRECTANGULAR", (4.0, 4.0), (4, 4)), "not known"),
        (Lens("OPENCV", (500.0, 500.0, 320.0, 240.0), (640, 480)), "k1, k2, p1, p2"),
        (Lens("PINHOLE", (math.nan, 500.0, 320.0, 240.0), (640, 480)), "finite"),
        (Lens("PINHOLE", (-500.0, 500.0, 320.0, 240.0), (640, 480)), "positive focal"),
        (Lens("PINHOLE", (500.0, 500.0, 320.0, 240.0), (0, 480)), "size"),
        (Lens("SIMPLE_RADIAL", (500.0, -300.0, 240.0, 0.1), (640, 480)), "distortion"),
    ],
)
def test_a_wrong_lens_is_one_line(lens: Lens, word: str) -> None:
    with pytest.raises(InputError, match=word) as error:
        rectify(lens)
    assert "\n" not in str(error.value)


def test_a_wrong_number_of_typed_values_is_one_line() -> None:
    with pytest.raises(InputError, match="5 values"):
        distortion.lens_from_opencv((1.0, 1.0, 1.0, 1.0, 0.1), (640, 480))

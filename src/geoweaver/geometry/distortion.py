"""Lenses: COLMAP's camera models through pycolmap, and the pinhole view that replaces a distorted image."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from geoweaver.errors import InputError
from geoweaver.geometry.camera import bearing, pixel_centres, project

if TYPE_CHECKING:
    import pycolmap

MAX_FOV = math.radians(120)
"""A pinhole view wider than this spends most of its pixels on stretched borders."""
_MIN_MAGNIFICATION = 0.1
"""Of the centre's: where a lens squeezes more, nothing can be seen, and a polynomial may fold back."""
_STRAIGHT = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV")
"""Models that are a pinhole where all their extra parameters are zero."""
_ORDERS = {
    "SIMPLE_RADIAL": (2,), "RADIAL": (2, 4), "OPENCV": (2, 4, 1, 1), "FULL_OPENCV": (2, 4, 1, 1, 6, 2, 4, 6),
}  # fmt: skip
"""Powers of the slope that a model's coefficients stand before; fisheye models are never refined."""
_ROUND_TRIP = 1e-2
"""Pixels by which an undistorted point may miss its origin before it counts as having no pinhole position."""


@dataclass(frozen=True)
class Lens:
    """A COLMAP camera model with its parameters (corner-origin principal point) at an image size."""

    model: str
    params: tuple[float, ...]
    size: tuple[int, int]
    """(width, height)."""


@dataclass(frozen=True)
class Rectification:
    """The pinhole view of a lens, covered by the original image everywhere; maps are ready for cv2.remap."""

    lens: Lens
    intrinsics: Float[Tensor, "4"]
    size: tuple[int, int]
    map_x: Float32[np.ndarray, "height width"]
    map_y: Float32[np.ndarray, "height width"]


def lens_from_opencv(values: tuple[float, ...], size: tuple[int, int]) -> Lens:
    """From OpenCV's fx, fy, cx, cy[, k1, k2[, p1, p2[, k3]]], whose (0, 0) is the first pixel's centre."""
    if len(values) not in (4, 6, 8, 9):
        raise InputError(
            f"intrinsics have {len(values)} values: give fx,fy,cx,cy and optionally k1,k2[,p1,p2[,k3]]"
        )
    fx, fy, cx, cy, *distortion = values
    pinhole = (fx, fy, cx + 0.5, cy + 0.5)
    if not any(distortion):
        lens = Lens("PINHOLE", pinhole, size)
    elif len(distortion) == 5:
        lens = Lens("FULL_OPENCV", (*pinhole, *distortion, 0.0, 0.0, 0.0), size)
    else:
        lens = Lens("OPENCV", (*pinhole, *distortion, *([0.0] * (4 - len(distortion)))), size)
    _camera(lens)
    return lens


def resize_lens(lens: Lens, size: tuple[int, int]) -> Lens:
    """The lens of the same image resampled to another (width, height)."""
    camera = _camera(lens)
    camera.rescale(*size)
    return Lens(lens.model, tuple(float(p) for p in camera.params), size)


def refine_lens(lens: Lens, view: Float[Tensor, "4"], found: Float[Tensor, "4"]) -> Lens:
    """The lens whose pinhole view, made with the intrinsics `view`, turned out to have those of `found`."""
    camera, params = _camera(lens), np.array(lens.params)
    stretch = (found[:2] / view[:2]).numpy()
    focal, extra = list(camera.focal_length_idxs()), list(camera.extra_params_idxs())
    per_view = params[[focal[0], focal[-1]]] / view[:2].numpy()
    params[list(camera.principal_point_idxs())] += (found[2:] - view[2:]).numpy() * per_view
    params[focal] *= stretch if len(focal) == 2 else stretch.mean()
    # the same bend of the image, at slopes that are smaller by the stretch
    params[extra] *= stretch.mean() ** np.array(_ORDERS.get(lens.model, (0,) * len(extra)), dtype=np.float64)
    return Lens(lens.model, tuple(params.tolist()), lens.size)


def is_pinhole(lens: Lens) -> bool:
    """True where the image needs no rectification: the model has no distortion or all of it is zero."""
    camera = _camera(lens)
    # an equidistant fisheye whose coefficients are zero is still none
    return lens.model in _STRAIGHT and not any(lens.params[i] for i in camera.extra_params_idxs())


def undistort_points(
    pixel: Float[Tensor, "*b 2"], lens: Lens, intrinsics: Float[Tensor, "4"]
) -> Float[Tensor, "*b 2"]:
    """Pixels of the original image in the pinhole view; NaN where no pinhole view can show them."""
    flat = pixel.reshape(-1, 2).to(torch.float64)
    rays = torch.from_numpy(_camera(lens).cam_from_img(flat.numpy()))
    points = torch.cat([rays, torch.ones_like(rays[:, :1])], -1)
    pinhole = project(points, intrinsics.to(torch.float64))
    # the library's iteration may end elsewhere, or behind the camera: only a round trip tells
    back = distort_points(pinhole, lens, intrinsics)
    missed = ~((back - flat).norm(dim=-1) < _ROUND_TRIP)
    pinhole[missed] = torch.nan
    return pinhole.reshape(pixel.shape).to(pixel.dtype)


def distort_points(
    pixel: Float[Tensor, "*b 2"], lens: Lens, intrinsics: Float[Tensor, "4"]
) -> Float[Tensor, "*b 2"]:
    """Pixels of the pinhole view in the original image."""
    rays = bearing(pixel.reshape(-1, 2).to(torch.float64), intrinsics.to(torch.float64))
    distorted = torch.from_numpy(_camera(lens).img_from_cam(rays.numpy()))
    return distorted.reshape(pixel.shape).to(pixel.dtype)


def rectify(lens: Lens, max_fov: float = MAX_FOV) -> Rectification:
    """The widest pinhole view without blank pixels: square pixels, principal point in the middle."""
    if is_pinhole(lens):
        camera = _camera(lens)
        values = [
            camera.focal_length_x,
            camera.focal_length_y,
            camera.principal_point_x,
            camera.principal_point_y,
        ]
        return _with_maps(lens, torch.tensor(values, dtype=torch.float64), lens.size)
    focal = math.sqrt(_camera(lens).focal_length_x * _camera(lens).focal_length_y)
    half_width, half_height = _inner_rectangle(lens, math.tan(max_fov / 2))
    # the view is cut to whole pixels inwards, so that the border stays covered
    width, height = int(2 * focal * half_width), int(2 * focal * half_height)
    if min(width, height) < 2:
        raise InputError(
            f"no pinhole view fits into a {lens.model} image with {lens.params}: check the distortion"
        )
    intrinsics = torch.tensor([focal, focal, width / 2, height / 2], dtype=torch.float64)
    return _with_maps(lens, intrinsics, (width, height))


def _with_maps(lens: Lens, intrinsics: Float[Tensor, "4"], size: tuple[int, int]) -> Rectification:
    source = (
        distort_points(pixel_centres(*size), lens, intrinsics) - 0.5
    )  # cv2.remap counts from pixel centres
    maps = source.to(torch.float32).numpy()
    return Rectification(
        lens, intrinsics, size, np.ascontiguousarray(maps[..., 0]), np.ascontiguousarray(maps[..., 1])
    )


def _inner_rectangle(lens: Lens, max_slope: float) -> tuple[float, float]:
    """Half width and half height, at z = 1, of a rectangle about the axis that the original image covers."""
    along = torch.tensor([[-max_slope, 0.0], [max_slope, 0.0]], dtype=torch.float64)
    x = max_slope * _covered_part(lens, along)
    y = max_slope * _covered_part(lens, along.flip(-1))
    # the image may be narrower at its corners than on its axes
    shrink = _covered_part(lens, _rim(x, y))
    return shrink * x, shrink * y


def _rim(x: float, y: float, count: int = 65) -> Float[Tensor, "m 2"]:
    """Points on the sides of the rectangle [-x, x] by [-y, y]."""
    t = torch.linspace(-1, 1, count, dtype=torch.float64)
    one = torch.ones_like(t)
    sides = [(-one, t), (one, t), (t, -one), (t, one)]
    return torch.cat([torch.stack([x * u, y * v], -1) for u, v in sides])


def _covered_part(lens: Lens, ends: Float[Tensor, "m 2"]) -> float:
    """The largest factor up to 1 by which these rays (x, y at z = 1) can be stretched within the image."""
    low, high = 0.0, 1.0
    if _covered(lens, ends):
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _covered(lens, middle * ends) else (low, middle)
    return low


def _covered(lens: Lens, ends: Float[Tensor, "m 2"]) -> bool:
    """True where the way from the axis to each ray stays between pixel centres and never folds back."""
    steps = torch.linspace(0, 1, 65, dtype=torch.float64)[:, None, None]
    path = distort_points(steps * ends, lens, torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64))
    inside = (path >= 0.5) & (path <= torch.tensor(lens.size, dtype=torch.float64) - 0.5)
    step = (path - path[0]).norm(dim=-1).diff(dim=0)
    return bool(inside.all() and (step > _MIN_MAGNIFICATION * step[0]).all())


def _camera(lens: Lens) -> "pycolmap.Camera":
    """The library's camera of a lens, or one line that says what is wrong with it."""
    import pycolmap

    models: dict[str, Any] = pycolmap.CameraModelId.__members__
    known = [name for name in models if name not in ("INVALID", "EQUIRECTANGULAR")]
    if lens.model not in known:
        names = ", ".join(known)
        raise InputError(f"camera model {lens.model!r} is not known: give one of {names}")
    camera = pycolmap.Camera(
        model=lens.model, params=list(lens.params), width=lens.size[0], height=lens.size[1]
    )
    if not camera.verify_params():
        raise InputError(
            f"camera model {lens.model} got {len(lens.params)} parameters: give {camera.params_info}"
        )
    if not all(map(math.isfinite, lens.params)) or min(camera.focal_length_x, camera.focal_length_y) <= 0:
        raise InputError(
            f"camera parameters {lens.params} are not usable: give finite values and a positive focal"
        )
    if min(lens.size) < 1:
        raise InputError(f"image size {lens.size} is not usable: give a positive width and height")
    return camera

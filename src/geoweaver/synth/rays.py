"""Rays of every pixel: pinhole or distorted lens, one pose or (rolling shutter) a pose for each row."""

from functools import lru_cache

import numba
import numpy as np
import torch

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, pixel_centres
from geoweaver.geometry.distortion import Lens, distort_points, undistort_points
from geoweaver.synth.quads import Array

Intrinsics = tuple[float, float, float, float]
Distortion = tuple[float, float, float, float, float]
"""OpenCV's k1, k2, p1, p2, k3."""


def camera_lens(intrinsics: Intrinsics, distortion: Distortion, size: tuple[int, int]) -> Lens:
    """The lens that an image with these parameters was taken with, as COLMAP names it."""
    if not any(distortion):
        return Lens("PINHOLE", intrinsics, size)
    if distortion[4] == 0:
        return Lens("OPENCV", (*intrinsics, *distortion[:4]), size)
    return Lens("FULL_OPENCV", (*intrinsics, *distortion, 0.0, 0.0, 0.0), size)


@lru_cache(maxsize=8)
def pixel_slopes(
    intrinsics: Intrinsics,
    distortion: Distortion,
    size: tuple[int, int],
    offset: tuple[float, float] = (0.0, 0.0),
) -> Array:
    """(n 2): x/z and y/z of the ray through each pixel's centre, row by row."""
    pixel = pixel_centres(*size).to(torch.float64).reshape(-1, 2)
    K = torch.tensor(intrinsics, dtype=torch.float64)
    if any(distortion):
        lens = camera_lens(intrinsics, distortion, size)
        straight = undistort_points(pixel, lens, K)
        for _ in range(3):  # the library stops its search early; these steps make the slopes exact
            straight = straight + (pixel - distort_points(straight, lens, K))
        if not torch.isfinite(straight).all():
            raise ConfigError(
                f"distortion {distortion} folds the image's border over itself: give a weaker one"
            )
        pixel = straight
    return np.ascontiguousarray(bearing(pixel, K)[..., :2].numpy())


@lru_cache(maxsize=4)
def rows_of(size: tuple[int, int]) -> Array:
    """(n): the row of each pixel, row by row."""
    return np.repeat(np.arange(size[1]), size[0])


def camera_rays(slopes: Array, row: Array, cam_from_world: SE3) -> tuple[Array, Array]:
    """Origins and directions (n 3) in the world, z = 1 in the camera; one pose, or one for each row."""
    rotation = cam_from_world.rotation.to(torch.float64).reshape(-1, 3, 3).numpy()
    centre = cam_from_world.centre.to(torch.float64).reshape(-1, 3).numpy()
    rays: tuple[Array, Array] = _rays(
        slopes, row, np.ascontiguousarray(rotation), np.ascontiguousarray(centre)
    )
    return rays


@numba.njit(cache=True)
def _rays(slopes, row, rotation, centre):  # type: ignore[no-untyped-def]
    origins, directions = np.empty((len(slopes), 3)), np.empty((len(slopes), 3))
    for i in range(len(slopes)):
        k = row[i] if len(rotation) > 1 else 0
        for c in range(3):
            origins[i, c] = centre[k, c]
            directions[i, c] = (
                slopes[i, 0] * rotation[k, 0, c] + slopes[i, 1] * rotation[k, 1, c] + rotation[k, 2, c]
            )
    return origins, directions

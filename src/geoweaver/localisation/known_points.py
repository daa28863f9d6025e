"""Points of a placed keyframe whose place in the world its depth map tells."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.geometry.camera import lift, resize_intrinsics
from geoweaver.results import DepthMap

MOST_POINTS = 600
SMOOTH = 0.05
"""Relative depth step to the neighbouring pixels above which a point may lie on either of two surfaces."""


@dataclass(frozen=True)
class KnownPoints:
    """Pixels of a keyframe and where they are in the world."""

    pixel: Float[Tensor, "n 2"]
    world: Float[Tensor, "n 3"]
    row: Int[Tensor, "n"]
    """Which of the pixels that were asked for."""

    def __len__(self) -> int:
        return len(self.pixel)

    def __getitem__(self, rows: Tensor) -> "KnownPoints":
        return KnownPoints(self.pixel[rows], self.world[rows], self.row[rows])


def points_to_track(
    image: UInt8[np.ndarray, "height width 3"],
    usable: Bool[np.ndarray, "height width"] | None,
    depth: DepthMap,
    cam_from_world: SE3,
) -> KnownPoints:
    """Corners that optical flow can follow, spread over the image."""
    import cv2

    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    apart = max(4.0, 0.012 * max(grey.shape))
    mask = None if usable is None else usable.astype(np.uint8)
    found = cv2.goodFeaturesToTrack(grey, MOST_POINTS, 0.002, apart, mask=mask, blockSize=5)
    if found is None:
        return known_points(torch.zeros(0, 2, dtype=torch.float64), (1, 1), depth, cam_from_world)
    # OpenCV counts from the first pixel's centre
    pixel = torch.from_numpy(found.reshape(-1, 2)).double() + 0.5
    return known_points(pixel, (grey.shape[1], grey.shape[0]), depth, cam_from_world)


def known_points(
    pixel: Float[Tensor, "n 2"], size: tuple[int, int], depth: DepthMap, cam_from_world: SE3
) -> KnownPoints:
    """Those of the given pixels (of an image of that size) that have a depth on one smooth surface."""
    height, width = depth.depth.shape
    at = pixel * torch.tensor([width / size[0], height / size[1]], dtype=torch.float64)
    z = _depth_on_surface(depth.depth.double(), at)
    keep = z > 0
    intrinsics = resize_intrinsics(depth.intrinsics, (width, height), size)
    local = lift(pixel[keep], z[keep], intrinsics.expand(int(keep.sum()), 4))
    return KnownPoints(pixel[keep], cam_from_world.inverse().act(local), keep.nonzero().squeeze(1))


def _depth_on_surface(depth: Float[Tensor, "H W"], at: Float[Tensor, "n 2"]) -> Float[Tensor, "n"]:
    """Inverse depth between the four pixels around; 0 where one is unknown or on another surface."""
    height, width = depth.shape
    place = (at - 0.5).clamp(min=0)
    x0 = place[:, 0].floor().long().clamp(max=max(width - 2, 0))
    y0 = place[:, 1].floor().long().clamp(max=max(height - 2, 0))
    x1, y1 = (x0 + 1).clamp(max=width - 1), (y0 + 1).clamp(max=height - 1)
    corners = torch.stack([depth[y0, x0], depth[y0, x1], depth[y1, x0], depth[y1, x1]], 1)
    near, far = corners.min(1).values, corners.max(1).values
    fx, fy = (place[:, 0] - x0).clamp(max=1), (place[:, 1] - y0).clamp(max=1)
    share = torch.stack([(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy], 1)
    blended = 1 / (share / corners.clamp(min=1e-300)).sum(1)
    return torch.where((near > 0) & (far <= (1 + SMOOTH) * near), blended, 0.0)

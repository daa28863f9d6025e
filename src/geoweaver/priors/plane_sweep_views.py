"""Which views see a frame's surfaces from the side, and between which depths to look."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

BEST_ANGLE, WIDE_ANGLE = np.radians(4.5), np.radians(10.0)
"""Between rays of two views: where depth is searched, and where what was found is measured more finely."""
_ANGLE_SPREAD = 0.6
"""In powers of e: sources at half or twice the best angle still serve."""
_FEWEST_POINTS = 8
_LEAST_GAIN = 0.02
_ENOUGH = 8.0
"""How much a surface that one view sees well gains less by another view from the same side."""
CELL = 8
"""Pixels of a cell in which sparse points suggest one depth."""


@dataclass(frozen=True)
class SweepViews:
    """The cameras of a piece at the size of the depth maps, with the sparse points that each frame sees."""

    rotation: Float[np.ndarray, "n 3 3"]
    translation: Float[np.ndarray, "n 3"]
    intrinsics: tuple[float, float, float, float]
    size: tuple[int, int]
    """(width, height) of the depth maps."""
    points: tuple[Float[np.ndarray, "_ 3"], ...]
    """For each frame the points it observes, in the chunk's axes."""

    def __len__(self) -> int:
        return len(self.rotation)

    def resized(self, size: tuple[int, int]) -> "SweepViews":
        """The same cameras with smaller pictures."""
        x, y = size[0] / self.size[0], size[1] / self.size[1]
        fx, fy, cx, cy = self.intrinsics
        return replace(self, intrinsics=(x * fx, y * fy, x * cx, y * cy), size=size)


def project_points(
    views: SweepViews, camera: int, points: Float[np.ndarray, "p 3"]
) -> tuple[Float[np.ndarray, "p 2"], Float[np.ndarray, "p"]]:
    """Pixels of points in one of the views, and their depth."""
    moved = points @ views.rotation[camera].T + views.translation[camera]
    fx, fy, cx, cy = views.intrinsics
    z = np.where(np.abs(moved[:, 2]) > 1e-12, moved[:, 2], 1e-12)
    return moved[:, :2] / z[:, None] * [fx, fy] + [cx, cy], moved[:, 2]


def source_views(
    views: SweepViews, frame: int, count: int, best_angle: float = BEST_ANGLE
) -> Int[np.ndarray, "_"]:
    """Views that together see all of a frame's surface at about one angle, from every side; best first."""
    if len(views.points[frame]) < _FEWEST_POINTS:
        return np.zeros(0, np.int64)
    targets = np.concatenate([views.points[frame], surface_samples(views, frame)])
    useful, side = _usefulness(views, frame, targets, best_angle)
    seen = np.zeros_like(useful)
    chosen: list[int] = []
    for _ in range(min(count, len(views) - 1)):
        # what others see already counts less, so that no part of the image is left out
        gain = (useful / (1 + _ENOUGH * seen)).mean(1)
        gain[chosen] = 0
        best = int(gain.argmax())
        if gain[best] <= _LEAST_GAIN:
            break
        chosen.append(best)
        # views on one side of a ray miss the same surfaces behind the same edges
        seen += useful[best] * np.clip((side * side[best]).sum(-1), 0, 1)
    return np.array(chosen, np.int64)


def surface_samples(views: SweepViews, frame: int, cell: int = 32) -> Float[np.ndarray, "_ 3"]:
    """Points on a coarse grid of the image at the depth that sparse points suggest, in the chunk's axes."""
    inverse, _, x, y = _suggested_inverse_depth(views, frame, cell)
    fx, fy, cx, cy = views.intrinsics
    z = 1 / inverse.ravel()
    local = np.stack([(x.ravel() - cx) / fx * z, (y.ravel() - cy) / fy * z, z], 1)
    return np.asarray((local - views.translation[frame]) @ views.rotation[frame])


def _usefulness(
    views: SweepViews, frame: int, targets: Float[np.ndarray, "p 3"], best_angle: float
) -> tuple[Float[np.ndarray, "n p"], Float[np.ndarray, "n p 3"]]:
    """How near each view's angle to the frame's ray is to the best one, 0 out of view; and on which side."""
    centre = -np.einsum("nji,nj->ni", views.rotation, views.translation)
    rays = targets - centre[:, None]
    rays /= np.maximum(np.linalg.norm(rays, axis=-1, keepdims=True), 1e-12)
    cosine = (rays * rays[frame]).sum(-1)
    angle = np.arccos(np.clip(cosine, -1, 1)).clip(1e-4)
    nearness = np.exp(-0.5 * (np.log(angle / best_angle) / _ANGLE_SPREAD) ** 2)
    for other in range(len(views)):
        pixel, z = project_points(views, other, targets)
        nearness[other] *= (z > 0) & (pixel >= 0).all(1) & (pixel < views.size).all(1)
    nearness[frame] = 0
    across = rays - cosine[..., None] * rays[frame]
    side = across / np.maximum(np.linalg.norm(across, axis=-1, keepdims=True), 1e-12)
    return np.asarray(nearness), np.asarray(side)


def depth_planes(views: SweepViews, frame: int, planes: int) -> Float[np.ndarray, "planes"]:
    """Inverse depths from 0, the sky's, to those of 0.4 times the nearest sparse points."""
    _, z = project_points(views, frame, views.points[frame])
    z = z[z > 0]
    # a point triangulated into the lens would spend all planes on nothing
    near = max(0.4 * np.quantile(z, 0.01), 0.1 * np.median(z))
    return np.linspace(0, 1 / near, planes)


def likely_planes(
    views: SweepViews, frame: int, inverse_depth: Float[np.ndarray, "d"]
) -> Float[np.ndarray, "d"]:
    """Weights that add up to one on the planes where most of the sparse points are."""
    _, z = project_points(views, frame, views.points[frame])
    low, high = np.quantile(1 / z[z > 0], [0.05, 0.95])
    inside = (inverse_depth >= 0.8 * low) & (inverse_depth <= 1.2 * high)
    return np.asarray(inside / max(inside.sum(), 1), np.float32)


def plane_homographies(
    views: SweepViews, frame: int, sources: Int[np.ndarray, "s"], inverse_depth: Float[np.ndarray, "d"]
) -> Float[np.ndarray, "d s 3 3"]:
    """For each plane z = const and source, the homography from the frame's pixels to the source's."""
    fx, fy, cx, cy = views.intrinsics
    K = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    R = views.rotation[sources] @ views.rotation[frame].T
    t = views.translation[sources] - R @ views.translation[frame]
    tilt = np.zeros((len(inverse_depth), len(sources), 3, 3))
    tilt[..., 2] = inverse_depth[:, None, None] * t
    return np.asarray(K @ (R + tilt) @ np.linalg.inv(K), np.float32)


def sparse_prior(
    views: SweepViews, frame: int, inverse_depth: Float[np.ndarray, "d"]
) -> tuple[Float[np.ndarray, "h w"], Float[np.ndarray, "h w"]]:
    """Per cell of the image the plane that nearby sparse points suggest, and how near they are (0 to 1)."""
    inverse, nearness, _, _ = _suggested_inverse_depth(views, frame, CELL)
    plane = (inverse - inverse_depth[0]) / (inverse_depth[1] - inverse_depth[0])
    return np.clip(plane, 0, len(inverse_depth) - 1).astype(np.float32), nearness.astype(np.float32)


def _suggested_inverse_depth(
    views: SweepViews, frame: int, cell: int
) -> tuple[
    Float[np.ndarray, "h w"], Float[np.ndarray, "h w"], Float[np.ndarray, "h w"], Float[np.ndarray, "h w"]
]:
    """Sparse inverse depth weighted by distance in the image, nearness of the points, and cells' centres."""
    width, height = views.size
    pixel, z = project_points(views, frame, views.points[frame])
    pixel, inverse = pixel[z > 0], 1 / z[z > 0]
    half = cell / 2
    y, x = np.meshgrid(
        np.arange(half, height + half, cell), np.arange(half, width + half, cell), indexing="ij"
    )
    distance2 = (x[..., None] - pixel[:, 0]) ** 2 + (y[..., None] - pixel[:, 1]) ** 2
    weight = 1 / (distance2 + (CELL / 2) ** 2) ** 1.5
    suggested = (weight * inverse).sum(-1) / weight.sum(-1)
    return suggested, np.exp(-distance2.min(-1) / (4 * CELL) ** 2), x, y

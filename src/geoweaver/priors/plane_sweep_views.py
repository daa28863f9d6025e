"""Which views see a frame's surfaces from the side, and between which depths to look."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

_BEST_ANGLE = np.radians(6.0)
_ANGLE_SPREAD = 0.6
"""In powers of e: sources at half or twice the best angle still serve."""
_FEWEST_POINTS = 8
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


def project_points(
    views: SweepViews, camera: int, points: Float[np.ndarray, "p 3"]
) -> tuple[Float[np.ndarray, "p 2"], Float[np.ndarray, "p"]]:
    """Pixels of points in one of the views, and their depth."""
    moved = points @ views.rotation[camera].T + views.translation[camera]
    fx, fy, cx, cy = views.intrinsics
    z = np.where(np.abs(moved[:, 2]) > 1e-12, moved[:, 2], 1e-12)
    return moved[:, :2] / z[:, None] * [fx, fy] + [cx, cy], moved[:, 2]


def source_views(views: SweepViews, frame: int, count: int) -> Int[np.ndarray, "_"]:
    """The views that share most of a frame's points at a triangulation angle near six degrees, best first."""
    points = views.points[frame]
    if len(points) < _FEWEST_POINTS:
        return np.zeros(0, np.int64)
    centre = -np.einsum("nji,nj->ni", views.rotation, views.translation)
    ray = points - centre[frame]
    score = np.zeros(len(views))
    for other in range(len(views)):
        if other != frame:
            score[other] = _usefulness(views, other, points, ray, points - centre[other])
    order = np.argsort(-score, kind="stable")[:count]
    return order[score[order] > 0.05]


def _usefulness(
    views: SweepViews,
    other: int,
    points: Float[np.ndarray, "p 3"],
    ray: Float[np.ndarray, "p 3"],
    other_ray: Float[np.ndarray, "p 3"],
) -> float:
    """Share of the points in view, times how near their median angle is to the best one."""
    pixel, z = project_points(views, other, points)
    inside = (z > 0) & (pixel >= 0).all(1) & (pixel < views.size).all(1)
    if inside.sum() < _FEWEST_POINTS:
        return 0.0
    cosine = (ray * other_ray).sum(1) / (np.linalg.norm(ray, axis=1) * np.linalg.norm(other_ray, axis=1))
    angle = max(float(np.median(np.arccos(np.clip(cosine[inside], -1, 1)))), 1e-4)
    nearness = np.exp(-0.5 * (np.log(angle / _BEST_ANGLE) / _ANGLE_SPREAD) ** 2)
    return float(inside.mean() * nearness)


def depth_planes(views: SweepViews, frame: int, planes: int) -> Float[np.ndarray, "planes"]:
    """Inverse depths, far to near, from 1.25 times the farthest to 0.4 times the nearest sparse points."""
    _, z = project_points(views, frame, views.points[frame])
    z = z[z > 0]
    near, far = 0.4 * np.quantile(z, 0.01), 1.25 * np.quantile(z, 0.99)
    return np.linspace(1 / far, 1 / near, planes)


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
    views: SweepViews, frame: int, inverse_depth: Float[np.ndarray, "d"], cell: int = CELL
) -> tuple[Float[np.ndarray, "h w"], Float[np.ndarray, "h w"]]:
    """Per cell of the image the plane that nearby sparse points suggest, and how near they are (0 to 1)."""
    width, height = views.size
    pixel, z = project_points(views, frame, views.points[frame])
    front = z > 0
    pixel, inverse = pixel[front], 1 / z[front]
    step = inverse_depth[1] - inverse_depth[0]
    plane = np.clip((inverse - inverse_depth[0]) / step, 0, len(inverse_depth) - 1)
    y, x = np.meshgrid(
        np.arange(0, height, cell) + cell / 2, np.arange(0, width, cell) + cell / 2, indexing="ij"
    )
    distance2 = (x[..., None] - pixel[:, 0]) ** 2 + (y[..., None] - pixel[:, 1]) ** 2
    weight = 1 / (distance2 + (cell / 2) ** 2) ** 1.5
    suggested = (weight * plane).sum(-1) / weight.sum(-1)
    return suggested.astype(np.float32), np.exp(-distance2.min(-1) / (4 * cell) ** 2).astype(np.float32)

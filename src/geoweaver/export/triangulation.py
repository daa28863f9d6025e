"""Points from many views at once: robust to wrong views, verified by reprojection, depth and angle."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.export.symmetric import solve_symmetric
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, project_with_depth


@dataclass(frozen=True)
class TriangulationConfig:
    """When a point is believed; pixels of the working images."""

    max_error: float = 1.5
    """Pixels by which a view may miss the point before it is left out."""
    min_angle: float = 1.0
    """Degrees between two rays: below, the depth is anyone's guess."""
    steps: int = 2
    """Gauss-Newton steps after each choice of views."""


@dataclass(frozen=True)
class Points:
    """Triangulated points and the views that agree on them; none where a point is not believed."""

    position: Float[Tensor, "n 3"]
    used: Bool[Tensor, "n v"]
    error: Float[Tensor, "n v"]
    """Pixels."""


def triangulate(
    pixel: Float[Tensor, "n v 2"],
    seen: Bool[Tensor, "n v"],
    cam_from_world: SE3,
    intrinsics: Float[Tensor, "v 4"],
    least_views: int,
    config: TriangulationConfig,
) -> Points:
    """Points of view 0: every other view proposes a depth, and the one that most agree on is refined."""
    direction = _world_rays(pixel, cam_from_world, intrinsics)
    position = _best_proposal(pixel, seen, direction, cam_from_world, intrinsics, config.max_error)
    used = seen
    for _ in range(2):
        error = _errors(position, pixel, seen, cam_from_world, intrinsics)
        used = error < config.max_error
        for _ in range(config.steps):
            position = _step(position, pixel, used, cam_from_world, intrinsics)
    error = _errors(position, pixel, seen, cam_from_world, intrinsics)
    used = error < config.max_error
    believed = used[:, 0] & (used.sum(1) >= least_views)
    believed &= _widest_angle(direction, used) > math.radians(config.min_angle)
    return Points(position, used & believed[:, None], error)


def _world_rays(
    pixel: Float[Tensor, "n v 2"], cam_from_world: SE3, intrinsics: Float[Tensor, "v 4"]
) -> Float[Tensor, "n v 3"]:
    """Unit directions in the world."""
    ray = bearing(pixel, intrinsics)
    turned = (ray[..., None] * cam_from_world.rotation).sum(-2)
    unit: Tensor = turned / turned.norm(dim=-1, keepdim=True)
    return unit


def _best_proposal(
    pixel: Float[Tensor, "n v 2"],
    seen: Bool[Tensor, "n v"],
    direction: Float[Tensor, "n v 3"],
    cam_from_world: SE3,
    intrinsics: Float[Tensor, "v 4"],
    max_error: float,
) -> Float[Tensor, "n 3"]:
    """Where view 0's ray passes nearest to another view's, for that view with which most views agree."""
    centre = cam_from_world.centre
    best = direction.new_zeros(len(pixel), 3)
    cost = direction.new_full((len(pixel),), torch.inf)
    for view in range(1, pixel.shape[1]):
        point = _along_first_ray(centre[0], direction[:, 0], centre[view], direction[:, view])
        error = _errors(point, pixel, seen, cam_from_world, intrinsics)
        # views that miss count as a miss, however far: the sum is a truncated error
        total = torch.where(seen, error.clamp(max=max_error), 0).sum(1)
        better = seen[:, view] & (total < cost)
        best, cost = torch.where(better[:, None], point, best), torch.where(better, total, cost)
    return best


def _along_first_ray(
    origin: Float[Tensor, "3"],
    ray: Float[Tensor, "n 3"],
    other: Float[Tensor, "3"],
    toward: Float[Tensor, "n 3"],
) -> Float[Tensor, "n 3"]:
    """The point of the first ray that is nearest to the second."""
    across = other - origin
    cosine = (ray * toward).sum(-1)
    distance = (ray @ across - cosine * (toward @ across)) / (1 - cosine.square()).clamp(min=1e-12)
    return origin + distance[:, None] * ray


def _errors(
    position: Float[Tensor, "n 3"],
    pixel: Float[Tensor, "n v 2"],
    seen: Bool[Tensor, "n v"],
    cam_from_world: SE3,
    intrinsics: Float[Tensor, "v 4"],
) -> Float[Tensor, "n v"]:
    """Reprojection error; infinite in views that do not see the point or have it behind them."""
    local = _in_all_cameras(position, cam_from_world)
    projected, z = project_with_depth(local, intrinsics)
    error = (projected - pixel).norm(dim=-1)
    return torch.where(seen & (z > 0) & error.isfinite(), error, torch.inf)


def _in_all_cameras(position: Float[Tensor, "n 3"], cam_from_world: SE3) -> Float[Tensor, "n v 3"]:
    """Every point in every camera: one product instead of n v small ones."""
    turned = position @ cam_from_world.rotation.reshape(-1, 3).T
    return turned.reshape(len(position), len(cam_from_world), 3) + cam_from_world.translation


def _step(
    position: Float[Tensor, "n 3"],
    pixel: Float[Tensor, "n v 2"],
    used: Bool[Tensor, "n v"],
    cam_from_world: SE3,
    intrinsics: Float[Tensor, "v 4"],
) -> Float[Tensor, "n 3"]:
    """One Gauss-Newton step on the used views' reprojection errors."""
    local = _in_all_cameras(position, cam_from_world)
    local = torch.where(used[..., None], local, local.new_tensor([0.0, 0.0, 1.0]))
    projected, z = project_with_depth(local, intrinsics)
    R, slant = cam_from_world.rotation, local[..., :2] / z[..., None]
    # d pixel / d point = f/z (R_row - slant R_3), for x and for y
    slope = R[:, :2] - slant[..., None] * R[:, 2:]
    slope = slope * (intrinsics[:, :2] / z[..., None] * used[..., None])[..., None]
    J = slope.flatten(1, 2)
    miss = torch.where(used[..., None], pixel - projected, 0).flatten(1)
    return position + solve_symmetric(J.mT @ J, (J * miss[..., None]).sum(1))


def _widest_angle(direction: Float[Tensor, "n v 3"], used: Bool[Tensor, "n v"]) -> Float[Tensor, "n"]:
    """Largest angle between view 0's ray and another used one's (radians)."""
    chord = (direction - direction[:, :1]).norm(dim=-1)
    return 2 * (torch.where(used, chord, 0).amax(1) / 2).clamp(max=1).asin()

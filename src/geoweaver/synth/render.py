"""What a camera in a world sees: pixels, exact depth, normals, validity, and which pixels show moving things."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.synth.casting import cast, first_hits, surfaces
from geoweaver.synth.effects import Effects, develop, exposure_times, pose_at, row_times
from geoweaver.synth.quads import Array
from geoweaver.synth.rays import Intrinsics, camera_rays, pixel_slopes
from geoweaver.synth.shading import shade
from geoweaver.synth.world import World, world_coat

__all__ = ["Rendered", "cast", "render", "render_depth"]

_SUBPIXELS = ((-0.375, -0.125), (0.125, -0.375), (0.375, 0.125), (-0.125, 0.375))
"""Where silhouettes are sampled again: a rotated grid."""
_PERFECT = Effects()


@dataclass(frozen=True)
class Rendered:
    """One image and its truth."""

    rgb: UInt8[np.ndarray, "H W 3"]
    depth: Float[Tensor, "H W"]
    """z at the pixel's centre, 0 where there is only sky."""
    normal: Float[Tensor, "H W 3"]
    """Unit normals in the camera's axes, towards the camera; 0 where there is only sky."""
    valid: Bool[Tensor, "H W"]
    moving: Bool[Tensor, "H W"]


def render_depth(
    world: World, cam_from_world: SE3, intrinsics: Float[Tensor, "4"], size: tuple[int, int]
) -> Float[Tensor, "H W"]:
    """Exact z-depth at pixel centres of a (width, height) image; 0 where the camera sees the sky."""
    slopes = pixel_slopes(_four(intrinsics), _PERFECT.distortion, size)
    origins, directions = camera_rays(slopes, cam_from_world)
    t, _ = first_hits(surfaces(world.quads), origins.reshape(-1, 3), directions.reshape(-1, 3))
    return torch.from_numpy(np.where(np.isfinite(t), t, 0).reshape(size[1], size[0]))


def render(
    world: World, cam_from_world: SE3, intrinsics: Float[Tensor, "4"], size: tuple[int, int],
    effects: Effects = _PERFECT, motion: Float[Tensor, "6"] | None = None, seed: int = 0,
) -> Rendered:  # fmt: skip
    """Image and truth at the stated pose; `motion` is the twist to the next frame's camera (blur, rolling shutter)."""
    twist = torch.zeros(6, dtype=torch.float64) if motion is None else motion.to(torch.float64)
    K, rows = _four(intrinsics), row_times(size[1], effects.readout)
    slopes = pixel_slopes(K, effects.distortion, size)
    poses = _poses(cam_from_world, twist, rows, 0.0)
    t, triangle, linear = _picture(world, slopes, poses, K)
    if effects.shutter > 0:
        times = exposure_times(effects)
        linear = sum(
            _picture(world, slopes, _poses(cam_from_world, twist, rows, w), K)[2] for w in times
        ) / len(times)
    else:
        _resample_edges(world, poses, K, effects, size, triangle, linear)
    rgb = develop(linear, effects.exposure, effects.noise, np.random.default_rng([seed, 7]))
    return _rendered(world, rgb, t, triangle, poses)


def _four(intrinsics: Tensor) -> Intrinsics:
    fx, fy, cx, cy = (float(x) for x in intrinsics)
    return fx, fy, cx, cy


def _poses(cam_from_world: SE3, twist: Tensor, rows: Tensor, when: float) -> SE3:
    """One pose, or one for each row where rows are read one after the other."""
    still = bool((rows == 0).all())
    return pose_at(
        cam_from_world.to(torch.float64),
        twist,
        torch.tensor(when, dtype=torch.float64) if still else rows + when,
    )


def _picture(world: World, slopes: Array, poses: SE3, K: Intrinsics) -> tuple[Array, Array, Array]:
    """t (H W), triangle (H W) and linear colour (H W 3) of every pixel's centre."""
    origins, directions = camera_rays(slopes, poses)
    shape = slopes.shape[:2]
    t, triangle, linear = _trace(world, origins.reshape(-1, 3), directions.reshape(-1, 3), poses, K)
    return t.reshape(shape), triangle.reshape(shape), linear.reshape(*shape, 3)


def _trace(
    world: World, origins: Array, directions: Array, poses: SE3, K: Intrinsics
) -> tuple[Array, Array, Array]:
    meeting = surfaces(world.quads)
    t, triangle = first_hits(meeting, origins, directions)
    axes = poses.rotation.reshape(-1, 3, 3)[0].numpy()
    linear = shade(
        world_coat(world), meeting.plane, origins, directions, axes[0] / K[0], axes[1] / K[1], t, triangle
    )
    return t, triangle, linear


def _resample_edges(
    world: World,
    poses: SE3,
    K: Intrinsics,
    effects: Effects,
    size: tuple[int, int],
    triangle: Array,
    linear: Array,
) -> None:
    """Silhouettes get four more rays, in place: textures are filtered by their footprint, edges are not."""
    quad = triangle // 2
    edge = np.zeros(quad.shape, bool)
    across, down = quad[:, 1:] != quad[:, :-1], quad[1:] != quad[:-1]
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    edge[1:] |= down
    edge[:-1] |= down
    total = np.zeros((int(edge.sum()), 3), np.float32)
    for offset in _SUBPIXELS:
        origins, directions = camera_rays(pixel_slopes(K, effects.distortion, size, offset), poses)
        total += _trace(world, origins[edge], directions[edge], poses, K)[2]
    linear[edge] = total / len(_SUBPIXELS)


def _rendered(world: World, rgb: Array, t: Array, triangle: Array, poses: SE3) -> Rendered:
    hit = triangle >= 0
    plane = surfaces(world.quads).plane[:, :3]
    normal = plane[triangle] / np.linalg.norm(plane[triangle], axis=-1, keepdims=True)
    rotation = poses.rotation.expand(len(rgb), 3, 3)
    turned = (rotation[:, None] @ torch.from_numpy(normal)[..., None]).squeeze(-1)
    return Rendered(
        rgb,
        torch.from_numpy(np.where(hit, t, 0)),
        turned,
        torch.from_numpy(hit),
        torch.zeros(hit.shape, dtype=torch.bool),
    )

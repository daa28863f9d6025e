"""What a camera in a world sees: pixels, exact depth, normals, validity, and where things move."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.synth.casting import cast, first_hits, surfaces
from geoweaver.synth.effects import PERFECT, Effects, develop, exposure_times, pose_at, row_times
from geoweaver.synth.movers import Body, bodies_at
from geoweaver.synth.quads import Array
from geoweaver.synth.rays import Intrinsics, camera_rays, pixel_slopes, rows_of
from geoweaver.synth.tracing import Hits, colours, edges, normals, trace
from geoweaver.synth.world import World

__all__ = ["Rendered", "cast", "render", "render_depth"]

_SUBPIXELS = ((-0.35, -0.1), (0.1, 0.35), (0.3, -0.3))
"""Where silhouettes are sampled besides their pixel's centre."""


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
    """Where a mover stands before the fixed world."""


@dataclass(frozen=True, eq=False)
class _Shot:
    """Rays of one instant, their first hits, and the bodies they met."""

    bodies: tuple[Body, ...]
    poses: SE3
    intrinsics: Intrinsics
    origins: Array
    directions: Array
    hits: Hits

    def linear(self) -> Array:
        axes = self.poses.rotation.reshape(-1, 3, 3)[0].numpy()
        steps = axes[0] / self.intrinsics[0], axes[1] / self.intrinsics[1]
        return colours(self.bodies, self.hits, self.origins, self.directions, *steps)


def render_depth(
    world: World, cam_from_world: SE3, intrinsics: Float[Tensor, "4"], size: tuple[int, int]
) -> Float[Tensor, "H W"]:
    """Exact z-depth at pixel centres of a (width, height) image; 0 where the camera sees the sky."""
    slopes = pixel_slopes(_four(intrinsics), PERFECT.distortion, size)
    t, _ = first_hits(surfaces(world.quads), *camera_rays(slopes, rows_of(size), cam_from_world))
    return torch.from_numpy(np.where(np.isfinite(t), t, 0).reshape(size[1], size[0]))


def render(
    world: World, cam_from_world: SE3, intrinsics: Float[Tensor, "4"], size: tuple[int, int],
    effects: Effects = PERFECT, motion: Float[Tensor, "6"] | None = None, time: float | None = None,
    interval: float = 1 / 30, seed: int = 0,
) -> Rendered:  # fmt: skip
    """Image and truth at a pose and, where movers are wanted, a time in seconds.

    `motion` is the twist to the next frame's camera and `interval` the seconds until then.
    """
    K, rows = _four(intrinsics), row_times(size[1], effects.readout)
    slopes, row = pixel_slopes(K, effects.distortion, size), rows_of(size)
    twist = torch.zeros(6, dtype=torch.float64) if motion is None else motion.to(torch.float64)

    def shoot(when: float) -> _Shot:
        bodies = bodies_at(world, None if time is None else time + when * interval)
        return _shoot(bodies, slopes, row, _poses(cam_from_world, twist, rows, when), K)

    sharp = shoot(0.0)
    if effects.shutter > 0:
        linear = np.mean([shoot(when).linear() for when in exposure_times(effects)], 0)
    else:
        linear = sharp.linear()
        _resample_edges(sharp, slopes, row, size, linear)
    rng, gain = np.random.default_rng([seed, 7]), effects.exposure * world.light.exposure
    return _rendered(sharp, develop(linear.reshape(size[1], size[0], 3), gain, effects.noise, rng))


def _four(intrinsics: Tensor) -> Intrinsics:
    fx, fy, cx, cy = (float(x) for x in intrinsics)
    return fx, fy, cx, cy


def _poses(cam_from_world: SE3, twist: Tensor, rows: Tensor, when: float) -> SE3:
    """One pose, or one for each row where rows are read one after the other."""
    still = bool((rows == 0).all())
    at = torch.tensor(when, dtype=torch.float64) if still else rows + when
    return pose_at(cam_from_world.to(torch.float64), twist, at)


def _shoot(bodies: tuple[Body, ...], slopes: Array, row: Array, poses: SE3, K: Intrinsics) -> _Shot:
    origins, directions = camera_rays(slopes, row, poses)
    return _Shot(bodies, poses, K, origins, directions, trace(bodies, origins, directions))


def _resample_edges(shot: _Shot, slopes: Array, row: Array, size: tuple[int, int], linear: Array) -> None:
    """Silhouettes get more rays, in place: textures are filtered by their footprint, edges are not."""
    edge = np.flatnonzero(edges(shot.bodies, shot.hits, linear, size[0]))
    offsets = np.asarray(_SUBPIXELS) / np.asarray(shot.intrinsics[:2])
    around = (slopes[edge] + offsets[:, None]).reshape(-1, 2)
    again = _shoot(shot.bodies, around, np.tile(row[edge], len(offsets)), shot.poses, shot.intrinsics)
    more = again.linear().reshape(len(offsets), len(edge), 3).sum(0)
    linear[edge] = (linear[edge] + more) / (1 + len(offsets))


def _rendered(shot: _Shot, rgb: Array) -> Rendered:
    hits, shape = shot.hits, rgb.shape[:2]
    towards = torch.from_numpy(normals(shot.bodies, hits, shot.directions)).reshape(*shape, 3)
    rotation = shot.poses.rotation.reshape(-1, 1, 3, 3)
    turned = (
        (towards @ rotation[0, 0].mT) if len(rotation) == 1 else (rotation @ towards[..., None]).squeeze(-1)
    )
    depth = torch.from_numpy(np.where(hits.triangle >= 0, hits.t, 0)).reshape(shape)
    moving = torch.from_numpy(hits.owner > 0).reshape(shape)
    return Rendered(rgb, depth, turned, depth > 0, moving)

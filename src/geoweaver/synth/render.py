"""What a camera in a world sees: exact depth, and (from `shading`) pixels, normals and validity."""

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.synth.casting import cast
from geoweaver.synth.world import World

__all__ = ["camera_rays", "cast", "render_depth"]


def camera_rays(
    cam_from_world: SE3, intrinsics: Float[Tensor, "4"], size: tuple[int, int]
) -> tuple[Float[Tensor, "n 3"], Float[Tensor, "n 3"]]:
    """Origin and direction of every pixel centre's ray in the world, row by row; directions have z = 1 in the camera."""
    width, height = size
    fx, fy, cx, cy = intrinsics.to(torch.float64).unbind()
    v, u = torch.meshgrid(
        torch.arange(height, dtype=torch.float64) + 0.5,
        torch.arange(width, dtype=torch.float64) + 0.5,
        indexing="ij",
    )
    in_camera = torch.stack([(u - cx) / fx, (v - cy) / fy, torch.ones_like(u)], -1).reshape(-1, 3)
    centre = cam_from_world.centre.to(torch.float64)
    return centre.expand(len(in_camera), 3), in_camera @ cam_from_world.rotation.to(torch.float64)


def render_depth(
    world: World, cam_from_world: SE3, intrinsics: Float[Tensor, "4"], size: tuple[int, int]
) -> Float[Tensor, "H W"]:
    """Exact z-depth at pixel centres of a (width, height) image; 0 where the camera sees the sky."""
    t = cast(world, *camera_rays(cam_from_world, intrinsics, size))
    return torch.where(torch.isfinite(t), t, torch.zeros_like(t)).reshape(size[1], size[0])

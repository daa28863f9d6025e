"""Which way is up, told by the cameras alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3

_LEVEL = 0.2
"""Least over middle spread of the cameras' right sides: below it they all lie in one plane, the horizon."""


def up_direction(cam_from_world: SE3) -> Float[Tensor, "3"]:
    """The world's up: across the plane of the cameras' right sides, else the mean of their own ups."""
    R = cam_from_world.rotation
    mean = _unit(-R[:, 1].mean(0))
    spread, axes = torch.linalg.eigh((R[:, 0, :, None] * R[:, 0, None, :]).mean(0))
    level = axes[:, 0] * torch.where(axes[:, 0] @ mean < 0, -1.0, 1.0)
    # right sides that all point one way leave the horizon open, and a rolled camera has no level side
    clear = spread[0] < _LEVEL * spread[1] and float(level @ mean) > 0.7
    return level if clear else mean


def z_up_from_world(up: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """The smallest rotation that turns a direction to +Z."""
    up = _unit(up.double())
    z = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    axis, cosine = up.cross(z, -1), up[2]
    if cosine < -1 + 1e-9:
        return torch.diag(torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64))
    x, y, w = axis
    zero = torch.zeros_like(x)
    K = torch.stack([zero, -w, y, w, zero, -x, -y, x, zero]).reshape(3, 3)
    return torch.eye(3, dtype=torch.float64) + K + K @ K / (1 + cosine)


def _unit(direction: Float[Tensor, "3"]) -> Float[Tensor, "3"]:
    length = direction.norm()
    # cameras that look every way have no up: theirs is the first's
    return direction / length if length > 1e-6 else torch.tensor([0.0, -1.0, 0.0], dtype=direction.dtype)

"""Which way is up, told by the cameras alone; whoever draws or exports a world asks here."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.geometry.lie import SE3

_LEVEL = 0.2
"""Least over middle spread of the cameras' right sides: below it they all lie in one plane, the horizon."""
_STILL = 1e-4
"""Middle spread (squared sine) of right sides that all point one way."""
_NEAR = 0.7
"""Cosine of a hint to the horizon's normal from which on it decides between the two sides."""
_TURNED = 0.7
"""Length of the cameras' mean up below which they turned too much for it to say all."""


def up_direction(cam_from_world: SE3, trusted: Bool[Tensor, "F"] | None = None) -> Float[Tensor, "3"]:
    """The world's up: across the plane of the cameras' right sides, else the mean of their own ups.

    Where some cameras are trusted, the others have no say.
    """
    R = cam_from_world.rotation.reshape(-1, 3, 3).double()
    R = R[trusted] if trusted is not None and bool(trusted.any()) else R
    if not len(R):
        return torch.tensor([0.0, -1.0, 0.0], dtype=torch.float64)
    heads, backs = -R[:, 1].mean(0), -R[:, 2].mean(0)
    # cameras that look straight down and turn have no up of their own: it lies behind them
    hints = [heads, backs] if float(heads.norm()) < _TURNED else [heads]
    spread, axes = torch.linalg.eigh((R[:, 0, :, None] * R[:, 0, None, :]).mean(0))
    # right sides that all point one way leave the horizon open, and a rolled camera has no level side
    if spread[1] > _STILL and spread[0] < _LEVEL * spread[1]:
        for hint in hints:
            cosine = axes[:, 0] @ hint / hint.norm().clamp(min=1e-12)
            if abs(cosine) > _NEAR:
                level: Tensor = axes[:, 0] * cosine.sign()
                return level
    longest = max(hints, key=lambda hint: float(hint.norm()))
    # cameras that look every way have no up: theirs is the first's
    return longest / longest.norm() if longest.norm() > 1e-6 else -R[0, 1]


def z_up_from_world(up: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """The smallest rotation that turns a direction to +Z."""
    up = up.double() / up.double().norm()
    z = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    axis, cosine = up.cross(z, -1), up[2]
    if cosine < -1 + 1e-9:
        return torch.diag(torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64))
    x, y, w = axis
    zero = torch.zeros_like(x)
    K = torch.stack([zero, -w, y, w, zero, -x, -y, x, zero]).reshape(3, 3)
    return torch.eye(3, dtype=torch.float64) + K + K @ K / (1 + cosine)

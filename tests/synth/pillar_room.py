"""A stand-in world for the simulated prior's tests: a closed room with a pillar, cast exactly in float64."""

import math
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.synth.simulated_truth import SceneTruth, scene_truth

ROOM = torch.tensor([6.0, 5.0, 1.5], dtype=torch.float64)
"""Half extents (x, y, z)."""
PILLAR = torch.tensor([0.6, 0.6, 1.5], dtype=torch.float64)
SIZE = (512, 288)
FOCAL = 400.0


def _slabs(origins: Tensor, directions: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    """Where rays enter and leave a box around the origin."""
    safe = torch.where(directions == 0, 1e-300, directions)
    a, b = (-half - origins) / safe, (half - origins) / safe
    return torch.minimum(a, b).amax(-1), torch.maximum(a, b).amin(-1)


def cast(origins: Tensor, directions: Tensor, unit: float = 1.0) -> Tensor:
    """Distance to the room's walls from inside, or to the pillar in its middle;
    directions are unit vectors."""
    _, wall = _slabs(origins / unit, directions, ROOM)
    enter, leave = _slabs(origins / unit, directions, PILLAR)
    hit = (enter > 0) & (enter < leave)
    return unit * torch.where(hit, torch.minimum(enter, wall), wall)


def walk(frames: int, laps: float = 1.5) -> SE3:
    """A round about the pillar, looking along the way, now outwards, now at the pillar."""
    phase = torch.linspace(0, 2 * math.pi * laps, frames, dtype=torch.float64)
    centre = torch.stack([4 * phase.cos(), 3 * phase.sin(), 0.2 * (3 * phase).sin()], -1)
    yaw = phase + 0.5 * math.pi + 0.9 * (2 * phase).sin()
    forward = torch.stack([yaw.cos(), yaw.sin(), 0.1 * phase.cos()], -1)
    forward = forward / forward.norm(dim=-1, keepdim=True)
    up = torch.tensor([0, 0, 1.0], dtype=torch.float64).expand(frames, 3)
    right = torch.linalg.cross(forward, up)
    right = right / right.norm(dim=-1, keepdim=True)
    rotation = torch.stack([right, torch.linalg.cross(forward, right), forward], -2)
    return SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1))


def room(
    frames: int = 90, laps: float = 1.5, depth_size: tuple[int, int] = (96, 54), unit: float = 1.0
) -> SceneTruth:
    """The truth of a walk around the room, in any unit of length."""
    path = walk(frames, laps)
    path = SE3(path.rotation, unit * path.translation)
    k = torch.tensor([FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2], dtype=torch.float64)
    truth = scene_truth(path, k, SIZE, lambda o, d: cast(o, d, unit), depth_size)
    return replace(truth, depth_of=lru_cache(None)(truth.depth_of))

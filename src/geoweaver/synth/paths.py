"""Camera paths: smooth closed rounds through a world's waypoints, and how close they come to things."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.synth.casting import cast
from geoweaver.synth.curves import closed_curve
from geoweaver.synth.quads import Array
from geoweaver.synth.world import World


@dataclass(frozen=True)
class Gait:
    """How a camera is carried along its round."""

    bob: float = 0.02
    """Metres up and down at every step of 0.7 m."""
    sway: float = 0.06
    """Metres to the sides, differently in every lap."""
    gaze: float = 25.0
    """Degrees of looking around."""
    pitch: float = -6.0
    """Degrees; below 0 the camera looks down."""
    look_ahead: float = 1.3
    """Metres to the point of the round that the camera heads for."""


WALK = Gait()
DRIVE = Gait(bob=0.004, sway=0.25, gaze=5.0, pitch=0.0, look_ahead=3.0)
FLY = Gait(bob=0.0, sway=0.6, gaze=18.0, pitch=-18.0, look_ahead=4.0)
_GAITS = {"walk": WALK, "drive": DRIVE, "fly": FLY}


def looking(
    centre: Float[Tensor, "F 3"], yaw: Float[Tensor, "F"], pitch: Float[Tensor, "F"], roll: Float[Tensor, "F"]
) -> SE3:
    """Cameras that look along the angle yaw (from +x to +y), up by pitch, tilted by roll, in radians."""
    zero = torch.zeros_like(yaw)
    forward = torch.stack([yaw.cos() * pitch.cos(), yaw.sin() * pitch.cos(), pitch.sin()], -1)
    level = torch.stack([yaw.sin(), -yaw.cos(), zero], -1)
    under = torch.linalg.cross(forward, level)
    right = roll.cos()[:, None] * level + roll.sin()[:, None] * under
    rotation = torch.stack([right, torch.linalg.cross(forward, right), forward], -2)
    return SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1))


def travel(
    waypoints: Float[np.ndarray, "p 3"], frames: int, laps: float = 1.0, seed: int = 0, gait: Gait = WALK
) -> SE3:
    """A closed round cut into `frames` equal steps: smooth turns, head bob, sway and looking around."""
    rng = np.random.default_rng(seed)
    position, length = closed_curve(waypoints)
    s = np.linspace(0, laps * length, frames)
    phase, step = 2 * np.pi * s / length, 2 * np.pi * s / 0.7
    centre = position(s)
    ahead = np.mean([position(s + f * gait.look_ahead) for f in (0.5, 1.0, 1.5, 2.0)], 0)
    yaw = np.unwrap(np.arctan2(ahead[:, 1] - centre[:, 1], ahead[:, 0] - centre[:, 0]))
    sideways = np.stack([-np.sin(yaw), np.cos(yaw), 0 * s], -1) * gait.sway * _waves(phase, rng, 3)[:, None]
    centre = centre + sideways + np.stack([0 * s, 0 * s, gait.bob * np.sin(step)], -1)
    yaw = yaw + np.radians(gait.gaze) * _waves(phase, rng, 3)
    pitch = np.radians(gait.pitch + 0.25 * gait.gaze * _waves(phase, rng, 3))
    roll = 0.3 * gait.bob * np.sin(step / 2) + np.radians(0.04 * gait.gaze) * _waves(phase, rng)
    return looking(*(torch.from_numpy(np.asarray(x)) for x in (centre, yaw, pitch, roll)))


def walk(waypoints: Float[np.ndarray, "p 3"], frames: int, laps: float = 1.0, seed: int = 0) -> SE3:
    """A person's round."""
    return travel(waypoints, frames, laps, seed, WALK)


def drive(waypoints: Float[np.ndarray, "p 3"], frames: int, laps: float = 1.0, seed: int = 0) -> SE3:
    """A car's round: eyes on the road."""
    return travel(waypoints, frames, laps, seed, DRIVE)


def fly(waypoints: Float[np.ndarray, "p 3"], frames: int, laps: float = 1.0, seed: int = 0) -> SE3:
    """A drone's round: looking down."""
    return travel(waypoints, frames, laps, seed, FLY)


def orbit(
    target: Sequence[float], radius: float, height: float, frames: int, laps: float = 1.0, seed: int = 0
) -> SE3:
    """Circles around `target`, wavering in radius and height, always looking at it."""
    rng = np.random.default_rng(seed)
    phase = np.linspace(0, 2 * np.pi * laps, frames)
    wobble = [_waves(phase, rng) for _ in range(4)]
    r = radius * (1 + 0.08 * wobble[0])
    offset = np.stack([r * np.cos(phase), r * np.sin(phase), height * (1 + 0.25 * wobble[1])], -1)
    centre = torch.from_numpy(np.asarray(target, float) + offset)
    yaw = np.arctan2(-offset[:, 1], -offset[:, 0]) + 0.05 * wobble[2]
    pitch = np.arctan2(-offset[:, 2], r) + 0.03 * wobble[3]
    return looking(centre, torch.from_numpy(yaw), torch.from_numpy(pitch), torch.from_numpy(0.02 * wobble[0]))


def default_path(
    world: World, frames: int, laps: float = 1.0, seed: int = 0, route: str | None = None
) -> SE3:
    """A path along one of the world's routes (its first by default), in the manner that names the route."""
    name = next(iter(world.routes)) if route is None else route
    if name not in world.routes:
        raise ConfigError(f"{world.name} has no route {name!r}: choose one of {', '.join(world.routes)}")
    ring = world.routes[name]
    if name != "orbit":
        return travel(ring, frames, laps, seed, _GAITS[name])
    middle = ring.mean(0)
    radius = float(np.linalg.norm(ring[:, :2] - middle[:2], axis=-1).mean())
    return orbit((middle[0], middle[1], middle[2] - 0.45), radius, 0.45, frames, laps, seed)


def clearance(world: World, centres: Float[Tensor, "F 3"], rays: int = 256) -> Float[Tensor, "F"]:
    """Metres from each place to the nearest surface, looking into `rays` directions all around."""
    k = torch.arange(rays, dtype=torch.float64) + 0.5
    z, a = 1 - 2 * k / rays, k * (np.pi * (3 - np.sqrt(5)))
    r = (1 - z * z).sqrt()
    around = torch.stack([r * a.cos(), r * a.sin(), z], -1)
    origins = centres.repeat_interleave(rays, 0)
    return cast(world, origins, around.repeat(len(centres), 1)).reshape(-1, rays).amin(1)


def _waves(phase: Array, rng: np.random.Generator, waves: int = 2) -> Array:
    """A smooth random function of the lap's phase in [-1, 1], nearly the same in every lap."""
    rate = rng.integers(1, 6, waves) + 0.13 * rng.standard_normal(waves)
    return np.asarray(np.mean([np.sin(k * phase + rng.uniform(0, 2 * np.pi)) for k in rate], 0))

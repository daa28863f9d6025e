"""Camera paths: smooth closed rounds through a world's waypoints, as cam_from_world."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.synth.quads import Array


def looking(
    centre: Float[Tensor, "F 3"], yaw: Float[Tensor, "F"], pitch: Float[Tensor, "F"], roll: Float[Tensor, "F"]
) -> SE3:
    """Cameras at `centre` that look along the compass angle yaw (from +x to +y), up by pitch, tilted by roll (radians)."""
    zero = torch.zeros_like(yaw)
    forward = torch.stack([yaw.cos() * pitch.cos(), yaw.sin() * pitch.cos(), pitch.sin()], -1)
    level = torch.stack([yaw.sin(), -yaw.cos(), zero], -1)
    under = torch.linalg.cross(forward, level)
    right = roll.cos()[:, None] * level + roll.sin()[:, None] * under
    rotation = torch.stack([right, torch.linalg.cross(forward, right), forward], -2)
    return SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1))


def walk(
    waypoints: Float[np.ndarray, "p 3"],
    frames: int,
    laps: float = 1.0,
    seed: int = 0,
    bob: float = 0.02,
    gaze: float = 25.0,
) -> SE3:
    """A person's round: head bob in metres, smooth turns, looking around by up to `gaze` degrees."""
    return _round(waypoints, frames, laps, seed, bob, gaze, look_ahead=0.8)


def drive(
    waypoints: Float[np.ndarray, "p 3"], frames: int, laps: float = 1.0, seed: int = 0, gaze: float = 4.0
) -> SE3:
    """A car's round: no bob, eyes on the road."""
    return _round(waypoints, frames, laps, seed, 0.004, gaze, look_ahead=2.0)


def orbit(
    target: Sequence[float], radius: float, height: float, frames: int, laps: float = 1.0, seed: int = 0
) -> SE3:
    """Circles around `target`, wavering in radius and height, always looking at it."""
    rng = np.random.default_rng(seed)
    phase = np.linspace(0, 2 * np.pi * laps, frames)
    wobble = [_waves(phase, rng) for _ in range(4)]
    r = radius * (1 + 0.08 * wobble[0])
    offset = np.stack([r * np.cos(phase), r * np.sin(phase), height * (1 + 0.15 * wobble[1])], -1)
    centre = torch.from_numpy(np.asarray(target, float) + offset)
    yaw = np.arctan2(-offset[:, 1], -offset[:, 0]) + 0.05 * wobble[2]
    pitch = np.arctan2(-offset[:, 2], r) + 0.03 * wobble[3]
    return looking(centre, torch.from_numpy(yaw), torch.from_numpy(pitch), torch.from_numpy(0.02 * wobble[0]))


def _round(
    waypoints: Array, frames: int, laps: float, seed: int, bob: float, gaze: float, look_ahead: float
) -> SE3:
    rng = np.random.default_rng(seed)
    position, length = _closed_curve(waypoints)
    s = np.linspace(0, laps * length, frames)
    centre, ahead = position(s), position(s + look_ahead)
    phase = 2 * np.pi * s / length
    step = 2 * np.pi * s / 0.7  # a step every 0.7 m
    centre = centre + np.stack([0 * s, 0 * s, bob * np.sin(step)], -1)
    yaw = np.unwrap(np.arctan2(ahead[:, 1] - centre[:, 1], ahead[:, 0] - centre[:, 0]))
    yaw += np.radians(gaze) * _waves(phase, rng, 3)
    pitch = np.radians(-4) + np.radians(0.25 * gaze) * _waves(phase, rng, 3)
    roll = 0.3 * bob * np.sin(step / 2) + np.radians(0.04 * gaze) * _waves(phase, rng)
    return looking(*(torch.from_numpy(np.asarray(x)) for x in (centre, yaw, pitch, roll)))


def _closed_curve(waypoints: Array):  # type: ignore[no-untyped-def]
    """The periodic spline through the waypoints as a function of arc length, and its length."""
    from scipy.interpolate import CubicSpline

    closed = np.concatenate([waypoints, waypoints[:1]])
    knots = np.concatenate([[0], np.cumsum(np.sqrt(np.linalg.norm(np.diff(closed, axis=0), axis=-1)))])
    spline = CubicSpline(knots, closed, bc_type="periodic")
    fine = np.linspace(0, knots[-1], 200 * len(waypoints))
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(spline(fine), axis=0), axis=-1))])
    return lambda s: spline(np.interp(np.mod(s, length[-1]), length, fine)), length[-1]


def _waves(phase: Array, rng: np.random.Generator, waves: int = 2) -> Array:
    """A smooth random function of the lap's phase in [-1, 1], nearly the same in every lap."""
    rate = rng.integers(1, 6, waves) + 0.13 * rng.standard_normal(waves)
    return np.mean([np.sin(k * phase + rng.uniform(0, 2 * np.pi)) for k in rate], 0)

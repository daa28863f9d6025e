"""Camera errors of a simulated prior: the chunk's gauge, drift along it, jitter of each frame, focal."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.so3 import so3_exp
from geoweaver.synth.simulated_noise import PriorNoise
from geoweaver.synth.simulated_truth import stream

DRIFT_FRAMES = 60
"""Frames along which a drift has its stated size: the paper's chunk; shorter chunks drift less."""
_MODES = 3
"""Half waves of a drift curve along those frames: a bow, an S, and one more."""
_STRAY_SHIFT, _STRAY_TURN = 0.1, 5.0
"""Error per axis of a stray camera: median depths and degrees."""


def chunk_gauge(first: SE3, median_depth: float, noise: PriorNoise, seed: int, chunk: int) -> Sim3:
    """world_from_chunk: the first camera's axes with median depth 1, moved by a random similarity."""
    rng = stream(seed, "gauge", chunk)
    shift = _tensor(noise.gauge_shift * rng.standard_normal(3))
    axis = rng.standard_normal(3)
    turn = _tensor(axis / np.linalg.norm(axis) * math.pi * noise.gauge_turn * rng.random())
    scale = math.exp(noise.gauge_scale * rng.standard_normal())
    unit = torch.tensor(median_depth, dtype=torch.float64)
    first_from_world = Sim3(1 / unit, first.rotation, first.translation / unit)
    chunk_from_first = Sim3(torch.tensor(scale, dtype=torch.float64), so3_exp(turn), scale * shift)
    return (chunk_from_first @ first_from_world).inverse()


def scale_drift(frames: int, noise: PriorNoise, seed: int, chunk: int) -> Float[Tensor, "n"]:
    """The chunk's smooth log-scale curve, with median 0: the gauge's scale is the chunk's median scale."""
    curve = _smooth_curve(stream(seed, "scale_drift", chunk), frames, 1)[:, 0]
    return noise.scale_drift * (curve - curve.median())


def drifted(
    cam_from_world: SE3, log_scale: Float[Tensor, "n"], noise: PriorNoise, seed: int, chunk: int
) -> SE3:
    """The path with its steps scaled and its directions bent along the way;
    its middle camera stays where it is."""
    middle = len(cam_from_world) // 2
    turn = _smooth_curve(stream(seed, "bend", chunk), len(cam_from_world), 3)
    turn = math.radians(noise.bend) * (turn - turn[middle])
    rotation = so3_exp(turn) @ cam_from_world.rotation
    centre = cam_from_world.centre
    step = centre.diff(dim=0) * (0.5 * (log_scale[1:] + log_scale[:-1])).exp()[:, None]
    # a step is seen from its first camera, so it turns with that camera's error
    bent = (rotation.mT @ cam_from_world.rotation)[:-1] @ step[..., None]
    path = torch.cat([torch.zeros(1, 3, dtype=step.dtype), bent.squeeze(-1).cumsum(0)])
    path = path - path[middle] + centre[middle]
    return SE3(rotation, -(rotation @ path[..., None]).squeeze(-1))


def in_chunk(cam_from_world: SE3, world_from_chunk: Sim3) -> SE3:
    """cam_from_chunk, in the chunk's own unit of length, of cameras in the world."""
    scale = world_from_chunk.scale
    moved = cam_from_world.rotation @ world_from_chunk.translation + cam_from_world.translation
    return SE3(cam_from_world.rotation @ world_from_chunk.rotation, moved / scale)


def jittered(cam_from_chunk: SE3, unit: float, noise: PriorNoise, seed: int, chunk: int) -> SE3:
    """Each camera's own error, and the gross one of stray frames; `unit` is the median depth in chunk
    units."""
    n, rng = len(cam_from_chunk), stream(seed, "jitter", chunk)
    own, gross, chance = rng.standard_normal((n, 6)), rng.standard_normal((n, 6)), rng.random((n, 1))
    sizes = [unit * noise.shift_jitter] * 3 + [math.radians(noise.turn_jitter)] * 3
    stray = [unit * _STRAY_SHIFT] * 3 + [math.radians(_STRAY_TURN)] * 3
    delta = own * np.array(sizes) + (chance < noise.stray_frames) * gross * np.array(stray)
    return SE3.exp(_tensor(delta)) @ cam_from_chunk


def focal_error(frames: int, noise: PriorNoise, seed: int, chunk: int) -> Float[Tensor, "n"]:
    """Factor on each frame's focal: one part common to the sequence, one per chunk, one per frame."""
    shared = noise.focal_shared * stream(seed, "focal_shared").standard_normal()
    rng = stream(seed, "focal", chunk)
    common = shared + noise.focal_chunk * rng.standard_normal()
    return _tensor(np.exp(common + noise.focal_frame * rng.standard_normal(frames)))


def _smooth_curve(rng: np.random.Generator, frames: int, dims: int) -> Float[Tensor, "n d"]:
    """A few random half waves along the frames, of variance 1 over `DRIFT_FRAMES` on average."""
    mode = np.arange(1, _MODES + 1)
    weight = 1 / mode
    amplitude = rng.standard_normal((_MODES, dims)) * (weight * np.sqrt(2 / (weight**2).sum()))[:, None]
    waves = np.cos(np.pi * mode * np.arange(frames)[:, None] / (DRIFT_FRAMES - 1))
    return _tensor(waves @ amplitude)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float64))

"""What a feed-forward model would predict of each chunk, made from exact depth and cameras
(docs/simulated_prior.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.datatypes import Chunk, ChunkPrior
from geoweaver.errors import DegenerateError
from geoweaver.geometry import Sim3
from geoweaver.synth.simulated_cameras import (
    chunk_gauge,
    drifted,
    focal_error,
    in_chunk,
    jittered,
    scale_drift,
)
from geoweaver.synth.simulated_depth import predicted_depth
from geoweaver.synth.simulated_noise import PriorNoise
from geoweaver.synth.simulated_truth import SceneTruth

__all__ = ["PriorNoise", "SimulatedChunk", "simulate_chunk", "simulate_prior"]


@dataclass(frozen=True)
class SimulatedChunk:
    """A chunk's prediction and what it should have been."""

    prior: ChunkPrior
    world_from_chunk: Sim3
    """The true similarity of the chunk: exact at its middle frame, its scale the median over the chunk."""
    log_scale: Float[Tensor, "n"]
    """How far each frame's local scale has drifted from that."""


def simulate_prior(
    truth: SceneTruth, chunks: Sequence[Chunk], noise: PriorNoise, seed: int
) -> Iterator[ChunkPrior]:
    """Predictions of all chunks, one at a time; a frame shared by two chunks is predicted twice."""
    return (simulate_chunk(truth, chunk, noise, seed).prior for chunk in chunks)


def simulate_chunk(truth: SceneTruth, chunk: Chunk, noise: PriorNoise, seed: int) -> SimulatedChunk:
    """One chunk's prediction; it depends on (seed, chunk.index) alone, so chunks can be made in any order."""
    key = (noise, seed, chunk.index)
    frame = torch.tensor(chunk.frames)
    true_depth = torch.stack([truth.depth_of(f) for f in chunk.frames]).double()
    median = _median_depth(true_depth, chunk)
    cameras = truth.cam_from_world[frame]
    world_from_chunk = chunk_gauge(cameras[0], median, *key)
    log_scale = scale_drift(len(chunk), *key)
    per_chunk_unit = true_depth / world_from_chunk.scale * log_scale.exp()[:, None, None]
    depth, confidence = predicted_depth(per_chunk_unit.float(), *key)
    path = in_chunk(drifted(cameras, log_scale, *key), world_from_chunk)
    path = jittered(path, median / float(world_from_chunk.scale), *key)
    intrinsics = truth.depth_intrinsics[frame].clone()
    intrinsics[:, :2] *= focal_error(len(chunk), *key)[:, None]
    return SimulatedChunk(ChunkPrior(frame, depth, confidence, path, intrinsics), world_from_chunk, log_scale)


def _median_depth(depth: Tensor, chunk: Chunk) -> float:
    """The chunk's median depth: the unit that all its errors are relative to."""
    valid = depth[depth > 0]
    if len(valid) == 0:
        raise DegenerateError(
            f"chunk {chunk.index} (frames {chunk.frames[0]} to {chunk.frames[-1]}) sees only sky: "
            "point its cameras at the scene"
        )
    return float(valid.median())

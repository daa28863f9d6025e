"""A small exact scene for the stages: a wavy wall, cameras on an arc, chunks in gauges of their own."""

from dataclasses import dataclass

import torch

from geoweaver.datatypes import Correspondences, Observations
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.camera import project_with_depth

SIZE = (320, 240)
K = torch.tensor([260.0, 260.0, 160.0, 120.0], dtype=torch.float64)


@dataclass(frozen=True)
class Scene:
    """Truth and what the chunks say of it."""

    cam_from_world: SE3
    observations: Observations
    world_from_chunk: Sim3
    chunk_table: Correspondences
    frame_table: Correspondences
    canonical: torch.Tensor


def scene(
    frames: int = 21,
    per_chunk: int = 8,
    points: int = 60,
    noise: float = 0.0,
    seed: int = 0,
    unit: float = 1.0,
) -> Scene:
    """Chunks share one frame; `noise` is the relative depth error and, times ten, the match error (px)."""
    g = torch.Generator().manual_seed(seed)
    d = torch.float64
    s = torch.linspace(0, 1, frames, dtype=d)
    centre = torch.stack([4 * s, 0.3 * torch.sin(5 * s), 0.5 * s], -1) * unit
    omega = torch.stack([0.05 * torch.sin(3 * s), 0.3 * (s - 0.5), 0.02 * s], -1)
    rotation = SE3.exp(torch.cat([torch.zeros(frames, 3, dtype=d), omega], -1)).rotation
    cameras = SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1))
    xy = torch.rand(points * frames, 2, generator=g, dtype=d) * torch.tensor([10.0, 4.0]) - torch.tensor(
        [3.0, 2.0]
    )
    z = 3.5 + torch.sin(xy[:, 0]) + 0.5 * torch.cos(2 * xy[:, 1])
    cloud = torch.cat([xy, z[:, None]], -1) * unit
    chunks = []
    first = 0
    while first < frames - 1:
        chunks.append(list(range(first, min(first + per_chunk, frames))))
        first += per_chunk - 1
    gauge = Sim3.exp(0.7 * torch.randn(len(chunks), 7, generator=g, dtype=d))
    gauge = Sim3(gauge.scale * unit, gauge.rotation, gauge.translation * unit)
    frame = torch.tensor([f for c in chunks for f in c])
    chunk = torch.tensor([k for k, c in enumerate(chunks) for _ in c])
    local = _in_chunks(cameras[frame], gauge[chunk])
    confidence = torch.rand(len(frame), generator=g, dtype=d) + 1
    observations = Observations(frame, chunk, local, K.expand(len(frame), 4), confidence, SIZE)
    canonical = torch.stack([torch.where(frame == f, confidence, -1.0).argmax() for f in range(frames)])
    edges = [(i, j) for i in range(frames) for j in (i + 1, i + 2, i + 4) if j < frames]
    rows: dict[str, list[torch.Tensor]] = {"chunk": [], "frame": []}
    for edge, (i, j) in enumerate(edges):
        pixel_i, depth_i = project_with_depth(cameras[i].act(cloud), K)
        pixel_j, depth_j = project_with_depth(cameras[j].act(cloud), K)
        seen = _inside(pixel_i, depth_i) & _inside(pixel_j, depth_j)
        keep = seen.nonzero().squeeze(1)[:points]
        for a in (frame == i).nonzero().squeeze(1).tolist():
            for b in (frame == j).nonzero().squeeze(1).tolist():
                columns = _row(
                    g, edge, a, b, pixel_i, pixel_j, depth_i, depth_j, keep, gauge.scale[chunk], noise
                )
                if chunk[a] != chunk[b]:
                    rows["chunk"].append(columns)
                if a == canonical[i] and b == canonical[j]:
                    rows["frame"].append(columns)
    return Scene(cameras, observations, gauge, _table(rows["chunk"]), _table(rows["frame"]), canonical)


def _in_chunks(cam_from_world: SE3, world_from_chunk: Sim3) -> SE3:
    moved = Sim3.from_se3(cam_from_world) @ world_from_chunk
    return SE3(moved.rotation, moved.translation / world_from_chunk.scale[:, None])


def _inside(pixel: torch.Tensor, depth: torch.Tensor) -> torch.Tensor:
    return (depth > 0) & (pixel > 2).all(-1) & (pixel < torch.tensor(SIZE) - 2).all(-1)


def _row(g, edge, a, b, pixel_i, pixel_j, depth_i, depth_j, keep, scale, noise):  # type: ignore[no-untyped-def]
    n = len(keep)
    ones = torch.ones(n, dtype=torch.float64)
    wobble = [noise * torch.randn(n, generator=g, dtype=torch.float64) for _ in range(2)]
    jitter = 10 * noise * torch.randn(n, 2, generator=g, dtype=torch.float64)
    return torch.cat(
        [
            torch.stack([edge * ones, a * ones, b * ones], -1), pixel_i[keep], pixel_j[keep] + jitter,
            (depth_i[keep] / scale[a] * (1 + wobble[0]))[:, None],
            (depth_j[keep] / scale[b] * (1 + wobble[1]))[:, None],
            torch.rand(n, 1, generator=g, dtype=torch.float64) + 0.1,
        ],
        -1,
    )  # fmt: skip


def _table(parts: list[torch.Tensor]) -> Correspondences:
    t = torch.cat(parts)
    return Correspondences(
        t[:, 0].long(), t[:, 1].long(), t[:, 2].long(), t[:, 3:5], t[:, 5:7], t[:, 7], t[:, 8], t[:, 9]
    )

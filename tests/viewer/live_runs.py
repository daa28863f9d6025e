"""Finished runs of a small rendered room, in memory: exact cameras and depth, stages that drift."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from geoweaver.datatypes import Camera, Features, Frames, Matches, Reconstruction, ViewGraph
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.results import DepthMap, FinishedRun, StageView
from geoweaver.synth.clips import Clip, ClipOptions, make_clip, render_clip
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import join
from geoweaver.synth.solids import box, sheet
from geoweaver.synth.walls import wall
from geoweaver.synth.world import World

SIZE = (96, 64)


def room() -> World:
    """A brick room of 5 m with two blocks."""
    walls = [wall("x", y, (-2.5, 2.5), 2.5, "brick", "plain", [], 0.1) for y in (-2.5, 2.5)]
    walls += [wall("y", x, (-2.5, 2.5), 2.5, "brick", "brick", [], 0.1) for x in (-2.5, 2.5)]
    blocks = [
        box((0.9, -1.7, 0), (1.7, -0.9, 0.9), {"": "print", "+z": "poster:1"}, fit=False),
        box((-1.9, 0.9, 0), (-1.2, 1.8, 1.3), {"": "tiles", "+z": "poster:2"}, fit=False),
    ]
    angle = np.arange(8) * np.pi / 4
    ring = np.stack([1.1 * np.cos(angle), 1.1 * np.sin(angle), np.full(8, 1.4)], -1)
    quads = join(sheet((-2.5, -2.5), (2.5, 2.5), 0, "tiles"), *walls, *blocks)
    return World("room", 3, quads, {"walk": ring}, Light(reach=0.5))


@dataclass(frozen=True)
class Memory:
    """Pixels, depth, matches and features that lie in memory."""

    images: tuple[np.ndarray, ...]
    depths: tuple[torch.Tensor, ...]
    intrinsics: torch.Tensor


class MemoryPixels(Memory):
    def read(self, frame: int) -> np.ndarray:
        return self.images[frame]


class MemoryDepths(Memory):
    @property
    def frames(self) -> tuple[int, ...]:
        return tuple(range(len(self.depths)))

    def read(self, frame: int) -> DepthMap:
        depth = self.depths[frame].float()
        across = torch.linspace(0, 1, depth.shape[1]).expand_as(depth).clone()
        return DepthMap(depth, across, self.intrinsics[frame])


class NoMatches:
    def read(self, edge: int) -> Matches:
        none = torch.zeros(0, 2, dtype=torch.float64)
        return Matches(torch.zeros(0, dtype=torch.long), none, none, none[:, 0])


class NoFeatures:
    def read(self, frame: int) -> Features:
        none = torch.zeros(0, dtype=torch.float64)
        return Features(none.reshape(0, 2), torch.zeros(0, 128, dtype=torch.uint8), none, none)


@lru_cache
def rendered(frames: int = 12) -> tuple[Clip, tuple[np.ndarray, ...], tuple[torch.Tensor, ...]]:
    clip = make_clip(room(), ClipOptions(frames=frames, size=SIZE, laps=0.8))
    shown = list(render_clip(clip))
    return clip, tuple(np.ascontiguousarray(r.rgb) for r in shown), tuple(r.depth for r in shown)


def drifted(cameras: SE3, by: float) -> SE3:
    """Cameras that slide away along x, ever more."""
    slide = torch.zeros(len(cameras), 3, dtype=torch.float64)
    slide[:, 0] = by * torch.linspace(0, 1, len(cameras), dtype=torch.float64) ** 2
    return SE3(cameras.rotation, cameras.translation - (cameras.rotation @ slide[..., None]).squeeze(-1))


def make_run(
    folder: Path, frames: int = 12, world_from_truth: Sim3 | None = None, prefix: str = ""
) -> FinishedRun:
    """A run whose cameras are the truth, moved by a similarity, three frames of which are not trusted."""
    clip, images, depths = rendered(frames)
    moved = Sim3.identity() if world_from_truth is None else world_from_truth
    cameras = world_camera(moved, clip.cam_from_world)
    names = tuple(f"{prefix}frame_{k:05d}.png" for k in range(frames))
    trusted = torch.arange(frames) < frames - 3
    index = torch.arange(frames)
    lens = Camera("PINHOLE", tuple(clip.intrinsics[0].tolist()), *SIZE)
    source = tuple(moved.scale * d for d in depths)
    edges = torch.stack([index[:-1], index[1:]], 1)
    scale = torch.ones(frames, dtype=torch.float64)
    errors = torch.rand(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return FinishedRun(
        folder,
        Frames(
            names, clip.timestamps, torch.zeros_like(index), torch.ones_like(trusted), (lens,), SIZE,
            MemoryPixels(images, source, clip.intrinsics),
        ),
        Reconstruction(
            names, clip.timestamps, cameras, clip.intrinsics, SIZE, trusted,
            torch.zeros(frames, 2, dtype=torch.float64),
            dict.fromkeys(range(frames - 3, frames), "motion blur <b>here</b>"),
        ),
        ViewGraph(edges, torch.zeros(len(edges), dtype=torch.long)),
        torch.zeros(len(edges), dtype=torch.bool),
        index // 4,
        scale,
        torch.zeros_like(scale),
        tuple(
            StageView(name, drifted(cameras, float(moved.scale) * by), errors * (1 + by), errors * (1 + by))
            for name, by in (("Stage 1", 2.0), ("Stage 2", 0.5), ("Stage 3", 0.0))
        ),
        MemoryDepths(images, source, clip.intrinsics),
        NoMatches(),
        NoFeatures(),
        {"version": "test"},
    )  # fmt: skip


def doubtful(run: FinishedRun) -> FinishedRun:
    """The same run with no trusted frame."""
    return replace(run, result=replace(run.result, trusted=torch.zeros_like(run.result.trusted)))

"""Finished runs made up in memory: a walk about a pillar in a painted room, with doubts, loops, stages."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from geoweaver.datatypes import (
    Camera,
    EdgeKind,
    Features,
    Frames,
    Matches,
    Reconstruction,
    StageReport,
    ViewGraph,
)
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import lift, pixel_centres
from geoweaver.results import DepthMap, FinishedRun, StageView
from tests.synth.pillar_room import cast, walk

SIZE = (96, 54)
INTRINSICS = torch.tensor([75.0, 75.0, 48.0, 27.0], dtype=torch.float64)
HOSTILE = (
    "<script>alert(1)</script>.jpg",
    "a \"quoted\" 'name'.jpg",
    "</script><b>.jpg",
    "路 ñ Ω й.jpg",
    "a b&amp;.jpg",
)


@dataclass(frozen=True)
class Room:
    """What each camera sees: exact depth, and colours that depend on where the wall is."""

    cam_from_world: SE3
    frames: tuple[int, ...]
    known: dict[int, DepthMap] = field(default_factory=dict)

    def read(self, frame: int) -> DepthMap:
        if frame not in self.known:
            pose = self.cam_from_world[frame].inverse()
            rays = lift(
                pixel_centres(*SIZE).reshape(-1, 2), torch.ones(SIZE[0] * SIZE[1]).double(), INTRINSICS
            )
            length = rays.norm(dim=-1, keepdim=True)
            away = cast(pose.translation.expand(len(rays), 3), (rays / length) @ pose.rotation.mT)
            depth = (away / length[:, 0]).reshape(SIZE[1], SIZE[0])
            depth[:3] = 0
            self.known[frame] = DepthMap(depth, (1 / (1 + 0.2 * depth)).clamp(0, 1), INTRINSICS)
        return self.known[frame]

    def points(self, frame: int) -> Tensor:
        shown = self.read(frame)
        local = lift(pixel_centres(*SIZE).reshape(-1, 2), shown.depth.flatten().clamp(min=0.1), INTRINSICS)
        return self.cam_from_world[frame].inverse().act(local)


@dataclass(frozen=True)
class Paint:
    """The room's pixels."""

    room: Room

    def read(self, frame: int) -> np.ndarray:
        p = self.room.points(frame).numpy()
        checks = (np.floor(p[:, 0] * 1.5) + np.floor(p[:, 1] * 1.5) + np.floor(p[:, 2] * 1.5)) % 2
        tint = np.stack([120 + 15 * p[:, 0], 110 + 18 * p[:, 1], 130 + 40 * p[:, 2]], -1)
        return (
            (tint * (0.6 + 0.4 * checks[:, None])).clip(0, 255).astype(np.uint8).reshape(SIZE[1], SIZE[0], 3)
        )


class Nothing:
    """Matches and features of a run that nobody asks for."""

    def read(self, which: int) -> Matches | Features:
        raise AssertionError("the report reads neither matches nor features")


def made_run(
    folder: Path, frames: int = 36, names: tuple[str, ...] = (), doubted: tuple[int, ...] = (7, 8, 9, 20)
) -> FinishedRun:
    """A run whose every part is there: three chunks, loops believed and rejected, traces, residuals."""
    path = walk(frames, 1.1)
    room = Room(path, tuple(f for f in range(frames) if f != doubted[-1]))
    every = [*names, *(f"{f:06}.jpg" for f in range(len(names), frames))][:frames]
    camera = Camera("PINHOLE", (75.0, 75.0, 48.0, 27.0), *SIZE)
    times = torch.arange(frames).double()
    whole = Frames(
        tuple(every),
        times,
        torch.zeros(frames, dtype=torch.long),
        torch.ones(frames, dtype=torch.bool),
        (camera,),
        SIZE,
        Paint(room),
        notes=("the images have no <b>focal</b>: it was estimated",),
    )
    trusted = torch.ones(frames, dtype=torch.bool)
    trusted[list(doubted)] = False
    reason = {f: f"only {10 + f} % of its matches agree" for f in doubted[:-1]} | {
        doubted[-1]: "no matches with depth"
    }
    sigma = torch.full((frames, 2), 0.01, dtype=torch.float64)
    sigma[doubted[-1]] = torch.inf
    result = Reconstruction(
        tuple(every), times, path, INTRINSICS.expand(frames, 4), SIZE, trusted, sigma, reason, made_reports()
    )
    graph, rejected = made_graph(frames)
    chunk = (torch.arange(frames) * 3 // frames).long()
    chunk[doubted[-1]] = -1
    wave = torch.linspace(0, 6, frames, dtype=torch.float64)
    return FinishedRun(
        folder,
        whole,
        result,
        graph,
        rejected,
        chunk,
        1 + 0.02 * wave.sin(),
        0.01 * wave.cos(),
        made_views(path),
        room,
        Nothing(),
        Nothing(),
        made_summary(result),
    )


def made_graph(frames: int) -> tuple[ViewGraph, Tensor]:
    near = [(i, i + step, EdgeKind.TEMPORAL) for step in (1, 2) for i in range(frames - step)]
    border = [(i - 1, i + 1, EdgeKind.CROSS_CHUNK) for i in (frames // 3, 2 * frames // 3)]
    far = [(k, frames - 3 + k, EdgeKind.LONG_RANGE) for k in range(3)] + [
        (4, frames // 2, EdgeKind.LONG_RANGE)
    ]
    rows = near + border + far
    edges = torch.tensor([[i, j] for i, j, _ in rows])
    rejected = torch.zeros(len(rows), dtype=torch.bool)
    rejected[-1] = True
    return ViewGraph(edges, torch.tensor([int(k) for *_, k in rows])), rejected


def made_reports() -> tuple[StageReport, ...]:
    falling = lambda a, b, n: tuple(b + (a - b) * 0.7**k for k in range(n))  # noqa: E731
    return (
        StageReport(
            "1 sequential initialisation",
            falling(0.8, 0.5, 6),
            median_px=4.0,
            iterations=5,
            why_stopped="converged",
            seconds=1.0,
        ),
        StageReport(
            "2 chunk alignment",
            falling(0.5, 0.3, 12),
            median_px=1.5,
            iterations=11,
            why_stopped="converged",
            seconds=2.0,
        ),
        StageReport(
            "3 frame refinement",
            falling(0.3, 0.1, 20),
            median_px=0.6,
            iterations=19,
            why_stopped="converged",
            seconds=4.0,
        ),
    )


def made_views(path: SE3) -> tuple[StageView, ...]:
    generator = torch.Generator().manual_seed(0)
    views = []
    for name, size, bend in (("Stage 1", 4.0, 0.10), ("Stage 2", 1.5, 0.04), ("Stage 3", 0.6, 0.0)):
        errors = size * torch.randn(4000, generator=generator, dtype=torch.float64).exp()
        errors[:40] = torch.inf
        drift = (
            bend
            * torch.linspace(0, 1, len(path), dtype=torch.float64)[:, None]
            * torch.tensor([1.0, 2.0, 0.5]).double()
        )
        views.append(
            StageView(name, SE3(path.rotation, 2.5 * (path.translation + drift)), errors, errors / 60)
        )
    return tuple(views)


def made_summary(result: Reconstruction) -> dict[str, object]:
    laps = [("frames", 3.0), ("features", 12.5), ("matches", 40.0), ("priors", 66.0)]
    stages = [
        {
            "name": n,
            "seconds": s,
            "iterations": 0,
            "median_px": None,
            "why_stopped": "done",
            "notes": [],
            "peak_rss_mib": 1381.4,
        }
        for n, s in laps
    ]
    stages += [
        {
            "name": r.name,
            "seconds": r.seconds,
            "iterations": r.iterations,
            "objective_start": r.objective[0],
            "objective_end": r.objective[-1],
            "median_px": r.median_px,
            "why_stopped": r.why_stopped,
            "notes": [],
        }
        for r in result.reports
    ]
    config = {"chunk_size": 60, "prior": "sfm", "weave": {"sampling": {"max_per_pair": 2000}}, "masks": None}
    return {
        "version": "0.1.0",
        "config": config,
        "stages": stages,
        "input": "/films/walk <1>.mp4",
        "seconds_total": 128.5,
        "peak_rss_bytes": 812_000_000,
    }

"""Finished runs without a reconstruction: a small world seen by exact cameras, matches with known errors."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from geoweaver.datatypes import EdgeKind, Frames, Matches, Reconstruction, ViewGraph
from geoweaver.features.sift import no_features
from geoweaver.frames import FramesConfig, open_frames
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import lift, project_with_depth, resize_intrinsics, sample_bilinear
from geoweaver.results import DepthMap, FinishedRun
from geoweaver.synth.clips import Clip, ClipOptions, make_clip, render_frame
from geoweaver.synth.effects import Effects
from geoweaver.synth.render import render_depth
from tests.synth.tiny_world import tiny_world

SIZE = (240, 160)
OFFSETS = (1, 2, 3, 5)
CELL = 8


def walk(frames: int = 8, size: tuple[int, int] = SIZE, effects: Effects | None = None) -> Clip:
    """A short arc through the tiny room."""
    options = ClipOptions(frames=frames, size=size, laps=0.012 * frames, effects=effects or Effects())
    return make_clip(tiny_world(), options)


def pictures(clip: Clip) -> list[np.ndarray]:
    return [render_frame(clip, k).rgb for k in range(len(clip))]


def write_pictures(folder: Path, images: list[np.ndarray], names: list[str]) -> Path:
    for name, image in zip(names, images, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / name, **({"quality": 95} if name.endswith("jpg") else {}))
    return folder


@dataclass(frozen=True)
class MadeDepths:
    """Exact depth at half the working size."""

    clip: Clip
    result: Reconstruction

    @property
    def frames(self) -> tuple[int, ...]:
        return tuple(range(len(self.clip)))

    def read(self, frame: int) -> DepthMap:
        width, height = self.result.size[0] // 2, self.result.size[1] // 2
        intrinsics = resize_intrinsics(self.result.intrinsics[frame], self.result.size, (width, height))
        depth = render_depth(self.clip.world, self.clip.cam_from_world[frame], intrinsics, (width, height))
        return DepthMap(depth.float(), torch.ones(height, width), intrinsics)


@dataclass(frozen=True)
class MadeMatches:
    """Matches by edge."""

    edges: tuple[Matches, ...]

    def read(self, edge: int) -> Matches:
        return self.edges[edge]


class NoFeatures:
    def read(self, frame: int):
        return no_features()


def finished(
    clip: Clip,
    input: Path,
    folder: Path,
    options: FramesConfig | None = None,
    noise: float = 0.0,
    wrong: float = 0.0,
    trusted: Tensor | None = None,
) -> FinishedRun:
    """A run over these recorded images whose cameras are the clip's own."""
    frames = open_frames(input, options or FramesConfig())
    intrinsics = torch.tensor(
        [frames.cameras[g].rectified for g in frames.camera.tolist()], dtype=torch.float64
    )
    trusted = torch.ones(len(clip), dtype=torch.bool) if trusted is None else trusted
    result = Reconstruction(
        frames.names, frames.timestamps, clip.cam_from_world, intrinsics, frames.size, trusted,
        torch.full((len(clip), 2), 0.01, dtype=torch.float64),
        dict.fromkeys((~trusted).nonzero().squeeze(1).tolist(), "made so"),
    )  # fmt: skip
    pairs = [(i, i + k) for i in range(len(clip)) for k in OFFSETS if i + k < len(clip)]
    graph = ViewGraph(torch.tensor(pairs), torch.full((len(pairs),), int(EdgeKind.TEMPORAL)))
    depths = [exact_depth(clip, result, f) for f in range(len(clip))]
    rng = np.random.default_rng(0)
    table = [
        exact_matches(frames, result, depths, e, i, j, noise, wrong, rng) for e, (i, j) in enumerate(pairs)
    ]
    whole = torch.ones(len(clip), dtype=torch.float64)
    return FinishedRun(
        folder, frames, result, graph, torch.zeros(len(pairs), dtype=torch.bool),
        torch.zeros(len(clip), dtype=torch.long), whole, 0 * whole, (), MadeDepths(clip, result),
        MadeMatches(tuple(table)), NoFeatures(), {"input": str(input)},
    )  # fmt: skip


def exact_depth(clip: Clip, result: Reconstruction, frame: int) -> Tensor:
    return render_depth(clip.world, clip.cam_from_world[frame], result.intrinsics[frame], result.size)


def exact_matches(
    frames: Frames,
    result: Reconstruction,
    depths: list[Tensor],
    edge: int,
    i: int,
    j: int,
    noise: float,
    wrong: float,
    rng: np.random.Generator,
) -> Matches:
    """One match per cell of frame i, at the same place for every j, as the classical matcher has them."""
    width, height = result.size
    x, y = np.meshgrid(np.arange(CELL // 2, width, CELL) + 0.5, np.arange(CELL // 2, height, CELL) + 0.5)
    pixel = torch.from_numpy(np.stack([x.ravel(), y.ravel()], -1))
    if frames.masks is not None:
        usable = frames.masks.read(i)
        pixel = pixel[torch.from_numpy(usable[pixel[:, 1].long(), pixel[:, 0].long()])]
    depth, known = sample_bilinear(depths[i], pixel)
    point = result.cam_from_world[i].inverse().act(lift(pixel, depth, result.intrinsics[i]))
    target, z = project_with_depth(result.cam_from_world[j].act(point), result.intrinsics[j])
    seen, there = sample_bilinear(depths[j], target)
    shown = known & there & (z > 0) & ((seen / z - 1).abs() < 0.02)
    pixel, target = pixel[shown], target[shown]
    target = target + noise * torch.from_numpy(rng.standard_normal(target.shape))
    astray = torch.from_numpy(rng.random(len(target)) < wrong)
    target = torch.where(
        astray[:, None], target + 25 * torch.from_numpy(rng.standard_normal(target.shape)), target
    )
    return Matches(torch.full((len(pixel),), edge), pixel, target, torch.full((len(pixel),), 0.9))


def moved(cameras: SE3, by: float, seed: int = 0) -> SE3:
    """Cameras a little off."""
    rng = torch.Generator().manual_seed(seed)
    return SE3.exp(by * torch.randn(len(cameras), 6, generator=rng, dtype=torch.float64)) @ cameras


def with_cameras(run: FinishedRun, cameras: SE3) -> FinishedRun:
    return replace(run, result=replace(run.result, cam_from_world=cameras))


def stated(clip: Clip) -> str:
    """The clip's intrinsics as a user types them."""
    fx, fy, cx, cy = clip.intrinsics[0].tolist()
    k1, k2, p1, p2, _ = clip.effects.distortion
    tail = f",{k1},{k2},{p1},{p2}" if any(clip.effects.distortion) else ""
    return f"{fx},{fy},{cx - 0.5},{cy - 0.5}{tail}"


def first(clip: Clip, count: int) -> Clip:
    """The beginning of a clip."""
    return replace(
        clip, cam_from_world=clip.cam_from_world[:count], intrinsics=clip.intrinsics[:count],
        timestamps=clip.timestamps[:count], exposure=clip.exposure[:count],
    )  # fmt: skip

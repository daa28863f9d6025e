"""Pairs of frames whose true flow is known: the synthetic worlds, and a recording with depth and cameras."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from geoweaver.datatypes import Features
from geoweaver.features.sift import extract_features
from geoweaver.formats.tum import read_tum
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import lift, project_with_depth
from geoweaver.synth.clips import ClipOptions, make_clip, render_frame
from geoweaver.synth.effects import Effects
from geoweaver.synth.world import build_world

OFFSETS = (1, 4, 8, 16)
Image = NDArray[np.uint8]
R = TypeVar("R")


@dataclass(frozen=True)
class Scene:
    """Frames with exact (or measured) depth and cameras, and the pairs to match by kind."""

    name: str
    pairs: dict[str, list[tuple[int, int]]]
    image: Callable[[int], Image]
    features: Callable[[int], Features]
    depth: Callable[[int], Tensor | None]
    cam_from_world: SE3
    intrinsics: Tensor
    exact: float
    """Error in pixels below which the truth itself is not to be trusted."""

    def flow(self, i: int, j: int, pixel: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Where pixels of i truly lie in j, where that is known, and where j sees the same surface."""
        depth = self.depth(i)
        assert depth is not None, "the first frame of a pair has depth"
        z = _nearest(depth, pixel)
        moved = (self.cam_from_world[j] @ self.cam_from_world[i].inverse()).act(
            lift(pixel, z, self.intrinsics[i])
        )
        there, z_j = project_with_depth(moved, self.intrinsics[j])
        known = (z > 0) & (z_j > 0)
        size = torch.tensor(depth.shape[::-1])
        seen = known & ((there >= 0) & (there < size)).all(-1)
        other = self.depth(j)
        if other is not None:
            seen &= (_nearest(other, there) / z_j - 1).abs() < 0.03
        return there, known, seen


def world_scene(name: str, frames: int = 300, size: tuple[int, int] = (640, 360)) -> Scene:
    """A round through a world and a little more, with sensor noise and changing exposure."""
    options = ClipOptions(
        frames=frames, size=size, laps=1.15, exposure_swing=1.15, effects=Effects(noise=2.0)
    )
    clip = make_clip(build_world(name, 1), options)
    shown = _kept(lambda frame: render_frame(clip, frame))
    pairs = _timed([20, 75, 130, 185, 240])
    pairs |= _far(clip.cam_from_world, range(frames))
    image = _kept(lambda frame: shown(frame).rgb)
    depth = _kept(lambda frame: shown(frame).depth)
    features = _kept(lambda frame: extract_features(image(frame)))
    return Scene(name, pairs, image, features, depth, clip.cam_from_world, clip.intrinsics, 1.0)


def walk_scene(folder: Path) -> Scene:
    """The recorded walk: cameras and depth are measured, so that a pixel is not to be judged below three."""
    cameras = read_tum(folder / "groundtruth.tum").cam_from_world
    files = sorted((folder / "images").iterdir())
    intrinsics = torch.tensor([495.568, 495.482, 270.003, 169.694], dtype=torch.float64)

    def depth(frame: int) -> Tensor | None:
        path = folder / "depth" / f"{frame:06d}.png"
        raw = cv2.imread(str(path), cv2.IMREAD_UNCHANGED) if path.exists() else None
        return None if raw is None else torch.from_numpy(raw.astype(np.float64) / 1000)

    def image(frame: int) -> Image:
        return np.asarray(cv2.cvtColor(cv2.imread(str(files[frame])), cv2.COLOR_BGR2RGB), dtype=np.uint8)

    pairs = _timed([10, 40, 80, 130, 170, 210, 250, 300, 340]) | _far(cameras, range(0, len(files), 2))
    features = _kept(lambda frame: extract_features(image(frame)))
    return Scene("indoor_walk", pairs, image, features, depth, cameras, intrinsics.expand(len(files), 4), 3.0)


def _kept(function: Callable[[int], R]) -> Callable[[int], R]:
    """The same, remembering: a frame is in several pairs."""
    return lru_cache(maxsize=64)(function)


def _timed(bases: list[int]) -> dict[str, list[tuple[int, int]]]:
    return {f"+{offset}": [(b, b + offset) for b in bases] for offset in OFFSETS}


def _far(cameras: SE3, frames: range, wanted: int = 6) -> dict[str, list[tuple[int, int]]]:
    """Pairs far apart in time that look from nearly one place into one direction, and pairs back to back."""
    centre = -(cameras.rotation.mT @ cameras.translation[..., None]).squeeze(-1)
    ahead, extent = cameras.rotation[:, 2], centre.std(0).norm()
    apart = 3 * torch.cdist(centre, centre) / extent + torch.acos((ahead @ ahead.T).clamp(-1, 1))
    usable = torch.tensor(frames)
    i, j = torch.triu_indices(len(usable), len(usable), 60 // frames.step)
    i, j = usable[i], usable[j]
    order = apart[i, j].argsort(stable=True)
    loops: list[tuple[int, int]] = []
    for row in order.tolist():
        a, b = int(i[row]), int(j[row])
        if all(abs(a - c) >= 4 for c, _ in loops):
            # not the very same place: a few frames further, as retrieval errs
            loops.append((a, min(b + frames.step * (len(loops) % 4), frames[-1])))
        if len(loops) == wanted:
            break
    worst = order[-50 * wanted :: 50].tolist()
    return {"loop": loops, "unrelated": [(int(i[row]), int(j[row])) for row in worst]}


def _nearest(depth: Tensor, pixel: Tensor) -> Tensor:
    """Depth at the pixels that positions lie in; 0 outside."""
    column, row = torch.nan_to_num(pixel, -1.0).floor().long().unbind(-1)
    inside = (column >= 0) & (row >= 0) & (column < depth.shape[1]) & (row < depth.shape[0])
    return torch.where(
        inside, depth[row.clamp(0, depth.shape[0] - 1), column.clamp(0, depth.shape[1] - 1)], 0
    )

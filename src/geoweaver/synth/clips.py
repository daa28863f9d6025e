"""A clip: a camera's way through a world with its lens, exposure and times; rendered frame by frame."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.engine import map_pieces
from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.synth.effects import PERFECT, Effects
from geoweaver.synth.paths import default_path
from geoweaver.synth.render import Rendered, render, render_depth
from geoweaver.synth.world import Looks, World, give_looks, world_looks

R = TypeVar("R")


@dataclass(frozen=True)
class Clip:
    """All that determines a sequence of images: the same clip gives the same bytes."""

    world: World
    cam_from_world: SE3
    intrinsics: Float[Tensor, "F 4"]
    size: tuple[int, int]
    timestamps: Float[Tensor, "F"]
    """Seconds."""
    exposure: Float[Tensor, "F"]
    """Gain on linear light, on top of the effects' own."""
    effects: Effects = PERFECT
    movers: bool = False
    seed: int = 0

    def __len__(self) -> int:
        return len(self.timestamps)


@dataclass(frozen=True)
class ClipOptions:
    """How a clip is taken."""

    frames: int = 300
    size: tuple[int, int] = (512, 288)
    laps: float = 1.05
    """Rounds of the route; above 1 the camera sees the beginning again."""
    route: str | None = None
    """One of the world's routes; its first by default."""
    focal: float = 0.72
    """Focal length in image widths."""
    zoom: float = 1.0
    """The focal swings up to this factor and back, three times over the clip; 1 keeps it fixed."""
    exposure_swing: float = 1.0
    """The exposure wanders between 1/swing and swing."""
    fps: float = 10.0
    effects: Effects = PERFECT
    movers: bool = False
    seed: int = 0


def make_clip(world: World, options: ClipOptions | None = None) -> Clip:
    """A camera on one of the world's routes."""
    o = options or ClipOptions()
    if o.frames < 2 or min(o.size) < 8 or o.focal <= 0 or o.zoom <= 0 or o.exposure_swing <= 0 or o.fps <= 0:
        raise ConfigError(
            f"a clip of {o.frames} frames of {o.size} at focal {o.focal}, zoom {o.zoom}, "
            f"swing {o.exposure_swing}, {o.fps} fps cannot be taken: give 2 frames, 8 pixels, factors above 0"
        )
    phase = torch.linspace(0, 1, o.frames, dtype=torch.float64)
    focal = o.focal * o.size[0] * o.zoom ** (0.5 - 0.5 * (6 * torch.pi * phase).cos())
    middle = torch.tensor(o.size, dtype=torch.float64).expand(o.frames, 2) / 2
    intrinsics = torch.cat([focal[:, None], focal[:, None], middle], 1)
    wander = (7.3 * torch.pi * phase + o.seed).sin() * (3.1 * torch.pi * phase).cos()
    poses = default_path(world, o.frames, o.laps, o.seed, o.route)
    stamps = torch.arange(o.frames, dtype=torch.float64) / o.fps
    gain = o.exposure_swing**wander
    return Clip(world, poses, intrinsics, o.size, stamps, gain, o.effects, o.movers, o.seed)


def render_frame(clip: Clip, frame: int) -> Rendered:
    """One frame of a clip with its truth."""
    after = min(frame + 1, len(clip) - 1)
    before = max(after - 1, 0)
    motion = (clip.cam_from_world[after] @ clip.cam_from_world[before].inverse()).log()
    effects = replace(clip.effects, exposure=clip.effects.exposure * float(clip.exposure[frame]))
    return render(
        clip.world, clip.cam_from_world[frame], clip.intrinsics[frame], clip.size, effects, motion,
        time=float(clip.timestamps[frame]) if clip.movers else None,
        interval=float(clip.timestamps[after] - clip.timestamps[before]), seed=clip.seed * 1_000_003 + frame,
    )  # fmt: skip


def render_clip(clip: Clip, workers: int = 1) -> Iterator[Rendered]:
    """All frames in order; any number of workers gives the same bytes."""
    return map_frames(render_frame, clip, workers)


def map_frames(function: Callable[[Clip, int], R], clip: Clip, workers: int) -> Iterator[R]:
    """A function of clip and frame over all frames; the world's looks are made once, for all workers."""
    work = partial(_with_looks, function, clip, world_looks(clip.world))
    return map_pieces(work, range(len(clip)), workers, title=f"render {clip.world.name}")


def _with_looks(function: Callable[[Clip, int], R], clip: Clip, looks: Looks, frame: int) -> R:
    give_looks(clip.world, looks)
    return function(clip, frame)


def clip_depth(
    clip: Clip, size: tuple[int, int] | None = None, workers: int = 1
) -> Iterator[Float[Tensor, "H W"]]:
    """Exact depth of the fixed world in every frame's pinhole view, at any size; no pixels are painted."""
    size = clip.size if size is None else size
    return map_pieces(
        partial(_depth, clip, size), range(len(clip)), workers, title=f"depth of {clip.world.name}"
    )


def _depth(clip: Clip, size: tuple[int, int], frame: int) -> Float[Tensor, "H W"]:
    factor = np.array(size * 2) / np.array(clip.size * 2)
    return render_depth(
        clip.world, clip.cam_from_world[frame], clip.intrinsics[frame] * torch.from_numpy(factor), size
    )

"""Which views an iteration is shown: drawn from seed, step and rank alone, so that a resumed training
sees what an undisturbed one would have seen and no sampler has a state to be kept."""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from geoweaver.errors import InputError
from geoweaver.models.vit import PATCH
from geoweaver.training.batch import Batch, join_clips
from geoweaver.training.datasets.registry import Source
from geoweaver.training.datasets.scene import Scene
from geoweaver.training.fitting import fit_view
from geoweaver.training.settings import TrainConfig

log = logging.getLogger(__name__)

_ATTEMPTS = 20
"""Clips tried before the data is given up: single frames of large datasets are often broken."""
_TRAINING, _VALIDATION = 0, 1


def training_batch(sources: Sequence[Source], config: TrainConfig, step: int, rank: int = 0) -> Batch:
    """The clips of one iteration on one device; their number of views and size are the same on all."""
    rng = np.random.default_rng([config.seed, _TRAINING, config.stage, step])
    views, size = draw_views(config, rng), draw_size(config, rng)
    key = [config.seed, _TRAINING, config.stage, step, rank]
    clips = [_clip(sources, views, size, [*key, k]) for k in range(config.frames_per_device // views)]
    return join_clips(clips)


def validation_clip(sources: Sequence[Source], config: TrainConfig, number: int) -> Batch:
    """One of a fixed set of clips: the same for all steps."""
    key = [config.seed, _VALIDATION, config.stage, number]
    rng = np.random.default_rng(key)
    views, size = draw_views(config, rng), draw_size(config, rng)
    return _clip(sources, views, size, [*key, 0])


def draw_views(config: TrainConfig, rng: np.random.Generator) -> int:
    """Frames of a clip: four in the first stage, 2 to 16 in the second, each number as likely."""
    return int(rng.integers(config.views[0], config.views[1] + 1))


def draw_size(config: TrainConfig, rng: np.random.Generator) -> tuple[int, int]:
    """(width, height) in whole patches."""
    high = config.long_side * rng.uniform(*config.aspects)
    width, height = (max(1, round(side / PATCH)) * PATCH for side in (config.long_side, high))
    return width, height


def _clip(sources: Sequence[Source], views: int, size: tuple[int, int], key: list[int]) -> Batch:
    problem = f"no scene with {views} views was found: give longer sequences, or fewer views"
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([*key, attempt])
        scene = draw_scene(sources, rng)
        if len(scene) < views:
            continue
        try:
            return read_clip(scene, draw_frames(scene, views, rng), size)
        except InputError as error:
            log.warning("left out: %s", error)
            problem = str(error)
    raise InputError(problem)


def draw_scene(sources: Sequence[Source], rng: np.random.Generator) -> Scene:
    """A source by its weight, then one of its scenes."""
    weight = np.array([source.weight for source in sources])
    scenes = sources[int(rng.choice(len(sources), p=weight / weight.sum()))].scenes
    return scenes[int(rng.integers(len(scenes)))]


def draw_frames(scene: Scene, views: int, rng: np.random.Generator) -> list[int]:
    """An anchor and others around it, in the order of the scene."""
    anchor = int(rng.integers(len(scene)))
    others = np.array([frame for frame in scene.around(anchor, views) if frame != anchor], dtype=np.int64)
    if len(others) < views - 1:
        raise InputError(f"{scene.name}: frame {anchor} has {len(others)} neighbours, {views - 1} are needed")
    return sorted([anchor, *rng.choice(others, views - 1, replace=False).tolist()])


def read_clip(scene: Scene, frames: Sequence[int], size: tuple[int, int]) -> Batch:
    """The named frames at a (width, height); the world is the first view's camera."""
    views = [scene.read(frame) for frame in frames]
    fitted = [fit_view(view, size) for view in views]
    first = views[0].cam_from_world.inverse()
    cameras = [(view.cam_from_world @ first).matrix()[:3] for view in views]
    images = torch.stack([_unit_range(image) for image, _, _ in fitted])
    depth = torch.stack([depth for _, depth, _ in fitted])
    intrinsics = torch.stack([k for _, _, k in fitted])
    return Batch(images[None], depth[None], torch.stack(cameras)[None].float(), intrinsics[None].float())


def _unit_range(image: np.ndarray) -> Tensor:
    return torch.from_numpy(image).permute(2, 0, 1).float() / 255

"""A small room filmed twice, a GPM small enough to learn it by heart, and made-up views without pixels."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from geoweaver.geometry import SE3
from geoweaver.models import GPM, GPMConfig
from geoweaver.synth.clips import ClipOptions, make_clip
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import join
from geoweaver.synth.sequence import Output, write_sequence
from geoweaver.synth.solids import box, sheet
from geoweaver.synth.walls import wall
from geoweaver.synth.world import World
from geoweaver.training.datasets.registry import Source
from geoweaver.training.datasets.scene import Scene, View, window
from geoweaver.training.settings import TrainConfig

TINY = GPMConfig(
    32, 4, 2, 1, (0, 1, 2, 3), 16, (8, 16, 24, 32), camera_head="transformer", pose_conditioning=False
)
SIZE = (84, 56)


def tiny_network(seed: int = 0, config: GPMConfig = TINY) -> GPM:
    torch.manual_seed(seed)
    return GPM(config)


def tiny_config(**changes: object) -> TrainConfig:
    """One aspect, small images, quick rates."""
    settings: dict[str, object] = {
        "iterations": 6, "frames_per_device": 8, "encoder_rate": 1e-3, "head_rate": 1e-3,
        "long_side": 42, "aspects": (2 / 3, 2 / 3), "validation_clips": 2, "checkpoint_every": 2,
        "log_every": 1, "recompute": False,
    }  # fmt: skip
    return TrainConfig(**(settings | changes))


def room() -> World:
    """Four brick walls, tiles, a printed block."""
    walls = [wall("x", y, (-2, 2), 2.5, "brick", "brick", [], 0.1) for y in (-2.0, 2.0)]
    walls += [wall("y", x, (-2, 2), 2.5, "brick", "plain", [], 0.1) for x in (-2.0, 2.0)]
    block = box((0.6, -1.2, 0), (1.3, -0.5, 0.8), {"": "print", "+z": "poster:1"}, fit=False)
    angle = np.arange(8) * np.pi / 4
    ring = np.stack([0.9 * np.cos(angle), 0.9 * np.sin(angle), np.full(8, 1.4)], -1)
    quads = join(sheet((-2, -2), (2, 2), 0, "tiles"), *walls, block)
    return World("room", 3, quads, {"walk": ring}, Light(reach=0.5))


def film_room(folder: Path) -> None:
    """Two sequences of four frames, written as users know them."""
    world = room()
    for seed in (0, 5):
        clip = make_clip(world, ClipOptions(frames=4, size=SIZE, laps=0.15, seed=seed))
        write_sequence(clip, folder / f"walk{seed}", Output(images="png"))


def noise_scene(frames: int, name: str = "noise", on_read: Callable[[int], None] | None = None) -> Scene:
    """Random pixels before a slanted plane; `on_read` is told of every view."""

    def read(frame: int) -> View:
        if on_read is not None:
            on_read(frame)
        rng = np.random.default_rng(frame)
        image = rng.integers(0, 255, (56, 84, 3), dtype=np.uint8)
        depth = torch.linspace(2, 3, 84).expand(56, 84) + 0.1 * frame
        twist = torch.tensor([0.1 * frame, 0, 0, 0, 0.02 * frame, 0], dtype=torch.float64)
        K = torch.tensor([70.0, 70.0, 42.0, 28.0], dtype=torch.float64)
        return View(image, depth, SE3.exp(twist), K, f"{name} {frame}")

    return Scene(name, frames, read, window(frames, 1))


def noise_source(on_read: Callable[[int], None] | None = None, frames: int = 8) -> list[Source]:
    return [Source("noise", [noise_scene(frames, on_read=on_read)])]

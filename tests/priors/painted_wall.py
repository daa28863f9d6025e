"""A painted wall with a board in front, seen by a camera that walks past: exact images and depth."""

from dataclasses import dataclass

import numpy as np
import torch

from geoweaver.datatypes import Camera, Features, Frames
from geoweaver.features import extract_features
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import so3_exp

SIZE = (240, 160)
FOCAL = 220.0
WALL, BOARD = 4.0, 2.6


def _paint(seed: int) -> np.ndarray:
    """Blotches of all sizes, as real surfaces have them."""
    import cv2

    rng = np.random.default_rng(seed)
    layers = [
        cv2.resize(
            rng.uniform(0, 255, (n, n)).astype(np.float32), (1024, 1024), interpolation=cv2.INTER_CUBIC
        )
        for n in (16, 64, 200)
    ]
    return np.clip(np.mean(layers, 0), 0, 255)


@dataclass(frozen=True)
class Walk:
    """Pixels that frames can read, with their truth."""

    images: np.ndarray
    depth: np.ndarray
    cam_from_world: SE3

    def read(self, frame: int) -> np.ndarray:
        return self.images[frame]

    def frames(self, calibrated: bool = True) -> Frames:
        n = len(self.images)
        intrinsics = (FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2)
        camera = Camera("PINHOLE", intrinsics, *SIZE, calibrated=calibrated, rectified=intrinsics)
        return Frames(
            tuple(f"{i}.png" for i in range(n)),
            torch.arange(n, dtype=torch.float64),
            torch.zeros(n, dtype=torch.int64),
            torch.ones(n, dtype=torch.bool),
            (camera,),
            SIZE,
            self,
        )


@dataclass(frozen=True)
class ReadFeatures:
    """Features computed whenever somebody asks; picklable."""

    walk: Walk

    def __call__(self, frame: int) -> Features:
        return extract_features(self.walk.read(frame))


def walk(centres: np.ndarray, turns: np.ndarray | None = None) -> Walk:
    """Images from camera centres (n 3) and rotation vectors (n 3); the wall is z = 4, the board z = 2.6."""
    turns = np.zeros_like(centres) if turns is None else turns
    rotation = so3_exp(torch.from_numpy(turns))
    translation = -(rotation @ torch.from_numpy(centres)[..., None]).squeeze(-1)
    shown = [_show(rotation[k].numpy(), centres[k]) for k in range(len(centres))]
    return Walk(np.stack([s[0] for s in shown]), np.stack([s[1] for s in shown]), SE3(rotation, translation))


def _show(rotation: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import cv2

    x, y = np.meshgrid(np.arange(SIZE[0]) + 0.5, np.arange(SIZE[1]) + 0.5)
    ray = np.stack([(x - SIZE[0] / 2) / FOCAL, (y - SIZE[1] / 2) / FOCAL, np.ones_like(x)], -1) @ rotation
    picture, depth = np.zeros(x.shape, np.float32), np.zeros(x.shape, np.float32)
    for seed, z in ((1, WALL), (2, BOARD)):
        along = (z - centre[2]) / ray[..., 2]
        point = centre + along[..., None] * ray
        hit = (along > 0) & ((z == WALL) | ((np.abs(point[..., :2] - [0.3, 0.1]) < [0.5, 0.4]).all(-1)))
        texel = (point[..., :2] * 130 + 512).astype(np.float32)
        colour = cv2.remap(
            _paint(seed), texel[..., 0], texel[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
        )
        picture, depth = np.where(hit, colour, picture), np.where(hit, along, depth)
    grey = np.clip(picture, 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, 2), depth.astype(np.float32)


def sideways(frames: int = 10, step: float = 0.07) -> Walk:
    """A walk past the wall with small turns."""
    k = np.arange(frames)
    centres = np.stack([step * (k - frames / 2), 0.05 * np.sin(k), 0.03 * np.cos(2 * k)], 1)
    turns = np.stack([0.02 * np.sin(k), 0.03 * np.cos(k), 0.01 * np.sin(2 * k)], 1)
    return walk(centres, turns)

"""A box room seen from inside, with exact depth: what clouds are tested on."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from geoweaver.datatypes import Camera, Frames, Reconstruction
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, pixel_centres, resize_intrinsics
from geoweaver.results import DepthMap

SIZE, DEPTH_SIZE = (96, 72), (48, 36)
HALF = torch.tensor([2.0, 1.5, 1.0], dtype=torch.float64)
"""Half the room's extent; y points down."""
COLOURS = torch.tensor(
    [[200, 40, 40], [40, 200, 40], [40, 40, 200], [200, 200, 40], [40, 200, 200], [200, 40, 200]]
)
"""Of the walls -x, -y, -z, +x, +y, +z."""


def around(count: int, arc: float = 0.5) -> SE3:
    """Cameras on a small ring that look outwards over a part of a full turn."""
    angle = torch.linspace(0, 2 * torch.pi * arc, count, dtype=torch.float64)
    zero, one = torch.zeros_like(angle), torch.ones_like(angle)
    forward = torch.stack([angle.cos(), zero, angle.sin()], -1)
    down = torch.stack([zero, one, zero], -1)
    rotation = torch.stack([torch.linalg.cross(down, forward), down, forward], -2)
    step = torch.stack([angle.sin(), 0.3 * (3 * angle).sin(), angle.cos()], -1)
    return SE3(rotation, -(rotation @ (0.4 * step)[..., None]).squeeze(-1))


def look(camera: SE3, intrinsics: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Exact depth, and which wall is hit."""
    ray = bearing(pixel_centres(*size), intrinsics) @ camera.rotation
    reach = (HALF * ray.sign() - camera.centre) / ray
    depth, axis = reach.min(-1)
    return depth, axis + 3 * (ray.gather(-1, axis[..., None])[..., 0] > 0)


@dataclass
class Room:
    """Pixels, masks, depths and cameras of a walk; tests spoil what they like."""

    cam_from_world: SE3
    intrinsics: Tensor
    depth: list[Tensor]
    confidence: list[Tensor]
    trusted: Tensor
    mask: dict[int, np.ndarray] = field(default_factory=dict)
    unit: float = 1.0

    @property
    def frames(self) -> tuple[int, ...]:
        return tuple(range(len(self.depth)))

    def read(self, frame: int) -> DepthMap:
        intrinsics = resize_intrinsics(self.intrinsics, SIZE, DEPTH_SIZE)
        return DepthMap(self.depth[frame] * self.unit, self.confidence[frame], intrinsics)

    def parts(self) -> tuple[Frames, Reconstruction, "Room"]:
        """What `fuse_cloud` takes."""
        n = len(self.depth)
        names, stamps = tuple(f"{k}.jpg" for k in range(n)), torch.arange(n, dtype=torch.float64)
        camera = Camera("PINHOLE", tuple(self.intrinsics.tolist()), *SIZE)
        masks = Masks(self.mask) if self.mask else None
        frames = Frames(
            names, stamps, torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=torch.bool), (camera,), SIZE,
            Pixels(self.cam_from_world, self.intrinsics), masks,
        )  # fmt: skip
        placed = SE3(self.cam_from_world.rotation, self.cam_from_world.translation * self.unit)
        result = Reconstruction(
            names, stamps, placed, self.intrinsics.expand(n, 4), SIZE, self.trusted, torch.zeros(n, 2)
        )
        return frames, result, self

    def in_unit(self, unit: float) -> "Room":
        return replace(self, unit=unit)


@dataclass(frozen=True)
class Pixels:
    cam_from_world: SE3
    intrinsics: Tensor

    def read(self, frame: int) -> np.ndarray:
        wall = look(self.cam_from_world[frame], self.intrinsics, SIZE)[1]
        return np.asarray(COLOURS[wall].numpy().astype(np.uint8))


@dataclass(frozen=True)
class Masks:
    mask: dict[int, np.ndarray]

    def read(self, frame: int) -> np.ndarray:
        return self.mask.get(frame, np.ones(SIZE[::-1], bool))


def room(count: int = 16, arc: float = 0.5) -> Room:
    """Exact depth everywhere, confidence 0.9."""
    cameras = around(count, arc)
    intrinsics = torch.tensor([70.0, 70, SIZE[0] / 2, SIZE[1] / 2], dtype=torch.float64)
    small = resize_intrinsics(intrinsics, SIZE, DEPTH_SIZE)
    depth = [look(cameras[k], small, DEPTH_SIZE)[0].float() for k in range(count)]
    return Room(
        cameras,
        intrinsics,
        depth,
        [torch.full_like(d, 0.9) for d in depth],
        torch.ones(count, dtype=torch.bool),
    )


def off_walls(points: Tensor, unit: float = 1.0) -> Tensor:
    """Distance of each point to the nearest wall's plane."""
    return (HALF - points.double().abs() / unit).abs().amin(-1)


def on_walls(points: Tensor, unit: float = 1.0, within: float = 3e-3) -> bool:
    """All points lie on the walls; in the room's edges voxels round them by less than their size."""
    gap = (HALF - points.double().abs() / unit).abs().sort(-1).values
    edge = gap[:, 1] < 0.1
    return float(gap[~edge, 0].max()) < within and float(gap[edge, 0].max()) < 0.02

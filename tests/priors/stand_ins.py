"""One known scene, and stand-ins that tell of it as each model documents: shapes, conventions, gauge."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from geoweaver.datatypes import Camera, Features, Frames
from geoweaver.features import no_features
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.geometry.camera import bearing, intrinsic_matrix, pixel_centres, resize_intrinsics
from geoweaver.geometry.so3 import so3_exp
from geoweaver.models.camera_head import encode_cameras
from geoweaver.models.gpm import GPMOutput

SIZE = (240, 160)


@dataclass(frozen=True)
class Scene:
    """Cameras before the plane normal . x = distance; `world_from_model` is the gauge that a model picks."""

    cam_from_world: SE3
    intrinsics: Tensor
    normal: Tensor
    distance: float
    world_from_model: Sim3

    def __len__(self) -> int:
        return len(self.cam_from_world)

    def read(self, frame: int) -> np.ndarray:
        return np.full((SIZE[1], SIZE[0], 3), 40 * frame, np.uint8)

    def frames(self, calibrated: bool = False, masks: Any = None) -> Frames:
        n = len(self)
        fx, fy, cx, cy = self.intrinsics.tolist()
        camera = Camera(
            "PINHOLE", (fx, fy, cx, cy), *SIZE, calibrated, (fx, fy, cx, cy) if calibrated else None
        )
        return Frames(
            tuple(f"images/{i:03}.png" for i in range(n)), torch.arange(n).double(), torch.zeros(n).long(),
            torch.ones(n).bool(), (camera,), SIZE, self, masks,
        )  # fmt: skip

    def intrinsics_at(self, size: tuple[int, int]) -> Tensor:
        return resize_intrinsics(self.intrinsics, SIZE, size)

    def depth_at(self, size: tuple[int, int]) -> Tensor:
        """z-depth of every view in the world's unit."""
        ray = bearing(pixel_centres(*size), self.intrinsics_at(size))
        cameras = self.cam_from_world
        along = torch.einsum("hwk,nkj,j->nhw", ray, cameras.rotation, self.normal)
        start = cameras.centre @ self.normal
        return (self.distance - start)[:, None, None] / along

    def doubt_at(self, size: tuple[int, int]) -> Tensor:
        """A smooth field that each model writes in its own way: the logit of its confidence."""
        centre = pixel_centres(*size) / torch.tensor(size)
        field = 2 * (5 * centre[..., 0]).sin() + centre[..., 1]
        return field + torch.arange(len(self)).double()[:, None, None] / 2

    @property
    def cam_from_model(self) -> SE3:
        """The cameras as a model with its own world tells them."""
        cameras = self.cam_from_world
        model_from_world = self.world_from_model.inverse()
        return world_camera(
            Sim3(*(x.expand(len(self), *x.shape) for x in (
                model_from_world.scale, model_from_world.rotation, model_from_world.translation))), cameras
        )  # fmt: skip

    @property
    def unit(self) -> float:
        """World units per model unit."""
        return float(self.world_from_model.scale)


def make_scene(seed: int, views: int = 4) -> Scene:
    """Cameras scattered before a slanted plane, and a random gauge."""
    rng = torch.Generator().manual_seed(seed)
    noise = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    rotation = so3_exp(0.15 * noise(views, 3))
    centre = noise(views, 3) * torch.tensor([0.6, 0.4, 0.3])
    normal = torch.nn.functional.normalize(torch.tensor([0.0, 0, 1]).double() + 0.1 * noise(3), dim=0)
    focal = SIZE[0] * (0.7 + 0.4 * torch.rand(1, generator=rng, dtype=torch.float64))
    intrinsics = torch.cat([focal, focal * 1.03, torch.tensor(SIZE).double() / 2])
    gauge = Sim3((0.8 * noise(1)).exp()[0], so3_exp(noise(3)), 3 * noise(3))
    cameras = SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1))
    return Scene(cameras, intrinsics, normal, 6.0, gauge)


def _size(images: Tensor) -> tuple[int, int]:
    return images.shape[-1], images.shape[-2]


class _Model:
    """What all of them share: parameters, a device, a mode, `from_pretrained`."""

    scene: Scene
    asked: dict[str, Any]

    def parameters(self) -> list[Tensor]:
        return [torch.zeros(10)]

    def to(self, device: str) -> "_Model":
        return self

    def eval(self) -> "_Model":
        return self

    @classmethod
    def from_pretrained(cls, where: str) -> "_Model":
        return cls()


class StandInVGGT(_Model):
    """Images in [0, 1]; the encoding holds cam_from_world; the first view is the world."""

    def __call__(self, images: Tensor) -> dict[str, Tensor]:
        scene, (width, height) = type(self).scene, _size(images)
        assert images.shape[:2] == (1, len(scene)) and float(images.max()) <= 1
        first = scene.cam_from_world[:1].inverse()
        cameras = SE3(*(x.expand(len(scene), *x.shape[1:]) for x in (first.rotation, first.translation)))
        relative = scene.cam_from_world @ cameras
        scaled = SE3(relative.rotation, relative.translation / scene.unit)
        K = intrinsic_matrix(scene.intrinsics_at((width, height))).expand(len(scene), 3, 3)
        # our encoder encodes the inverse of what it gets
        encoding = encode_cameras(scaled.inverse().matrix()[:, :3], K, (height, width))
        encoding[:, 3:7] *= 1.7
        return {
            "pose_enc": encoding[None].float(),
            "depth": (scene.depth_at((width, height)) / scene.unit)[None, ..., None].float(),
            "depth_conf": 1 + scene.doubt_at((width, height)).exp()[None].float(),
            "images": images,
        }


class StandInPi3(_Model):
    """Points in each camera, world_from_cam in any world, a logit."""

    def __call__(self, imgs: Tensor, **given: Tensor) -> dict[str, Tensor]:
        scene, size = type(self).scene, _size(imgs)
        type(self).asked = given
        ray = bearing(pixel_centres(*size), scene.intrinsics_at(size))
        points = (scene.depth_at(size) / scene.unit)[..., None] * ray
        return {
            "local_points": points[None].float(),
            "conf": scene.doubt_at(size)[None, ..., None].float(),
            "camera_poses": scene.cam_from_model.inverse().matrix()[None].float(),
        }


class StandInMapAnything(_Model):
    """One dictionary per view; intrinsics count from the first pixel's centre; the model's own masks off."""

    def infer(self, views: list[dict[str, Any]], **how: Any) -> list[dict[str, Tensor]]:
        assert how["apply_mask"] is False and how["mask_edges"] is False and how["use_amp"] is False
        scene, size = type(self).scene, _size(views[0]["img"])
        type(self).asked = views[0]
        K = intrinsic_matrix(scene.intrinsics_at(size) - torch.tensor([0, 0, 0.5, 0.5]))
        poses = scene.cam_from_model.inverse().matrix()
        depth, doubt = scene.depth_at(size) / scene.unit, scene.doubt_at(size)
        assert all(view["data_norm_type"] == ["dinov2"] and view["img"].shape[0] == 1 for view in views)
        return [
            {
                "depth_z": depth[k][None, ..., None].float(),
                "conf": 1 + doubt[k].exp()[None].float(),
                "camera_poses": poses[k][None].float(),
                "intrinsics": K[None].float(),
            }
            for k in range(len(views))
        ]


class StandInGPM(torch.nn.Module):
    """Normalised images; world_from_cam in the encoding; confidence 1 + exp."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene, self.asked = scene, {}

    def forward(self, images: Tensor, **given: Tensor) -> GPMOutput:
        scene, (width, height) = self.scene, _size(images)
        self.asked = given
        cameras = scene.cam_from_model.matrix()[:, :3].float()
        K = intrinsic_matrix(scene.intrinsics_at((width, height))).float().expand(len(scene), 3, 3)
        return GPMOutput(
            (scene.depth_at((width, height)) / scene.unit)[None].float(),
            1 + scene.doubt_at((width, height)).exp()[None].float(),
            cameras[None], K[None], encode_cameras(cameras, K, (height, width))[None],
        )  # fmt: skip


PACKAGES: dict[str, tuple[str, str, type[_Model]]] = {
    "vggt": ("vggt.models.vggt", "VGGT", StandInVGGT),
    "pi3": ("pi3.models.pi3", "Pi3", StandInPi3),
    "pi3x": ("pi3.models.pi3x", "Pi3X", StandInPi3),
    "mapanything": ("mapanything.models", "MapAnything", StandInMapAnything),
}


def install(
    name: str, scene: Scene, put: Callable[[dict[str, ModuleType], str, ModuleType], None]
) -> type[_Model]:
    """Put a stand-in where the package's module would be."""
    module, symbol, model = PACKAGES[name]
    bound = type(model.__name__, (model,), {"scene": scene, "asked": {}})
    parts = module.split(".")
    for k in range(1, len(parts) + 1):
        fake = ModuleType(".".join(parts[:k]))
        fake.__path__ = []
        put(sys.modules, fake.__name__, fake)
    setattr(sys.modules[module], symbol, bound)
    return bound


def rescaled(scene: Scene, scale: float) -> Scene:
    """The same scene told by a model in another unit."""
    gauge = scene.world_from_model
    return replace(scene, world_from_model=Sim3(gauge.scale * scale, gauge.rotation, gauge.translation))


def featureless(frame: int) -> Features:
    """A scene of one grey: nothing speaks for or against what a model tells of it."""
    return no_features()

"""The Geometric Prior Model as a prior: a folder or file of weights in Depth Anything 3's layout."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import intrinsic_matrix, intrinsics_from_matrix
from geoweaver.models import (
    GPM,
    IMAGE_MEAN,
    IMAGE_STD,
    GPMConfig,
    GPMOutput,
    NestedGPM,
    load_gpm_folder,
    metric_depth,
    normalise_cameras,
    plausible_cameras,
)
from geoweaver.models.checkpoint import describe
from geoweaver.priors.memory import Footprint, vit_footprint
from geoweaver.priors.network import Network, Source
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views, network_size
from geoweaver.store import file_digest

LONGEST = 504
"""Pixels of the long side that DA3 was trained at."""
_SKY = 0.3
"""Sky scores from here on are sky, as the network itself reads them: its depth there is no knowledge."""


@dataclass(frozen=True)
class GpmNetwork:
    """A loaded GPM that speaks our conventions."""

    model: nn.Module
    config: GPMConfig
    """Of the model for shape and cameras."""
    device: str

    def __call__(self, views: Views) -> Prediction:
        images = _normalised(views.images)[None].to(self.device)
        output: GPMOutput = self.model(images, **self._known(views))
        return _monocular(output, self.config, views) if output.cam_from_world is None else _joint(output)

    def footprint(self, size: tuple[int, int]) -> Footprint:
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        return vit_footprint(self.config.dim, size, self.config.features, weights)

    def _known(self, views: Views) -> dict[str, Any]:
        """Known cameras as the network takes them: with intrinsics, or not at all."""
        takes = self.config.pose_conditioning and bool(views.calibrated.all())
        if views.cam_from_world is None or not takes:
            return {}
        cameras, _ = normalise_cameras(views.cam_from_world.matrix()[:, :3].float())
        K = intrinsic_matrix(views.intrinsics.float())
        return {"cam_from_world": cameras[None].to(self.device), "intrinsics": K[None].to(self.device)}


def _joint(output: GPMOutput) -> Prediction:
    """Views with cameras in one coordinate system."""
    assert output.cam_from_world is not None and output.intrinsics is not None
    assert output.pose_encoding is not None and output.confidence is not None
    return Prediction(
        _without_sky(output),
        # 1 + exp(x): the exponential is the confidence
        output.confidence[0].float().cpu() - 1,
        SE3.from_matrix(output.cam_from_world[0].double().cpu()),
        intrinsics_from_matrix(output.intrinsics[0].double().cpu()),
        plausible_cameras(output.pose_encoding[0].float().cpu()),
    )


def _monocular(output: GPMOutput, config: GPMConfig, views: Views) -> Prediction:
    """Views that know nothing of each other: each is a piece of its own, with the focal that is known."""
    depth = _without_sky(output)
    if config.metric:
        depth = metric_depth(depth[None], intrinsic_matrix(views.intrinsics.float())[None])[0]
    confidence = None if output.confidence is None else output.confidence[0].float().cpu()
    every = torch.ones(len(views), dtype=torch.bool)
    return Prediction(depth, confidence, SE3.identity(len(views)), views.intrinsics, every, separate=True)


def _without_sky(output: GPMOutput) -> Tensor:
    depth = output.depth[0].float().cpu()
    return depth if output.sky is None else torch.where(output.sky[0].float().cpu() < _SKY, depth, 0)


def _normalised(images: Tensor) -> Tensor:
    mean, std = (images.new_tensor(values)[:, None, None] for values in (IMAGE_MEAN, IMAGE_STD))
    return (images - mean) / std


def gpm_size(size: tuple[int, int]) -> tuple[int, int]:
    """The long side at what the GPM was trained at."""
    return network_size(size, LONGEST)


def locate_gpm(path: str) -> tuple[str, str]:
    """A user's own checkpoint: a folder as on the model hub, or a weight file of a known family."""
    if not path:
        raise ConfigError("the gpm prior needs weights: give --prior gpm:FOLDER, or --prior da3-small")
    load_gpm_folder(Path(path), device="meta")
    config, weights = describe(Path(path))
    return path, f"{config} {file_digest(weights)}"


def load_network(path: str, device: str) -> Network:
    return wrap_gpm(load_gpm_folder(Path(path)), device)


def wrap_gpm(model: nn.Module, device: str) -> GpmNetwork:
    """A loaded GPM or nested pair as a network of views."""
    shape = model.da3 if isinstance(model, NestedGPM) else model
    assert isinstance(shape, GPM)
    return GpmNetwork(model.to(device), shape.config, device)


SOURCE = Source(gpm_size, locate_gpm, load_network, takes_cameras=True)

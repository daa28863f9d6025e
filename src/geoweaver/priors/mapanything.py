"""MapAnything as a prior, through the user's installed package (github.com/facebookresearch/map-anything)."""

from typing import Any

import torch

from geoweaver.geometry import SE3
from geoweaver.geometry.camera import (
    centre_from_corner_origin,
    corner_from_centre_origin,
    intrinsic_matrix,
    intrinsics_from_matrix,
)
from geoweaver.models import IMAGE_MEAN, IMAGE_STD
from geoweaver.priors.network import Network, Source
from geoweaver.priors.package import PackageNetwork, installed, load_package, locate_package
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views, network_size

PACKAGE = "git+https://github.com/facebookresearch/map-anything"
DEFAULT = "facebook/map-anything"
"""Weights for research; facebook/map-anything-apache may be named instead."""


def ask_mapanything(model: Any, views: Views, device: str) -> Prediction:
    """One dictionary per view in and out; masks off: they would set depth to 0 by thresholds of their own."""
    told = model.infer(
        [_view(views, k, device) for k in range(len(views))],
        memory_efficient_inference=True,
        use_amp=device == "cuda",
        apply_mask=False,
        mask_edges=False,
    )
    world_from_cam = SE3.from_matrix(torch.cat([t["camera_poses"] for t in told]).double().cpu())
    K = torch.cat([t["intrinsics"] for t in told]).double().cpu()
    return Prediction(
        torch.cat([t["depth_z"][..., 0] for t in told]).float().cpu(),
        torch.cat([t["conf"] for t in told]).float().cpu() - 1,
        world_from_cam.inverse(),
        # its rays go through whole numbers
        corner_from_centre_origin(intrinsics_from_matrix(K)),
        torch.ones(len(views), dtype=torch.bool),
    )


def _view(views: Views, row: int, device: str) -> dict[str, Any]:
    image = views.images[row]
    mean, std = (image.new_tensor(values)[:, None, None] for values in (IMAGE_MEAN, IMAGE_STD))
    view: dict[str, Any] = {"img": ((image - mean) / std)[None].to(device), "data_norm_type": ["dinov2"]}
    if bool(views.calibrated[row]):
        K = intrinsic_matrix(centre_from_corner_origin(views.intrinsics[row]))
        view["intrinsics"] = K[None].float().to(device)
    if views.cam_from_world is not None:
        view["camera_poses"] = views.cam_from_world[row].inverse().matrix()[None].float().to(device)
        # a user's unit is unknown: only the shape of the path is given away
        view["is_metric_scale"] = torch.zeros(1, dtype=torch.bool, device=device)
    return view


def mapanything_size(size: tuple[int, int]) -> tuple[int, int]:
    return network_size(size, 518)


def locate_mapanything(path: str) -> tuple[str, str]:
    installed("mapanything.models", "mapanything", PACKAGE)
    return locate_package("mapanything", DEFAULT, path)


def load_mapanything(where: str, device: str) -> Network:
    module = installed("mapanything.models", "mapanything", PACKAGE)
    return PackageNetwork(load_package(module.MapAnything, where, device), ask_mapanything, device)


SOURCE = Source(mapanything_size, locate_mapanything, load_mapanything, takes_cameras=True)

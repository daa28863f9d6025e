"""VGGT as a prior, through the user's installed package (github.com/facebookresearch/vggt)."""

from typing import Any

from geoweaver.geometry import SE3
from geoweaver.geometry.camera import intrinsics_from_matrix
from geoweaver.models import plausible_cameras
from geoweaver.models.camera_head import decode_cameras
from geoweaver.priors.network import Network, Source
from geoweaver.priors.package import PackageNetwork, installed, load_package, locate_package
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views, network_size

PACKAGE = "git+https://github.com/facebookresearch/vggt"
DEFAULT = "facebook/VGGT-1B"
"""Weights for research; facebook/VGGT-1B-Commercial may be named instead."""


def ask_vggt(model: Any, views: Views, device: str) -> Prediction:
    """Images in [0, 1]; cam_from_world as translation, quaternion (w last) and fields of view."""
    told = model(views.images[None].to(device))
    encoding = told["pose_enc"][0].double().cpu()
    width, height = views.size
    # our decoder reads the encoded transform as world_from_cam, here it is cam_from_world
    encoded, K = decode_cameras(encoding, (height, width))
    return Prediction(
        told["depth"][0, ..., 0].float().cpu(),
        told["depth_conf"][0].float().cpu() - 1,
        SE3.from_matrix(encoded).inverse(),
        intrinsics_from_matrix(K),
        plausible_cameras(encoding),
    )


def vggt_size(size: tuple[int, int]) -> tuple[int, int]:
    return network_size(size, 518)


def locate_vggt(path: str) -> tuple[str, str]:
    installed("vggt.models.vggt", "vggt", PACKAGE)
    return locate_package("vggt", DEFAULT, path)


def load_vggt(where: str, device: str) -> Network:
    module = installed("vggt.models.vggt", "vggt", PACKAGE)
    return PackageNetwork(load_package(module.VGGT, where, device), ask_vggt, device)


SOURCE = Source(vggt_size, locate_vggt, load_vggt)

"""Pi3 as a prior, through the user's installed package (github.com/yyfz/Pi3)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.geometry.camera import pixel_centres
from geoweaver.priors.network import Network, Source
from geoweaver.priors.package import PackageNetwork, installed, load_package, locate_package
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views, network_size_of_area

PACKAGE = "git+https://github.com/yyfz/Pi3"
DEFAULT = "yyfz233/Pi3"
PIXELS = 255_000
"""Pixels of an image at most: what the model was trained at."""
_ROUNDS = 5


def ask_pi3(model: Any, views: Views, device: str) -> Prediction:
    """Images in [0, 1]; points in each camera, world_from_cam, confidence as a logit."""
    return read_pi3(model(views.images[None].to(device)), len(views))


def read_pi3(told: dict[str, Tensor], views: int) -> Prediction:
    """Pi3's and Pi3X's answer in our conventions."""
    points = told["local_points"][0].float().cpu()
    world_from_cam = SE3.from_matrix(told["camera_poses"][0].double().cpu())
    return Prediction(
        points[..., 2],
        # the odds of the logit: what 1 + exp(x) holds in other models
        told["conf"][0, ..., 0].float().cpu().clamp(max=80).exp(),
        world_from_cam.inverse(),
        torch.stack([fit_focal(p) for p in points]),
        torch.ones(views, dtype=torch.bool),
    )


def fit_focal(points: Float[Tensor, "H W 3"]) -> Float[Tensor, "4"]:
    """Intrinsics that see a grid of points at its own pixels: centred, focals by re-weighted squares."""
    height, width = points.shape[:2]
    centre = torch.tensor([width / 2, height / 2], dtype=torch.float64)
    good = (points[..., 2] > 0) & points.isfinite().all(-1)
    if int(good.sum()) < 3:
        return torch.full((4,), torch.nan, dtype=torch.float64)
    slope = points[good][:, :2].double() / points[good][:, 2:].double()
    offset = (pixel_centres(width, height) - centre)[good]
    weight = torch.ones_like(offset)
    for _ in range(_ROUNDS):
        focal = (weight * slope * offset).sum(0) / (weight * slope.square()).sum(0)
        left = (offset - focal * slope).abs()
        # misplaced points at depth edges must not pull: weights of the L1 norm, in units of the usual miss
        weight = 1 / left.clamp(min=1e-3 * max(width, height))
    return torch.cat([focal, centre])


def pi3_size(size: tuple[int, int]) -> tuple[int, int]:
    return network_size_of_area(size, PIXELS)


def locate_pi3(path: str) -> tuple[str, str]:
    installed("pi3.models.pi3", "pi3", PACKAGE)
    return locate_package("pi3", DEFAULT, path)


def load_pi3(where: str, device: str) -> Network:
    module = installed("pi3.models.pi3", "pi3", PACKAGE)
    return PackageNetwork(load_package(module.Pi3, where, device), ask_pi3, device)


SOURCE = Source(pi3_size, locate_pi3, load_pi3)

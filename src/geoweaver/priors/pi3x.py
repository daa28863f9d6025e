"""Pi3X as a prior: Pi3 that also takes known intrinsics and cameras (github.com/yyfz/Pi3)."""

from typing import Any

from geoweaver.geometry.camera import centre_from_corner_origin, intrinsic_matrix
from geoweaver.priors.network import Network, Source
from geoweaver.priors.package import PackageNetwork, installed, load_package, locate_package
from geoweaver.priors.pi3 import PACKAGE, pi3_size, read_pi3
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views

DEFAULT = "yyfz233/Pi3X"


def ask_pi3x(model: Any, views: Views, device: str) -> Prediction:
    """As Pi3; known intrinsics count from the first pixel's centre, known cameras are world_from_cam."""
    given: dict[str, Any] = {}
    if bool(views.calibrated.all()):
        K = intrinsic_matrix(centre_from_corner_origin(views.intrinsics))
        given["intrinsics"] = K[None].float().to(device)
    if views.cam_from_world is not None:
        given["poses"] = views.cam_from_world.inverse().matrix()[None].float().to(device)
    return read_pi3(model(views.images[None].to(device), **given), len(views))


def locate_pi3x(path: str) -> tuple[str, str]:
    installed("pi3.models.pi3x", "pi3x", PACKAGE)
    return locate_package("pi3", DEFAULT, path)


def load_pi3x(where: str, device: str) -> Network:
    module = installed("pi3.models.pi3x", "pi3x", PACKAGE)
    return PackageNetwork(load_package(module.Pi3X, where, device), ask_pi3x, device)


SOURCE = Source(pi3_size, locate_pi3x, load_pi3x, takes_cameras=True)

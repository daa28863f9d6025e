"""Where things stand in the viewer: its unit and its up come from the cameras and the points."""

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.registration import umeyama
from geoweaver.geometry.so3 import nearest_rotation
from geoweaver.geometry.upright import z_up_from_world

RADIUS = 5.0
"""What most of a scene lies within, in the viewer's units: between its clipping planes by far."""


def view_from_world(cam_from_world: SE3, points: Float[Tensor, "n 3"], up: Float[Tensor, "3"]) -> Sim3:
    """Cameras around the origin, +z up, most of the scene within RADIUS."""
    centres = cam_from_world.centre
    centre = centres.mean(0)
    spread = torch.cat([(points.double() - centre).norm(dim=-1), (centres - centre).norm(dim=-1)])
    radius = float(max(spread.quantile(0.9), (centres - centre).norm(dim=-1).max())) if len(spread) else 0.0
    scale = torch.tensor(RADIUS / radius if radius > 0 else 1.0, dtype=torch.float64)
    rotation = z_up_from_world(up)
    return Sim3(scale, rotation, -scale * (rotation @ centre))


def similarity(source: SE3, target: SE3) -> Sim3:
    """target_from_source over cameras of the same frames; by their axes where the centres lie on a line."""
    try:
        return umeyama(source.centre, target.centre)
    except DegenerateError:
        return _similarity_by_axes(source, target)


def _similarity_by_axes(source: SE3, target: SE3) -> Sim3:
    rotation = nearest_rotation((target.rotation.mT @ source.rotation).sum(0))
    a, b = source.centre, target.centre
    spread = [float((c - c.mean(0)).norm()) for c in (a, b)]
    scale = torch.tensor(spread[1] / spread[0] if min(spread) > 0 else 1.0, dtype=torch.float64)
    return Sim3(scale, rotation, b.mean(0) - scale * (rotation @ a.mean(0)))

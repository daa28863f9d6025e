"""Pictures of clouds, to look at: points as little squares, the nearest in front; no library, same bytes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.formats.ply import PlyCloud
from geoweaver.geometry import SE3

Side = Literal["above", "front", "side"]
SIDES: tuple[Side, ...] = ("above", "front", "side")
_MARGIN = 1.05
_INNER = 0.03
"""Share of the points at either end that may fall outside the picture."""
_BACKGROUND = 255


@dataclass(frozen=True)
class CloudView:
    """From where a cloud is looked at."""

    cam_from_world: SE3
    scale: float
    """Orthographic: pixels per unit of length; perspective: the focal in pixels."""
    size: tuple[int, int] = (960, 720)
    perspective: bool = False
    nearest: float = 0.0
    """Nothing nearer than this is drawn: cuts a ceiling away."""
    radius: int = 1
    """Half the side of a point's square, in pixels."""


def side_view(
    cloud: PlyCloud,
    side: Side,
    up: Float[Tensor, "3"],
    size: tuple[int, int] = (960, 720),
    cut: float = 0.0,
) -> CloudView:
    """Orthographic from one side, all but the outermost points in the picture, the nearest share cut away."""
    rotation = _looking(side, up)
    points = cloud.points.double() @ rotation.T
    if not len(points):
        return CloudView(SE3(rotation, torch.zeros(3, dtype=torch.float64)), 1.0, size)
    rows = points.sort(0).values
    first, last = rows[int(_INNER * len(rows))], rows[int((1 - _INNER) * (len(rows) - 1))]
    extent = _MARGIN * (last - first)[:2].clamp(min=torch.finfo(torch.float64).tiny)
    scale = float((torch.tensor(size, dtype=torch.float64) / extent).min())
    middle = torch.cat([(first + last)[:2] / 2, rows[0, 2:]])
    nearest = float(rows[int(cut * (len(rows) - 1)), 2] - rows[0, 2])
    return CloudView(SE3(rotation, -middle), scale, size, nearest=nearest)


def camera_view(
    cam_from_world: SE3, focal: float = 0.8, size: tuple[int, int] = (960, 720), radius: int = 1
) -> CloudView:
    """What a camera with this focal (in image widths) sees."""
    return CloudView(cam_from_world, focal * size[0], size, perspective=True, radius=radius)


def render_cloud(cloud: PlyCloud, view: CloudView) -> UInt8[np.ndarray, "H W 3"]:
    """The cloud's picture on white; points without colours are grey."""
    local = view.cam_from_world.act(cloud.points.double()).numpy()
    width, height = view.size
    z = local[:, 2]
    ahead = z > max(view.nearest, 0) if view.perspective else z >= view.nearest
    local, z = local[ahead], z[ahead]
    factor = view.scale / z[:, None] if view.perspective else view.scale
    at = np.floor(local[:, :2] * factor + np.array([width / 2, height / 2]))
    inside = ((at > -view.radius - 1) & (at < np.array([width, height]) + view.radius)).all(1)
    at, z = at[inside].astype(np.int64), z[inside]
    colours = np.full((len(cloud), 3), 128, np.uint8) if cloud.colours is None else cloud.colours.numpy()
    return _paint(at, z, colours[ahead][inside], view)


def _paint(at: np.ndarray, z: np.ndarray, colours: np.ndarray, view: CloudView) -> UInt8[np.ndarray, "H W 3"]:
    """A z-buffer: every square keeps what is nearest; ties go to the earlier point."""
    width, height = view.size
    image = np.full((height * width, 3), _BACKGROUND, np.uint8)
    buffer = np.full(height * width, np.inf)
    order = np.argsort(-z, kind="stable")
    at, z, colours = at[order], z[order], colours[order]
    for dy in range(-view.radius, view.radius + 1):
        for dx in range(-view.radius, view.radius + 1):
            x, y = at[:, 0] + dx, at[:, 1] + dy
            fits = (x >= 0) & (x < width) & (y >= 0) & (y < height)
            cell = y[fits] * width + x[fits]
            # far to near: the last write, the nearest, stays
            front, shown = np.full(height * width, np.inf), np.zeros_like(image)
            front[cell], shown[cell] = z[fits], colours[fits]
            nearer = front < buffer
            buffer[nearer], image[nearer] = front[nearer], shown[nearer]
    return image.reshape(height, width, 3)


def _looking(side: Side, up: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """Rows are the picture's right, down and forward."""
    up = up.double() / up.double().norm()
    axis = torch.eye(3, dtype=torch.float64)[int(up.abs().argmin())]
    right = torch.linalg.cross(axis, up)
    right = right / right.norm()
    forward = torch.linalg.cross(up, right)
    rows = {
        "above": (right, -forward, -up),
        "front": (right, -up, forward),
        "side": (forward, -up, -right),
    }[side]
    return torch.stack(rows)

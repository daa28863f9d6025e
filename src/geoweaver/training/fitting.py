"""Views brought to the training's image size: cut around the principal point, then resampled."""

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.errors import FormatError
from geoweaver.geometry.camera import crop_intrinsics, resize_intrinsics
from geoweaver.training.datasets.scene import View

Box = tuple[int, int, int, int]
"""Left, top, width and height in pixels."""
_FURTHEST = 0.25
"""Share of the image by which a principal point may lie off its middle."""


def fit_view(
    view: View, size: tuple[int, int]
) -> tuple[UInt8[np.ndarray, "H W 3"], Float[Tensor, "H W"], Float[Tensor, "4"]]:
    """Image, depth and intrinsics at a (width, height)."""
    box = centred_box(view, size)
    left, top, width, height = box
    cut = view.image[top : top + height, left : left + width]
    smaller = size[0] <= width
    image = cv2.resize(cut, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_CUBIC)
    intrinsics = resize_intrinsics(crop_intrinsics(view.intrinsics, left, top), (width, height), size)
    return image, _nearest(view, box, size), intrinsics


def centred_box(view: View, size: tuple[int, int]) -> Box:
    """The largest box of the wanted shape with the principal point in its middle: the GPM knows no other."""
    height, width = view.image.shape[:2]
    cx, cy = (float(c) for c in view.intrinsics[2:])
    if abs(cx / width - 0.5) > _FURTHEST or abs(cy / height - 0.5) > _FURTHEST:
        raise FormatError(f"{view.name}: the principal point ({cx:.0f}, {cy:.0f}) lies far off the middle")
    half_width, half_height = min(cx, width - cx), min(cy, height - cy)
    scale = min(2 * half_width / size[0], 2 * half_height / size[1])
    wide, high = max(1, int(scale * size[0] + 1e-6)), max(1, int(scale * size[1] + 1e-6))
    left, top = round(cx - wide / 2), round(cy - high / 2)
    return min(max(left, 0), width - wide), min(max(top, 0), height - high), wide, high


def _nearest(view: View, box: Box, size: tuple[int, int]) -> Float[Tensor, "H W"]:
    """Depth at the new pixels' centres; between pixels it would invent surfaces."""
    left, top, width, height = box
    columns = _source(left, width, size[0], view.image.shape[1], view.depth.shape[1])
    rows = _source(top, height, size[1], view.image.shape[0], view.depth.shape[0])
    depth = view.depth[rows[:, None], columns[None]].float()
    return torch.where(depth.isfinite() & (depth > 0), depth, 0)


def _source(start: int, extent: int, pixels: int, image: int, depth: int) -> Tensor:
    """Where in the depth map the centres of the new pixels lie, along one axis."""
    centre = start + (torch.arange(pixels, dtype=torch.float64) + 0.5) * extent / pixels
    return (centre * depth / image).long().clamp(0, depth - 1)

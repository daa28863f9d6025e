"""What a network gets to see of a chunk: resized images, and what is known of their cameras."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.datatypes import Chunk, Frames
from geoweaver.errors import InputError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.priors.sfm_focal import start_intrinsics

log = logging.getLogger(__name__)

PATCH = 14
"""Pixels of a side of the patches that all these networks cut their images into."""


@dataclass(frozen=True)
class Views:
    """A chunk's images as a network takes them, and their cameras as far as they are known."""

    images: Float[Tensor, "n 3 H W"]
    """RGB in [0, 1], not normalised."""
    intrinsics: Float[Tensor, "n 4"]
    """In pixels of the images; a guess where `calibrated` is False."""
    calibrated: Bool[Tensor, "n"]
    cam_from_world: SE3 | None = None
    """Known cameras of all views."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)."""
        return self.images.shape[-1], self.images.shape[-2]


def network_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """(width, height) in whole patches with about the image's shape and a long side of about `longest`."""
    scale = longest / max(size)
    width, height = (max(1, int(side * scale / PATCH + 0.5)) * PATCH for side in size)
    return width, height


def network_size_of_area(size: tuple[int, int], pixels: int) -> tuple[int, int]:
    """(width, height) in whole patches with about the image's shape and at most so many pixels."""
    scale = (pixels / (size[0] * size[1])) ** 0.5
    columns, rows = (max(1, round(side * scale / PATCH)) for side in size)
    while columns * rows * PATCH**2 > pixels and max(columns, rows) > 1:
        wider = columns / rows > size[0] / size[1]
        columns, rows = (columns - 1, rows) if (wider and columns > 1) or rows == 1 else (columns, rows - 1)
    return columns * PATCH, rows * PATCH


def read_views(
    frames: Frames, chunk: Chunk, size: tuple[int, int], known: dict[int, SE3] | None = None
) -> tuple[Views, list[int]]:
    """The chunk's readable frames at a network's size, and which these are."""
    pictures, rows = [], []
    for frame in chunk.frames:
        picture = None if frame in frames.broken else _picture(frames, frame, size)
        if picture is not None:
            pictures.append(picture)
            rows.append(frame)
    images = torch.stack(pictures) if pictures else torch.zeros(0, 3, size[1], size[0])
    intrinsics, calibrated = known_intrinsics(frames, rows, size)
    cameras = [known[row] for row in rows if row in known] if known else []
    given = _stacked(cameras) if cameras and len(cameras) == len(rows) else None
    return Views(images, intrinsics, calibrated, given), rows


def known_intrinsics(
    frames: Frames, rows: Sequence[int], size: tuple[int, int]
) -> tuple[Float[Tensor, "n 4"], Bool[Tensor, "n"]]:
    """Intrinsics of some frames in pixels of `size`, and where the user gave them (else a usual lens)."""
    cameras = [frames.cameras[int(frames.camera[row])] for row in rows]
    own = torch.tensor([start_intrinsics(c, frames.size) for c in cameras], dtype=torch.float64).reshape(
        -1, 4
    )
    calibrated = torch.tensor([c.calibrated for c in cameras], dtype=torch.bool)
    return resize_intrinsics(own, frames.size, size), calibrated


def usable_pixels(frames: Frames, rows: Sequence[int], size: tuple[int, int]) -> Bool[Tensor, "n H W"] | None:
    """The masks at another size; None where every pixel counts."""
    if frames.masks is None:
        return None
    import cv2

    masks = [frames.masks.read(row).astype(np.uint8) for row in rows]
    return torch.from_numpy(
        np.stack([cv2.resize(m, size, interpolation=cv2.INTER_NEAREST) > 0 for m in masks])
    )


def _picture(frames: Frames, frame: int, size: tuple[int, int]) -> Tensor | None:
    import cv2

    assert frames.pixels is not None, "frames without pixels cannot be looked at"
    try:
        image = frames.pixels.read(frame)
    except InputError as error:
        log.warning("%s", error)
        return None
    cv2.setNumThreads(1)
    how = cv2.INTER_AREA if max(size) < max(image.shape[:2]) else cv2.INTER_CUBIC
    return torch.from_numpy(cv2.resize(image, size, interpolation=how)).permute(2, 0, 1).float() / 255


def _stacked(cameras: Sequence[SE3]) -> SE3:
    return SE3(torch.stack([c.rotation for c in cameras]), torch.stack([c.translation for c in cameras]))

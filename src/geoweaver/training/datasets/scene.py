"""The one form in which every source offers its views."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import list_folder, place
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, pixel_centres


@dataclass(frozen=True)
class View:
    """One image with what is known of it; checked when it is made."""

    image: UInt8[np.ndarray, "H W 3"]
    depth: Float[Tensor, "h w"]
    """z; 0 where unknown. Of the image's size, or of another size that shows the same."""
    cam_from_world: SE3
    intrinsics: Float[Tensor, "4"]
    """(fx, fy, cx, cy) in pixels of the image, (0, 0) being its corner."""
    name: str = "a view"

    def __post_init__(self) -> None:
        pose = (self.cam_from_world.rotation, self.cam_from_world.translation)
        if not all(bool(t.isfinite().all()) for t in (*pose, self.intrinsics)):
            raise FormatError(f"{self.name}: its camera is not finite: leave the frame out")
        if not bool((self.intrinsics[:2] > 0).all()):
            raise FormatError(f"{self.name}: its focal length is not positive: correct the calibration")


Around = Callable[[int, int], Sequence[int]]
"""Frames that may join an anchor frame in a clip of so many views."""


@dataclass(frozen=True)
class Scene:
    """Views of one place, read one by one."""

    name: str
    frames: int
    read: Callable[[int], View]
    around: Around

    def __len__(self) -> int:
        return self.frames


def window(frames: int, per_view: float) -> Around:
    """Neighbours in time: `per_view` frames to either side for each view of the clip."""

    def around(anchor: int, views: int) -> Sequence[int]:
        # a clip always finds its views where the sequence has so many
        reach = max(round(per_view * views), views - 1)
        low = max(0, min(anchor - reach, frames - 1 - 2 * reach))
        return range(low, min(frames, max(anchor + reach, 2 * reach) + 1))

    return around


def folders(root: Path, marker: str, expected: str) -> list[Path]:
    """Folders under `root` (or itself) in which `marker` is found, sorted; none is an error."""
    if (root / marker).exists():
        return [root]
    found = [path for path in list_folder(root, expected) if (path / marker).exists()]
    if not found:
        raise InputError(f"{place(root)} holds no {expected} (a folder with {marker}): check the path")
    return found


def numbers_of(folder: Path, suffix: str, expected: str) -> list[str]:
    """Stems of the files with a suffix, in the order of the number that each is."""
    stems = [path.stem for path in list_folder(folder, expected) if path.suffix.lower() == suffix]
    return sorted((stem for stem in stems if stem.isdecimal()), key=int)


def z_from_range(distance: Float[Tensor, "H W"], intrinsics: Float[Tensor, "4"]) -> Float[Tensor, "H W"]:
    """z from the distance along each pixel's ray."""
    height, width = distance.shape
    ray = bearing(pixel_centres(width, height), intrinsics.double())
    z: Tensor = distance.double() / ray.norm(dim=-1)
    return z.to(distance.dtype)


def without(depth: Float[Tensor, "H W"], farther_than: float) -> Float[Tensor, "H W"]:
    """Depth with what is unknown, infinite or too far set to 0."""
    return torch.where((depth > 0) & (depth < farther_than), depth, 0)

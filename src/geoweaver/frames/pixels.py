"""Rectified pixels and masks of the chosen frames, read on demand."""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8

from geoweaver.errors import InputError
from geoweaver.formats.files import is_file, is_folder, place
from geoweaver.frames.images import UnreadableFrameError, image_size, read_mask
from geoweaver.frames.source import OriginalSource
from geoweaver.frames.views import View

CACHED_IMAGES = 32
"""Rectified images kept per process: neighbours are read again and again."""
_FEWEST_USABLE = 0.01
"""Share of all pixels below which masks are probably not meant so."""


class RectifiedPixels:
    """Every frame as an image of the common pinhole size; the last ones read are kept."""

    def __init__(
        self, source: OriginalSource, views: tuple[View, ...], camera: tuple[int, ...], broken: frozenset[int]
    ) -> None:
        self.source, self.views, self.camera, self.broken = source, views, camera, broken
        self._cache: OrderedDict[int, np.ndarray] = OrderedDict()

    def __reduce__(self) -> tuple[type["RectifiedPixels"], tuple[Any, ...]]:
        return RectifiedPixels, (self.source, self.views, self.camera, self.broken)

    def read(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        """The rectified image; do not write into it."""
        if frame not in self._cache:
            self._cache[frame] = self.views[self.camera[frame]].apply(self.read_original(frame))
            while len(self._cache) > CACHED_IMAGES:
                self._cache.popitem(last=False)
        self._cache.move_to_end(frame)
        return self._cache[frame]

    def read_original(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        """Upright, at the original size, not rectified."""
        if frame in self.broken:
            raise UnreadableFrameError(f"frame {frame} cannot be read: its camera is interpolated")
        return self.source.read(frame)


@dataclass(frozen=True)
class RectifiedMasks:
    """Usable pixels: the user's mask file, the image's alpha, and no padding."""

    source: OriginalSource
    views: tuple[View, ...]
    camera: tuple[int, ...]
    files: tuple[Path | None, ...]
    alpha: bool

    def read(self, frame: int) -> Bool[np.ndarray, "height width"]:
        """True where the pixel shows the static world."""
        view = self.views[self.camera[frame]]
        usable = view.apply_mask(self.source.mask(frame) if self.alpha else None)
        file = self.files[frame]
        return usable if file is None else usable & view.apply_mask(read_mask(file))


def find_masks(folder: Path, names: tuple[str, ...]) -> tuple[Path | None, ...]:
    """Each frame's mask (white = use, black = ignore): `NAME.png` beside `NAME`, or the same stem."""
    if not is_folder(folder):
        raise InputError(f"{place(folder)} is no folder of masks: give a folder with one image per frame")
    found = tuple(_mask_of(folder, name) for name in names)
    if not any(found):
        raise InputError(
            f"{place(folder)} holds no mask for any frame: name them like the images, e.g. {names[0]}.png"
        )
    return found


def mask_notes(files: tuple[Path | None, ...], sizes: tuple[tuple[int, int] | None, ...]) -> tuple[str, ...]:
    """What a user should hear of the masks: those that are missing, leave nothing, or have another size."""
    count = sum(file is None for file in files)
    notes = [f"{count} of {len(files)} frames have no mask: all of their pixels count"] if count else []
    if _leave_nothing(files):
        notes.append("the masks ignore more than 99 % of all pixels: white is used, black is ignored")
    rows = ((file, image_size(file), size) for file, size in zip(files, sizes, strict=True) if file and size)
    other = [(file, found, size) for file, found, size in rows if found and found != size]
    if other:
        file, found, size = other[0]
        told = f"{place(file)} has {found[0]}x{found[1]} pixels, its image {size[0]}x{size[1]}"
        notes.append(f"{len(other)} masks are stretched to their images' size: {told}")
    return tuple(notes)


def _leave_nothing(files: tuple[Path | None, ...]) -> bool:
    """Whether hardly a pixel counts; the first masks are enough to know that it is not so."""
    usable, enough = float(sum(file is None for file in files)), _FEWEST_USABLE * len(files)
    for file in files:
        if usable >= enough:
            break
        usable += float(read_mask(file).mean()) if file else 0.0
    return usable < enough


def _mask_of(folder: Path, name: str) -> Path | None:
    stem = str(PurePosixPath(name).with_suffix(""))
    candidates = [f"{name}.png", f"{stem}.png", f"{stem}.jpg", f"{stem}.mask.png", name]
    return next((folder / c for c in candidates if is_file(folder / c)), None)

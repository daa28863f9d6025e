"""What later stages see of a camera: one pinhole size for all, by resizing, rectifying and padding."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from geoweaver.geometry.distortion import Lens, is_pinhole, rectify, resize_lens

Size = tuple[int, int]
_WORTH_RESIZING = 0.97
"""Resampling by less than this costs more sharpness than it saves time."""


@dataclass(frozen=True)
class View:
    """How one camera's originals become rectified images of the common size."""

    scaled: Size
    """(width, height) that originals are resized to first."""
    inner: Size
    """(width, height) after rectification; it stands in the middle of the common size."""
    size: Size
    intrinsics: tuple[float, float, float, float]
    map_x: Float32[np.ndarray, "height width"] | None = None
    map_y: Float32[np.ndarray, "height width"] | None = None

    @property
    def offset(self) -> tuple[int, int]:
        """Where the rectified image begins in the common one."""
        return (self.size[0] - self.inner[0]) // 2, (self.size[1] - self.inner[1]) // 2

    def apply(self, pixels: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
        """The rectified image; its border is repeated where the common size is larger."""
        import cv2

        shrinks = self.scaled[0] * self.scaled[1] < pixels.shape[0] * pixels.shape[1]
        image: Any = _resized(pixels, self.scaled, cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
        if self.map_x is not None:
            image = cv2.remap(image, self.map_x, self.map_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        image = cv2.copyMakeBorder(image, *self._borders(), cv2.BORDER_REPLICATE)
        return np.ascontiguousarray(image)

    def apply_mask(self, usable: Bool[np.ndarray, "h w"] | None) -> Bool[np.ndarray, "height width"]:
        """A mask of the original in the rectified image; padding is never usable."""
        import cv2

        plain = np.ones(self.scaled[::-1], np.uint8)
        image: Any = (
            plain if usable is None else _resized(usable.astype(np.uint8), self.scaled, cv2.INTER_NEAREST)
        )
        if self.map_x is not None:
            image = cv2.remap(
                image, self.map_x, self.map_y, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE
            )
        padded: Any = cv2.copyMakeBorder(image, *self._borders(), cv2.BORDER_CONSTANT, value=0)
        return np.asarray(padded > 0)

    def _borders(self) -> tuple[int, int, int, int]:
        left, top = self.offset
        return top, self.size[1] - self.inner[1] - top, left, self.size[0] - self.inner[0] - left


def working_size(size: Size, max_size: int | None, megapixels: float) -> Size:
    """The size to work at: the long side bounded by `max_size` if given, else the area; never larger."""
    width, height = size
    by_area = math.sqrt(megapixels * 1e6 / (width * height))
    wanted = max_size / max(size) if max_size else by_area if by_area < _WORTH_RESIZING else 1.0
    scale = min(wanted, 1.0)
    return max(1, round(scale * width)), max(1, round(scale * height))


def native_view(lens: Lens, max_size: int | None, megapixels: float) -> View:
    """A camera's view at the working size, as if it were alone."""
    first = _view(resize_lens(lens, working_size(lens.size, max_size, megapixels)))
    # rectification changes the size of what is seen, most of all for wide lenses
    target = working_size(_full_size(lens, first), max_size, megapixels)
    return first if first.map_x is None else _scaled_view(lens, first, target[0] / first.inner[0])


def common_view(lens: Lens, size: Size) -> View:
    """A camera's view inside another's size: as large as fits, in the middle."""
    view = _view(resize_lens(lens, working_size(lens.size, max(size), 1.0)))
    scale = min(size[0] / view.inner[0], size[1] / view.inner[1])
    # sizes are cut to whole pixels, so the first trial may be one too large
    for trial in (scale, scale * (1 - 1.5 / min(size)), scale * (1 - 3 / min(size))):
        fitted = _scaled_view(lens, view, trial)
        if fitted.inner[0] <= size[0] and fitted.inner[1] <= size[1]:
            break
    padded = replace(fitted, size=size)
    (fx, fy, cx, cy), (left, top) = fitted.intrinsics, padded.offset
    return replace(padded, intrinsics=(fx, fy, cx + left, cy + top))


def _full_size(lens: Lens, view: View) -> Size:
    """What the rectified image would measure at the original's scale."""
    width, height = (v * o / s for v, o, s in zip(view.inner, lens.size, view.scaled, strict=True))
    return round(width), round(height)


def _scaled_view(lens: Lens, view: View, scale: float) -> View:
    width, height = (max(1, round(scale * side)) for side in view.scaled)
    return _view(resize_lens(lens, (width, height)))


def _view(lens: Lens) -> View:
    """The view of a lens at its own size; maps only where there is distortion."""
    made = rectify(lens)
    fx, fy, cx, cy = made.intrinsics.tolist()
    if is_pinhole(lens):
        return View(lens.size, lens.size, lens.size, (fx, fy, cx, cy))
    return View(lens.size, made.size, made.size, (fx, fy, cx, cy), made.map_x, made.map_y)


def _resized(pixels: Any, size: Size, how: int) -> Any:
    import cv2

    return (
        pixels if (pixels.shape[1], pixels.shape[0]) == size else cv2.resize(pixels, size, interpolation=how)
    )

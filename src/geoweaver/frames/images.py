"""One image file: upright 8-bit colour, its alpha as a mask, and what its header tells of the lens."""

import io
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from geoweaver.errors import InputError
from geoweaver.formats.files import place, read_bytes, reason
from geoweaver.frames.levels import Levels, sampled

_FOCAL_35MM, _FOCAL, _PLANE_X, _PLANE_UNIT = 0xA405, 0x920A, 0xA20E, 0xA210
_EXIF_IFD, _ORIENTATION = 0x8769, 0x0112
_FILM_DIAGONAL = math.hypot(36, 24)
_MASK_WHITE = (1, 255, 65535)
_LOSSY = (".jpg", ".jpeg", ".webp")
DEEPEST = Levels()
_UNIT_MM = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}
_BAD_IMAGE = (
    OSError,
    ValueError,
    SyntaxError,
    MemoryError,
    EOFError,
    TypeError,
    LookupError,
    ArithmeticError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)
"""What PIL raises at broken files: its decoders are many, and each has its own way."""


class UnreadableFrameError(InputError):
    """A frame's pixels are damaged or missing: it keeps its place and its camera is interpolated."""


@dataclass(frozen=True)
class ImageFacts:
    """What one look at an image file tells."""

    size: tuple[int, int]
    """(width, height), upright."""
    focal: float | None = None
    """In pixels, from EXIF."""
    sample: Float32[np.ndarray, "_"] | None = None
    """Some values of an image with more than eight bits; None for the others."""
    real: bool = False
    """Whether its values are no integers."""
    alpha: bool = False


def look_at_image(data: bytes, path: Path) -> ImageFacts:
    """Decode once to be sure that the file is whole; JPEGs at an eighth of their size."""
    pixels, image = _open(data, path)
    if image is None:
        sample = None if pixels.dtype == np.uint8 else sampled(pixels)
        return ImageFacts((pixels.shape[1], pixels.shape[0]), sample=sample)
    with _complaints(path):
        width, height = image.size
        turned = image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8)
        focal = _exif_focal(image)
        image.draft("RGB", (max(width // 8, 1), max(height // 8, 1)))
        image.load()
        sample, real = (sampled(np.asarray(image)) if _is_deep(image) else None), image.mode.startswith("F")
        size = (height, width) if turned else (width, height)
        return ImageFacts(size, focal, sample, real, _has_alpha(image))


def read_image(path: Path, levels: Levels = DEEPEST) -> UInt8[np.ndarray, "height width 3"]:
    """Upright 8-bit RGB; `levels` are those of images with more bits; transparent pixels become white."""
    values, deep = _values(path)
    if not deep:
        return values
    return (Levels(white=255.0) if values.dtype == np.uint8 else levels).eight_bit(values)


def read_mask(path: Path) -> Bool[np.ndarray, "height width"]:
    """Where a mask is white: above half of 1, 255 or 65535, the first of them that no value exceeds."""
    values, _ = _values(path)
    values = np.nan_to_num(values if values.ndim == 2 else values.max(-1))
    # black is not exact in a lossy file, so its ones mean nothing
    levels = _MASK_WHITE[1:] if path.suffix.lower() in _LOSSY else _MASK_WHITE
    peak = values.max()
    return np.asarray(values > next((level for level in levels if peak <= level), peak) / 2)


def _values(path: Path) -> tuple[np.ndarray, bool]:
    """Upright pixels, and whether they still need scaling; if not they are RGB, white where transparent."""
    pixels, image = _open(read_bytes(path, "an image"), path)
    if image is None:
        return pixels, True
    with _complaints(path):
        image = ImageOps.exif_transpose(image)
        if _is_deep(image):
            return np.asarray(image), True
        if _has_alpha(image):
            layer = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
        return np.array(image.convert("RGB")), False


def image_size(path: Path) -> tuple[int, int] | None:
    """(width, height) as the header says, upright; None where it says nothing."""
    try:
        with Image.open(path) as image:
            turned = image.getexif().get(0x0112, 1) >= 5
            return (image.height, image.width) if turned else (image.width, image.height)
    except (OSError, ValueError):
        return None


def read_alpha(path: Path) -> Bool[np.ndarray, "height width"] | None:
    """Where an image is opaque; None where it has no alpha."""
    _, image = _open(read_bytes(path, "an image"), path)
    if image is None or not _has_alpha(image):
        return None
    with _complaints(path):
        return np.asarray(ImageOps.exif_transpose(image).convert("RGBA"))[..., 3] >= 128


def _open(data: bytes, path: Path) -> tuple[Any, Any]:
    """PIL's image, or else the pixels of a kind that only OpenCV reads whole (16-bit colour)."""
    with _complaints(path):
        try:
            image = Image.open(io.BytesIO(data))
        except UnidentifiedImageError:
            image = None
        if image is not None and not _is_sixteen_bit_colour(image, data):
            return None, image
        if image is not None:
            image.load()  # PIL tells a truncated file, OpenCV does not
    pixels = _opencv_pixels(data) if image is not None or path.suffix.lower() in (".tif", ".tiff") else None
    if pixels is None or pixels.dtype not in (np.uint8, np.uint16):
        raise UnreadableFrameError(f"{place(path)} is no image that can be read: replace or remove it")
    return (pixels if pixels.ndim == 2 else pixels[..., 2::-1]), None


def _opencv_pixels(data: bytes) -> Any:
    import cv2

    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if data else None
    except cv2.error:
        return None


def _is_sixteen_bit_colour(image: Any, data: bytes) -> bool:
    """A file whose header says 16 bits per colour, which PIL would cut to the upper eight."""
    if image.format == "TIFF":
        bits = image.tag_v2.get(258, 8)
        deep = max(bits if isinstance(bits, tuple) else (bits,)) == 16
        return bool(deep and image.mode.startswith("RGB"))
    return image.format == "PNG" and len(data) > 25 and data[24] == 16 and data[25] in (2, 6)


def _is_deep(image: Any) -> bool:
    """Grey with more than eight bits."""
    return bool(image.mode.startswith(("I", "F")))


def _has_alpha(image: Any) -> bool:
    return image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info


def _exif_focal(image: Any) -> float | None:
    """Focal length in pixels of the original image; both of EXIF's ways to say it."""
    tags = image.getexif().get_ifd(_EXIF_IFD)
    film, focal = _positive(tags.get(_FOCAL_35MM)), _positive(tags.get(_FOCAL))
    per_unit, unit = _positive(tags.get(_PLANE_X)), _UNIT_MM.get(tags.get(_PLANE_UNIT, 2))
    if film:
        return film / _FILM_DIAGONAL * math.hypot(*image.size)
    if focal and per_unit and unit:
        return focal * per_unit / unit
    return None


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return number if 0 < number < 1e6 else None


@contextmanager
def _complaints(path: Path) -> Iterator[None]:
    """A decoder's own errors as one line of ours."""
    try:
        yield
    except UnidentifiedImageError:
        raise
    except _BAD_IMAGE as error:
        raise UnreadableFrameError(
            f"{place(path)} is a damaged image ({reason(error)}): replace or remove it"
        ) from None

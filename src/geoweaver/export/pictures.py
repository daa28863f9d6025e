"""The images of an export at their original size, and where working pixels lie in them."""

import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.datatypes import Camera
from geoweaver.errors import InputError
from geoweaver.formats.files import is_file, is_folder, list_folder, place, reason, write_advice
from geoweaver.formats.names import IMAGE_SUFFIXES
from geoweaver.geometry.distortion import Rectification, is_pinhole, rectify
from geoweaver.results import FinishedRun

log = logging.getLogger(__name__)
Kind = Literal["original", "undistorted", "working"]
_PLAIN_MODES = ("RGB", "RGBA")
"""What every trainer reads as it is; grey and palette images are written anew."""
_QUALITY = 95


@runtime_checkable
class Originals(Protocol):
    """Pixels that can still be read as they were recorded."""

    def read_original(self, frame: int) -> UInt8[np.ndarray, "height width 3"]: ...


@dataclass(frozen=True)
class Picture:
    """One exported image: export pixel = scale * working pixel + shift."""

    frame: int
    name: str
    """Below the folder of images."""
    kind: Kind
    size: tuple[int, int]
    scale: tuple[float, float]
    shift: tuple[float, float]

    def from_working(self, pixel: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n 2"]:
        """Where a pixel of the working image lies."""
        return pixel * pixel.new_tensor(self.scale) + pixel.new_tensor(self.shift)

    def intrinsics(self, working: Float[Tensor, "4"]) -> tuple[float, float, float, float]:
        """(fx, fy, cx, cy) of this image from those of the working image."""
        scale, shift = working.new_tensor(self.scale), working.new_tensor(self.shift)
        fx, fy, cx, cy = torch.cat([working[:2] * scale, working[2:] * scale + shift]).tolist()
        return fx, fy, cx, cy


def write_pictures(
    run: FinishedRun, rows: Sequence[int], folder: Path, names: Sequence[str]
) -> list[Picture]:
    """Link, copy, undistort or decode every frame's image; where the original is gone, the working one."""
    readable = _originals_are_there(run, rows)
    originals = _original_folder(run) if readable else None
    pictures = []
    for frame, name in zip(rows, names, strict=True):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        picture = _from_original(run, frame, target, name, originals) if readable else None
        pictures.append(picture or _from_working(run, frame, target, name))
    return pictures


def smaller_pictures(source: Path, target: Path, pictures: Sequence[Picture], factor: int) -> None:
    """Copies shrunk by a whole factor under the same names."""
    import cv2
    from PIL import Image

    for picture in pictures:
        with Image.open(source / picture.name) as image:
            pixels = np.asarray(image.convert("RGB"))
        size = max(1, picture.size[0] // factor), max(1, picture.size[1] // factor)
        (target / picture.name).parent.mkdir(parents=True, exist_ok=True)
        write_image(target / picture.name, np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)))


def picture_names(run: FinishedRun, rows: Sequence[int]) -> list[str]:
    """The frames' own names, with an ending that says image, and nothing that COLMAP cannot store."""
    names = []
    for frame in rows:
        name = "".join(c if c.isprintable() else "_" for c in run.frames.names[frame]).strip()
        suffix = PurePosixPath(name).suffix.lower()
        names.append(name if suffix in IMAGE_SUFFIXES else f"{name}.jpg")
    if len(set(names)) == len(names):
        return names
    return [f"frame_{frame:06}{PurePosixPath(name).suffix}" for frame, name in zip(rows, names, strict=True)]


def plain_names(names: Sequence[str]) -> list[str]:
    """Names without folders and foreign letters, for trainers that stumble over either; unique."""
    flat = [name.replace("/", "__") for name in names]
    if len(set(flat)) == len(flat) and all(name.isascii() for name in flat):
        return flat
    return [f"image_{i:06}{PurePosixPath(name).suffix.lower()}" for i, name in enumerate(names)]


def _originals_are_there(run: FinishedRun, rows: Sequence[int]) -> bool:
    """One look at the input, which also notices that it has changed since the run."""
    pixels = run.frames.pixels
    if not isinstance(pixels, Originals) or not rows:
        return False
    try:
        pixels.read_original(rows[0])
    except (InputError, OSError) as error:
        log.warning("the originals cannot be read (%s): images are exported at working size", reason(error))
        return False
    return True


def _original_folder(run: FinishedRun) -> Path | None:
    """Where the frames' own files lie: nowhere for a video."""
    stated = run.summary.get("input")
    folder = Path(stated) if stated else None
    if folder is None or not is_folder(folder):
        return None
    # a dataset keeps its images in a folder of that name, and none beside it
    direct = any(file.suffix.lower() in IMAGE_SUFFIXES for file in list_folder(folder, "a folder of images"))
    return folder if direct or not is_folder(folder / "images") else folder / "images"


def _from_original(
    run: FinishedRun, frame: int, target: Path, name: str, originals: Path | None
) -> Picture | None:
    """The image at its original size; None where it cannot be read any more."""
    camera = run.frames.cameras[int(run.frames.camera[frame])]
    view = _rectification(camera)
    straight = is_pinhole(view.lens)
    size = None
    if straight and originals is not None and is_file(originals / run.frames.names[frame]):
        size = _linked(originals / run.frames.names[frame], target)
    if size is None:
        assert isinstance(run.frames.pixels, Originals)
        try:
            image = run.frames.pixels.read_original(frame)
        except (InputError, OSError):
            return None
        image = image if straight else _undistorted(image, view)
        write_image(target, image)
        size = (image.shape[1], image.shape[0])
    scale, shift = _export_from_working(camera, view, size)
    return Picture(frame, name, "original" if straight else "undistorted", size, scale, shift)


def _from_working(run: FinishedRun, frame: int, target: Path, name: str) -> Picture:
    assert run.frames.pixels is not None, "a run without pixels has no images to export"
    write_image(target, run.frames.pixels.read(frame))
    return Picture(frame, name, "working", run.result.size, (1.0, 1.0), (0.0, 0.0))


def image_box(camera: Camera) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a camera's image in the working image: the rest is padding."""
    view = _rectification(camera)
    (sx, sy), (tx, ty) = _export_from_working(camera, view, view.size)
    return -tx / sx, -ty / sy, (view.size[0] - tx) / sx, (view.size[1] - ty) / sy


@lru_cache(maxsize=16)
def _rectification(camera: Camera) -> Rectification:
    """The pinhole view of a camera at its original size."""
    return rectify(camera.lens)


def _export_from_working(
    camera: Camera, view: Rectification, size: tuple[int, int]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both are pinhole views of the same rays: focal lengths give the scale, principal points the shift."""
    fx, fy, cx, cy = view.intrinsics.tolist()
    wx, wy, wcx, wcy = camera.rectified or (fx, fy, cx, cy)
    # a camera's images may differ in size: its lens is stated at the commonest one
    rx, ry = size[0] / view.size[0], size[1] / view.size[1]
    sx, sy = rx * fx / wx, ry * fy / wy
    return (sx, sy), (rx * cx - sx * wcx, ry * cy - sy * wcy)


def _undistorted(
    image: UInt8[np.ndarray, "h w 3"], view: Rectification
) -> UInt8[np.ndarray, "height width 3"]:
    import cv2

    if (image.shape[1], image.shape[0]) != view.lens.size:
        image = cv2.resize(image, view.lens.size, interpolation=cv2.INTER_CUBIC)
    return np.asarray(
        cv2.remap(image, view.map_x, view.map_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    )


def _linked(source: Path, target: Path) -> tuple[int, int] | None:
    """The same file under its new name, and its size; None where it must be written anew to be understood."""
    from PIL import Image

    try:
        with Image.open(source) as image:
            size, mode, turned = image.size, image.mode, image.getexif().get(0x0112, 1) != 1
        with source.open("rb") as file:
            head = file.read(25)
    except (OSError, ValueError, SyntaxError):
        return None
    deep = head.startswith(b"\x89PNG") and head[24:] == b"\x10"
    if mode not in _PLAIN_MODES or turned or deep or source.suffix.lower() != target.suffix.lower():
        return None
    try:
        os.link(source.resolve(), target)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, target)
    return size


def write_image(path: Path, image: UInt8[np.ndarray, "height width *colours"]) -> None:
    """Write an RGB or a grey image in the format of its ending."""
    from PIL import Image

    options: dict[str, Any] = {"quality": _QUALITY, "subsampling": 0}
    try:
        Image.fromarray(image).save(
            path, **(options if path.suffix.lower() in (".jpg", ".jpeg", ".webp") else {})
        )
    except OSError as error:
        raise InputError(
            f"{place(path)} cannot be written ({reason(error)}): {write_advice(error)}"
        ) from None

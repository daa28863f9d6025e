"""Masks of exported images: white where a pixel shows the static world."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from geoweaver.export.pictures import Picture, write_image
from geoweaver.results import FinishedRun


def write_masks(run: FinishedRun, folder: Path, pictures: Sequence[Picture]) -> list[str] | None:
    """White where a pixel counts, a grey PNG per image, as COLMAP names them; None where every pixel does."""
    if run.frames.masks is None:
        return None
    # one at a time: all of a long recording's masks do not fit into memory
    if all(bool(_mask(run, picture).all()) for picture in pictures):
        return None
    names = [f"{picture.name}.png" for picture in pictures]
    for name, picture in zip(names, pictures, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_image(folder / name, _mask(run, picture))
    return names


def _mask(run: FinishedRun, picture: Picture) -> UInt8[np.ndarray, "height width"]:
    """A frame's usable pixels in its exported image."""
    import cv2

    assert run.frames.masks is not None
    working = run.frames.masks.read(picture.frame).astype(np.uint8) * 255
    (sx, sy), (tx, ty) = picture.scale, picture.shift
    # cv2 counts from pixel centres
    matrix = np.array([[sx, 0, tx + (sx - 1) / 2], [0, sy, ty + (sy - 1) / 2]])
    warped = cv2.warpAffine(
        working, matrix, picture.size, flags=cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(warped)

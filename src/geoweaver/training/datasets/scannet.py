"""`scannet`: sceneXXXX_YY/{color, depth, pose, intrinsic}, extracted from the .sens files."""

from pathlib import Path

import cv2
import numpy as np
import torch
from jaxtyping import Float64

from geoweaver.errors import FormatError
from geoweaver.formats.depth import MILLIMETRE, read_depth
from geoweaver.formats.files import data_lines, numbers, place, read_text
from geoweaver.formats.poses import from_matrices
from geoweaver.frames.images import read_image
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import corner_from_centre_origin
from geoweaver.training.datasets.scene import Scene, View, folders, numbers_of, window

EXPECTED = "ScanNet scenes"
_PER_VIEW = 30.0


def open_scannet(root: Path) -> list[Scene]:
    """Scenes by folder; frames whose pose was lost (not finite) are refused when they are read."""
    return [_open(folder) for folder in folders(root, "intrinsic/intrinsic_depth.txt", EXPECTED)]


def _open(folder: Path) -> Scene:
    stems = numbers_of(folder / "depth", ".png", "ScanNet's depth maps")
    K = _matrix(folder / "intrinsic" / "intrinsic_depth.txt")
    intrinsics = corner_from_centre_origin(torch.tensor([K[0, 0], K[1, 1], K[0, 2], K[1, 2]]))

    def read(frame: int) -> View:
        stem = stems[frame]
        path = folder / "color" / f"{stem}.jpg"
        depth = read_depth(folder / "depth" / f"{stem}.png", MILLIMETRE)
        # colour is brought to the depth camera's size: its calibration then holds for both
        image = cv2.resize(read_image(path), depth.shape[::-1], interpolation=cv2.INTER_AREA)
        return View(image, depth, _cam_from_world(folder / "pose" / f"{stem}.txt"), intrinsics, place(path))

    return Scene(place(folder), len(stems), read, window(len(stems), _PER_VIEW))


def _cam_from_world(path: Path) -> SE3:
    text = read_text(path, "a 4x4 pose")
    if any(word in text.lower() for word in ("inf", "nan")):
        raise FormatError(f"{place(path)}: the pose was lost here (not finite): another frame is taken")
    return from_matrices(_matrix(path)[None], lambda row: place(path))[0].inverse()


def _matrix(path: Path) -> Float64[np.ndarray, "4 4"]:
    lines = data_lines(path, "a 4x4 matrix")
    rows = np.array([numbers(path, line, ("1", "2", "3", "4")) for line in lines])
    if rows.shape != (4, 4):
        raise FormatError(f"{place(path)}: {len(rows)} rows instead of 4: extract the scene again")
    return rows

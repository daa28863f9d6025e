"""Virtual KITTI 2's text files: world-to-camera matrices and intrinsics of two cameras, rows by frame."""

from pathlib import Path

import torch

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError
from geoweaver.formats.files import Line, data_lines, place, table
from geoweaver.formats.kitti import COLUMNS as MATRIX
from geoweaver.formats.poses import from_matrices

_HEAD = ("frame", "cameraID")
COLUMNS = (*_HEAD, *MATRIX, "m41", "m42", "m43", "m44")
EXPECTED = "Virtual KITTI 2's extrinsic.txt (lines of 'frame cameraID' and a 4x4 world-to-camera matrix)"
INTRINSICS = "Virtual KITTI 2's intrinsic.txt (lines of 'frame cameraID fx fy cx cy')"
_LARGEST_INDEX = 10_000_000


def read_vkitti(path: Path, camera: int = 0) -> Trajectory:
    """One camera's path; each row's frame number is its index."""
    lines = _rows(path, EXPECTED)
    rows = table(path, lines, COLUMNS)
    kept = [k for k in range(len(rows)) if rows[k, 1] == camera]
    if not kept:
        raise FormatError(f"{place(path)} has no row of camera {camera}: check how it was written")
    index = rows[kept, 0]
    if (index != index.astype(int)).any() or index.min() < 0 or index.max() > _LARGEST_INDEX:
        raise FormatError(f"{place(path)}: the first column must hold frame numbers: correct the file")
    if len(set(index.tolist())) < len(index):
        raise FormatError(f"{place(path)}: a frame of camera {camera} appears twice: remove one of them")
    matrices = rows[kept, 2:].reshape(-1, 4, 4)
    cam_from_world = from_matrices(matrices, lambda row: place(path, lines[kept[row]][0]))
    return Trajectory(cam_from_world, index=torch.from_numpy(index.astype("int64")))


def read_vkitti_intrinsics(path: Path, camera: int = 0) -> tuple[float, float, float, float]:
    """fx, fy, cx, cy of a camera's first row, counted from the first pixel's centre."""
    rows = table(path, _rows(path, INTRINSICS), (*_HEAD, "fx", "fy", "cx", "cy"))
    mine = rows[rows[:, 1] == camera]
    if not len(mine):
        raise FormatError(f"{place(path)} has no row of camera {camera}: check how it was written")
    fx, fy, cx, cy = (float(value) for value in mine[0, 2:])
    return fx, fy, cx, cy


def _rows(path: Path, expected: str) -> list[Line]:
    """The lines below the header, which names the columns."""
    lines = data_lines(path, expected)
    rows = lines[1:] if lines[0][1].startswith(_HEAD[0]) else lines
    if not rows:
        raise FormatError(f"{place(path)} holds no data, {expected} was expected: check how it was written")
    return rows

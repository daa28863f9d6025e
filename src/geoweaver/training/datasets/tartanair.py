"""`tartanair`: <env>/{Easy,Hard}/PNNN with image_left, depth_left and pose_left.txt (first release)."""

from pathlib import Path

import torch

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.depth import read_depth
from geoweaver.formats.files import data_lines, list_folder, place, table
from geoweaver.formats.poses import from_quaternions
from geoweaver.frames.images import read_image
from geoweaver.geometry import SE3
from geoweaver.training.datasets.scene import Scene, View, window, without

EXPECTED = "TartanAir's trajectories"
_COLUMNS = ("tx", "ty", "tz", "qx", "qy", "qz", "qw")
_INTRINSICS = (320.0, 320.0, 320.0, 240.0)
_SKY = 1000.0
"""Metres from which on there is only sky."""
_PER_VIEW = 3.0
_CV_FROM_NED = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
"""Cameras look along x, with y to the right and z down."""


def open_tartanair(root: Path) -> list[Scene]:
    """All trajectories at any depth below the folder."""
    list_folder(root, EXPECTED)
    found = sorted(root.rglob("pose_left.txt"))
    if not found:
        raise InputError(f"{place(root)} holds none of {EXPECTED} (a folder with pose_left.txt): check it")
    return [_open(path.parent) for path in found]


def _open(folder: Path) -> Scene:
    cameras = read_poses(folder / "pose_left.txt")
    names = [path.stem for path in list_folder(folder / "image_left", "images") if path.suffix == ".png"]
    if len(names) != len(cameras):
        raise FormatError(f"{place(folder)}: {len(names)} images, but {len(cameras)} poses: fetch it again")

    def read(frame: int) -> View:
        path = folder / "image_left" / f"{names[frame]}.png"
        depth = without(read_depth(folder / "depth_left" / f"{names[frame]}_depth.npy"), _SKY)
        K = torch.tensor(_INTRINSICS, dtype=torch.float64)
        return View(read_image(path), depth, cameras[frame], K, place(path))

    return Scene(place(folder), len(names), read, window(len(names), _PER_VIEW))


def read_poses(path: Path) -> SE3:
    """cam_from_world in our axes of a file of camera-to-world rows in north-east-down axes."""
    lines = data_lines(path, "TartanAir's poses (tx ty tz qx qy qz qw)")
    rows = table(path, lines, _COLUMNS)
    world_from_ned = from_quaternions(
        rows[:, :3], rows[:, [6, 3, 4, 5]], lambda row: place(path, lines[row][0])
    )
    turn = SE3(_CV_FROM_NED, torch.zeros(3, dtype=torch.float64))
    return turn @ world_from_ned.inverse()

"""Oxford Spires: front fisheye images, and the body's path from laser scans, told as the camera's own."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from geoweaver.benchmark.scene import Found, Scene, Suite, has_images
from geoweaver.datatypes import Trajectory
from geoweaver.errors import InputError
from geoweaver.evaluation.alignment import associate
from geoweaver.formats.files import is_file, is_folder, place
from geoweaver.formats.tum import read_tum
from geoweaver.frames.folder import list_images
from geoweaver.geometry import SE3
from geoweaver.geometry.distortion import Lens
from geoweaver.geometry.so3 import matrix_from_quaternion

SEQUENCES = {
    "keble-04": "2024-03-12-keble-college-04",
    "observatory-01": "2024-03-13-observatory-quarter-01",
    "blenheim-05": "2024-03-14-blenheim-palace-05",
    "christ-church-02": "2024-03-18-christ-church-02",
}
"""The paper's name of each sequence, and its folder."""
# From configs/sensor.yaml of the dataset's own tools (ori-drs/oxford_spires_dataset), cam_front.
_CAM_FROM_LIDAR = (
    0.00035060884033447846, -0.079574053851818, -0.053826061545697405,
    0.5034725628949727, 0.5003337192107279, -0.4947539264483171, 0.5013981452864594,
)  # fmt: skip
_BASE_FROM_LIDAR = (0.0, 0.0, 0.124, 0.0, 0.0, 1.0, 0.0)
"""Translation and quaternion, w last."""
LENS = Lens(
    "OPENCV_FISHEYE",
    # stated from the first pixel's centre, as OpenCV counts
    (698.1692094914263, 698.5147584873237, 712.7646767255006 + 0.5, 560.5751284820508 + 0.5,
     -0.04114225009462773, -0.002421765984053725, 0.003400355152679783, -0.0018518822347983275),
    (1440, 1080),
)  # fmt: skip
_TOLERANCE = 0.01
"""Seconds between an image and the pose that counts as its own, as in the dataset's own evaluation."""


def find_spires(data: Path, calibrated: bool) -> Found:
    """Front camera; its calibration is always given, for a fisheye is no pinhole with errors."""
    root = data / "sequences" if is_folder(data / "sequences") else data
    return {name: _sequence(root / folder, name) for name, folder in SEQUENCES.items()}


def _sequence(folder: Path, name: str) -> Scene | str:
    images, poses = folder / "raw/cam0", folder / "processed/trajectory/gt-tum.txt"
    if not has_images(images):
        return f"no images in {folder.name}/raw/cam0/"
    if not is_file(poses):
        return f"no {folder.name}/processed/trajectory/gt-tum.txt"
    return Scene(name, images, partial(read_reference, poses, images), lens=LENS)


def read_reference(poses: Path, images: Path) -> Trajectory:
    """The camera's poses that belong to an image, by that image's name, which is its time."""
    base = read_tum(poses)
    cam_from_base = _rigid(_CAM_FROM_LIDAR) @ _rigid(_BASE_FROM_LIDAR).inverse()
    path = replace(base, cam_from_world=cam_from_base @ base.cam_from_world)
    names = list_images(images)[1]
    times = torch.tensor([_seconds(images, name) for name in names], dtype=torch.float64)
    shown = Trajectory(SE3.identity(len(names)), torch.arange(len(names)), timestamps=times)
    pairs = associate(shown, path, _TOLERANCE)
    own = tuple(names[k] for k in pairs.estimate.tolist())
    return replace(path.choose(pairs.reference), names=own, index=pairs.estimate)


def _rigid(numbers: tuple[float, ...]) -> SE3:
    values = torch.tensor(numbers, dtype=torch.float64)
    return SE3(matrix_from_quaternion(values[[6, 3, 4, 5]]), values[:3])


def _seconds(images: Path, name: str) -> float:
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    if not re.fullmatch(r"[0-9]{9,11}\.[0-9]{1,9}", stem):
        raise InputError(f"{place(images / name)}: images are named by their time (1710338123.250.jpg) there")
    return float(stem)


SPIRES_SUITE = Suite(
    "Oxford Spires",
    "DIR/2024-03-12-keble-college-04/ with raw/cam0/ and processed/trajectory/gt-tum.txt, and so on",
    find_spires,
    ("rre_deg", "ate"),
)

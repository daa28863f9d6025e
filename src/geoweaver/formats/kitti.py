"""KITTI odometry poses: twelve numbers per line, the 3x4 camera-to-world matrix row by row."""

from pathlib import Path

import torch

from geoweaver.datatypes import Trajectory
from geoweaver.formats.files import data_lines, place, table, write_text, written
from geoweaver.formats.poses import from_matrices

COLUMNS = tuple(
    f"r{row}{column}" if column < 4 else f"t{row}" for row in (1, 2, 3) for column in (1, 2, 3, 4)
)
EXPECTED = "KITTI poses (lines of 12 numbers, the 3x4 camera-to-world matrix)"


def read_kitti(path: Path) -> Trajectory:
    """Cameras of consecutive frames."""
    lines = data_lines(path, EXPECTED)
    matrices = table(path, lines, COLUMNS).reshape(-1, 3, 4)
    pose = from_matrices(matrices, lambda row: place(path, lines[row][0]))
    return Trajectory(pose.inverse(), index=torch.arange(len(lines)))


def write_kitti(path: Path, trajectory: Trajectory) -> None:
    """Write every camera in order; KITTI has no place for names and times."""
    rows = trajectory.cam_from_world.inverse().matrix()[:, :3].flatten(1).tolist()
    write_text(path, "".join(" ".join(map(written, row)) + "\n" for row in rows))

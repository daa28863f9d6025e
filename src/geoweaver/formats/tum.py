"""TUM trajectories: `timestamp tx ty tz qx qy qz qw` per line, camera-to-world, quaternion w last."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError
from geoweaver.formats.files import data_lines, place, table, write_text, written
from geoweaver.formats.poses import from_quaternions
from geoweaver.geometry.so3 import quaternion_from_matrix

COLUMNS = ("timestamp", "tx", "ty", "tz", "qx", "qy", "qz", "qw")
EXPECTED = "a TUM trajectory (lines of 'timestamp tx ty tz qx qy qz qw')"
_LARGEST_INDEX = 10_000_000


def read_tum(path: Path, unique: bool = True) -> Trajectory:
    """Cameras in file order; `unique=False` allows equal times, as synchronised cameras have."""
    lines = data_lines(path, EXPECTED)
    rows = table(path, lines, COLUMNS)
    if unique:
        _refuse_equal_times(path, rows[:, 0], [line for line, _ in lines])
    pose = from_quaternions(rows[:, 1:4], rows[:, [7, 4, 5, 6]], lambda row: place(path, lines[row][0]))
    times = torch.from_numpy(rows[:, 0].copy())
    return Trajectory(pose.inverse(), index=_indices(times), timestamps=times)


def write_tum(path: Path, trajectory: Trajectory) -> None:
    """Write every camera; frames without a time are stamped with their index."""
    pose = trajectory.cam_from_world.inverse()
    times = trajectory.index if trajectory.timestamps is None else trajectory.timestamps
    quaternion = quaternion_from_matrix(pose.rotation)[:, [1, 2, 3, 0]]
    rows = torch.cat([times[:, None].double(), pose.translation.double(), quaternion.double()], 1).tolist()
    write_text(path, "".join(" ".join(map(written, row)) + "\n" for row in rows))


def _indices(times: Float64[Tensor, "n"]) -> Int64[Tensor, "n"]:
    """The stamps themselves where they count frames (0, 5, 10 ...), else the place in the file."""
    counting = (times == times.round()).all() and times[0] >= 0 and times[-1] < _LARGEST_INDEX
    if counting and (times.diff() > 0).all():
        return times.long()
    return torch.arange(len(times))


def _refuse_equal_times(path: Path, times: Float64[np.ndarray, "n"], line: list[int]) -> None:
    order = np.argsort(times, kind="stable")
    for i in np.flatnonzero(np.diff(times[order]) == 0)[:1]:
        first, second = line[order[i]], line[order[i + 1]]
        time = written(times[order[i]])
        raise FormatError(
            f"{place(path, second)}: the time {time} is already on line {first}: remove one of them"
        )

"""EuRoC ground truth (`data.csv`): time in nanoseconds, position, quaternion w first, then what we leave."""

from pathlib import Path

import numpy as np
import torch

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError
from geoweaver.formats.files import Line, data_lines, number, place, quoted
from geoweaver.formats.poses import from_quaternions
from geoweaver.geometry import SE3

COLUMNS = ("px", "py", "pz", "qw", "qx", "qy", "qz")
EXPECTED = "a EuRoC ground truth (lines of 'timestamp[ns],px,py,pz,qw,qx,qy,qz,...')"


def read_euroc(path: Path, body_from_cam: SE3 | None = None) -> Trajectory:
    """The recorded body's path; with `body_from_cam` (the sensor's T_BS) the camera's."""
    lines = data_lines(path, EXPECTED)
    parsed = [_row(path, line) for line in lines]
    rows = np.array([numbers for _, numbers in parsed], dtype=np.float64)
    seconds = torch.tensor([time / 10**9 for time, _ in parsed], dtype=torch.float64)
    world_from_cam = from_quaternions(rows[:, :3], rows[:, 3:7], lambda row: place(path, lines[row][0]))
    if body_from_cam is not None:
        world_from_cam = world_from_cam @ body_from_cam
    return Trajectory(world_from_cam.inverse(), index=torch.arange(len(lines)), timestamps=seconds)


def _row(path: Path, line: Line) -> tuple[int, list[float]]:
    tokens = [token.strip() for token in line[1].split(",")]
    if len(tokens) <= len(COLUMNS):
        raise FormatError(
            f"{place(path, line[0])}: at least 8 columns were expected, {len(tokens)} found: correct the line"
        )
    if not (tokens[0].isascii() and tokens[0].isdigit() and len(tokens[0]) <= 20):
        stamp = quoted(tokens[0])
        raise FormatError(
            f"{place(path, line[0])}: the time {stamp} is no whole number of nanoseconds: correct it"
        )
    values = zip(tokens[1:], COLUMNS, strict=False)
    return int(tokens[0]), [number(path, line[0], token, name) for token, name in values]

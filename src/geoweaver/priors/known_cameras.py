"""Cameras that the user already knows, matched to frames: by name, else by time, else by index."""

from pathlib import Path, PurePosixPath

import torch

from geoweaver.datatypes import Frames, Trajectory
from geoweaver.errors import InputError
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry import SE3


def known_cameras(path: Path, frames: Frames) -> dict[int, SE3]:
    """The file's cameras by frame; an error where it speaks of none of them."""
    trajectory = read_trajectory(path)
    rows = _rows(trajectory, frames)
    if not rows:
        raise InputError(f"{path} has no camera for any of these frames: check its names, times or order")
    return {frame: trajectory.cam_from_world[row] for frame, row in rows.items()}


def _rows(trajectory: Trajectory, frames: Frames) -> dict[int, int]:
    """Frame to row of the file."""
    if trajectory.names is not None:
        by_name = {PurePosixPath(name).stem: row for row, name in enumerate(trajectory.names)}
        stems = [PurePosixPath(name).stem for name in frames.names]
        return {frame: by_name[stem] for frame, stem in enumerate(stems) if stem in by_name}
    if trajectory.timestamps is not None and len(frames) > 1:
        return _by_time(trajectory.timestamps.double(), frames)
    by_index = {int(index): row for row, index in enumerate(trajectory.index)}
    return {frame: by_index[frame] for frame in range(len(frames)) if frame in by_index}


def _by_time(times: torch.Tensor, frames: Frames) -> dict[int, int]:
    """The nearest stamp within half of the usual distance between frames."""
    stamps = frames.timestamps.double()
    reach = float((stamps[1:] - stamps[:-1]).abs().median()) / 2
    apart = (stamps[:, None] - times[None]).abs()
    nearest = apart.argmin(1)
    return {f: int(nearest[f]) for f in range(len(frames)) if float(apart[f, nearest[f]]) <= reach}

"""Cameras that the user already knows, matched to frames: by name, else by time, else by index among all."""

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from geoweaver.datatypes import Chunk, Frames, Trajectory
from geoweaver.errors import InputError
from geoweaver.formats.names import match_names
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry import SE3

log = logging.getLogger(__name__)


def known_cameras(path: Path, frames: Frames) -> dict[int, SE3]:
    """The file's cameras by frame; an error where it speaks of none of them."""
    trajectory = read_trajectory(path)
    rows = _rows(trajectory, frames)
    if not rows:
        raise InputError(f"{path} has no camera for any of these frames: check its names, times or order")
    return {frame: trajectory.cam_from_world[row] for frame, row in rows.items()}


def warn_of_gaps(known: dict[int, SE3], frames: Frames, chunks: Sequence[Chunk]) -> None:
    """A chunk takes the cameras of all its frames or of none: say where they are left out."""
    lacking = [[f for f in chunk.frames if f not in known and f not in frames.broken] for chunk in chunks]
    gaps = [missing for missing in lacking if missing]
    if gaps:
        log.warning(
            "known cameras are told to whole chunks only: %d of %d lack some, such as %s, and go without",
            len(gaps), len(chunks), frames.names[gaps[0][0]],
        )  # fmt: skip


def _rows(trajectory: Trajectory, frames: Frames) -> dict[int, int]:
    """Frame to row of the file."""
    if trajectory.names is not None:
        return match_names(trajectory.names, frames.names)
    if trajectory.timestamps is not None and len(frames) > 1:
        return _by_time(trajectory.timestamps.double(), frames)
    by_index = {int(index): row for row, index in enumerate(trajectory.index)}
    return {frame: by_index[place] for frame, place in enumerate(frames.places) if place in by_index}


def _by_time(times: torch.Tensor, frames: Frames) -> dict[int, int]:
    """The nearest stamp within half of the usual distance between frames."""
    stamps = frames.timestamps.double()
    reach = float((stamps[1:] - stamps[:-1]).abs().median()) / 2
    apart = (stamps[:, None] - times[None]).abs()
    nearest = apart.argmin(1)
    return {f: int(nearest[f]) for f in range(len(frames)) if float(apart[f, nearest[f]]) <= reach}

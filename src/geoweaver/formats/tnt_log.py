"""Tanks-and-Temples logs: per frame three integers, then the 4x4 camera-to-world matrix in four lines."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError
from geoweaver.formats.files import Line, data_lines, numbers, place, quoted, table, write_text, written
from geoweaver.formats.poses import from_matrices
from geoweaver.geometry import Sim3

EXPECTED = "a Tanks-and-Temples log (per frame a line of three integers and a 4x4 matrix in four lines)"
ALIGNMENT = "a Tanks-and-Temples alignment (a 4x4 similarity in four lines)"
_ENTRY = 5
_LARGEST_INDEX = 10_000_000


def read_tnt_log(path: Path) -> Trajectory:
    """Cameras with the frame number that each entry's first line states."""
    lines = data_lines(path, EXPECTED)
    if len(lines) % _ENTRY:
        where = place(path, lines[-1][0])
        raise FormatError(
            f"{where}: the last entry is cut off, five lines per frame were expected: complete the file"
        )
    headers = lines[::_ENTRY]
    rows = [line for i, line in enumerate(lines) if i % _ENTRY]
    index = _indices(path, headers)
    matrices = table(path, rows, ("m1", "m2", "m3", "m4")).reshape(-1, 4, 4)
    pose = from_matrices(matrices, lambda row: f"{place(path, headers[row][0])}, entry {row}")
    return Trajectory(pose.inverse(), index=index)


def write_tnt_log(path: Path, trajectory: Trajectory) -> None:
    """Write every camera under its index."""
    matrices = trajectory.cam_from_world.inverse().matrix().tolist()
    entries = []
    for index, rows in zip(trajectory.index.tolist(), matrices, strict=True):
        body = "".join(" ".join(map(written, row)) + "\n" for row in rows)
        entries.append(f"{index} {index} 0\n{body}")
    write_text(path, "".join(entries))


def read_tnt_alignment(path: Path) -> Sim3:
    """metres_from_log: the similarity of a scene's `_trans.txt`, from its log's world to the scanner's."""
    lines = data_lines(path, ALIGNMENT)
    if len(lines) != 4:
        raise FormatError(f"{place(path)} has {len(lines)} lines, {ALIGNMENT} was expected: correct it")
    matrix = table(path, lines, ("m1", "m2", "m3", "m4"))
    scale = float(np.cbrt(np.linalg.det(matrix[:3, :3])))
    if not scale > 0:
        raise FormatError(f"{place(path)}: the left 3x3 block is no scaled rotation: correct the numbers")
    rigid = from_matrices(matrix[None] / [[scale] * 3 + [1.0]], lambda row: place(path))
    return Sim3(torch.tensor(scale, dtype=torch.float64), rigid.rotation[0], rigid.translation[0])


def _indices(path: Path, headers: list[Line]) -> Int64[Tensor, "n"]:
    """The stated frame numbers; the place in the file where all of them are zero."""
    stated = [numbers(path, line, ("frame", "frame", "fitness"))[0] for line in headers]
    for value, (line, _) in zip(stated, headers, strict=True):
        if value != int(value) or not 0 <= value < _LARGEST_INDEX:
            raise FormatError(f"{place(path, line)}: {quoted(value)} is no frame number: correct the entry")
    if not any(stated):
        return torch.arange(len(stated))
    values, first, count = np.unique(stated, return_index=True, return_counts=True)
    for i in np.flatnonzero(count > 1)[:1]:
        where = place(path, headers[int(first[i])][0])
        raise FormatError(f"{where}: frame {int(values[i])} appears more than once: remove one of them")
    return torch.tensor(stated, dtype=torch.int64)

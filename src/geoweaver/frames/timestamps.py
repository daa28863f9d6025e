"""Times given by the user: TUM's `rgb.txt`, EuRoC's `data.csv`, or one number a line."""

import re
from pathlib import Path, PurePosixPath

import torch
from jaxtyping import Float64
from torch import Tensor

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import Line, data_lines, number, place
from geoweaver.frames.source import Recording

EXPECTED = "timestamps (TUM rgb.txt, EuRoC data.csv, or one number a line)"
_NANOSECONDS = 1e14
"""Larger whole numbers are nanoseconds: as seconds they would lie three million years ahead."""

Stamp = tuple[int, float, str]
"""Line number, seconds, image name or nothing."""


def read_timestamps(path: Path, recording: Recording) -> Float64[Tensor, "n"]:
    """A time for every frame of the whole recording, by name where the file has names, else by order."""
    stamps = [_stamp(path, line) for line in data_lines(path, EXPECTED)]
    by_name = {name: time for _, time, name in stamps if name}
    keys = [next((k for k in _keys(name) if k in by_name), None) for name in recording.names]
    if any(keys):
        times = [_of_name(path, by_name, key, name) for key, name in zip(keys, recording.names, strict=True)]
    else:
        times = _by_order(path, [time for _, time, _ in stamps], recording)
    _refuse_backwards(path, times, recording)
    return torch.tensor(times, dtype=torch.float64)


def _stamp(path: Path, line: Line) -> Stamp:
    tokens = [token for token in re.split(r"[,\s]+", line[1]) if token] or [""]
    time = number(path, line[0], tokens[0], "the time")
    if tokens[0].isdigit() and time > _NANOSECONDS:
        time = int(tokens[0]) / 10**9
    name = tokens[1] if len(tokens) == 2 else ""
    return line[0], time, PurePosixPath(name).name if name else ""


def _keys(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).name, PurePosixPath(name).stem


def _of_name(path: Path, by_name: dict[str, float], key: str | None, name: str) -> float:
    if key is None:
        raise FormatError(f"{place(path)} has no time for {name}: add a line for it")
    return by_name[key]


def _by_order(path: Path, times: list[float], recording: Recording) -> list[float]:
    """One line per frame, or one per moment where several cameras took the same number of frames."""
    if len(times) == len(recording):
        return times
    seen: dict[str, int] = {}
    rows = []
    for folder in recording.folders:
        rows.append(seen.get(folder, 0))
        seen[folder] = rows[-1] + 1
    if set(seen.values()) == {len(times)}:
        return [times[row] for row in rows]
    raise InputError(
        f"{place(path)} has {len(times)} times for {len(recording)} frames: give one line per frame, in order"
    )


def _refuse_backwards(path: Path, times: list[float], recording: Recording) -> None:
    last: dict[str, tuple[float, str]] = {}
    for time, folder, name in zip(times, recording.folders, recording.names, strict=True):
        before = last.get(folder)
        if before is not None and time <= before[0]:
            raise FormatError(
                f"{place(path)}: {name} is not later than {before[1]} before it: "
                "times must increase in the order of the images"
            )
        last[folder] = time, name

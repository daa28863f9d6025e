"""Times given by the user: TUM's `rgb.txt`, EuRoC's `data.csv`, or one number a line."""

import re
from pathlib import Path, PurePosixPath

import torch
from jaxtyping import Float64
from torch import Tensor

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import Line, data_lines, number, place
from geoweaver.formats.names import IMAGE_SUFFIXES, match_names
from geoweaver.frames.source import Recording

EXPECTED = "timestamps (TUM rgb.txt, EuRoC data.csv, or one number a line)"
_DIGITS = {13: 3, 16: 6}
"""Whole numbers that are all so long are milli- or microseconds since 1970, other long ones nanoseconds."""

Stamp = tuple[int, str, str]
"""Line number, time as written, image name or nothing."""


def read_timestamps(path: Path, recording: Recording) -> Float64[Tensor, "n"]:
    """A time for every frame of the whole recording, by name where the file has names, else by order."""
    stamps = [_stamp(line) for line in data_lines(path, EXPECTED)]
    seconds = _seconds(path, stamps)
    rows = _rows([name for _, _, name in stamps], recording)
    if rows:
        times = [seconds[_row(path, rows, i, name)] for i, name in enumerate(recording.names)]
    else:
        times = _by_order(path, seconds, recording)
    _refuse_backwards(path, times, recording)
    return torch.tensor(times, dtype=torch.float64)


def _stamp(line: Line) -> Stamp:
    """What follows the time is a name if it is one word, or several of which the last alone is an image's."""
    time, rest = re.split(r"[,\s]+", f"{line[1]} ", maxsplit=1)
    rest = rest.strip(", \t")
    words = re.split(r"[,\s]+", rest)
    images = [word for word in words if PurePosixPath(word).suffix.lower() in IMAGE_SUFFIXES]
    return line[0], time, rest if len(words) == 1 or images == words[-1:] else ""


def _seconds(path: Path, stamps: list[Stamp]) -> list[float]:
    """One unit for the whole file, told by its numbers' digits: a clock may gain one on the way."""
    seconds = [number(path, line, time, "the time") for line, time, _ in stamps]
    whole = all(time.isdigit() for _, time, _ in stamps)
    fewest, most = (f(len(time.lstrip("0")) for _, time, _ in stamps) for f in (min, max))
    power = _DIGITS[most] if fewest == most in _DIGITS else 9 if most > min(_DIGITS) else 0
    return [int(time) / 10**power for _, time, _ in stamps] if power and whole else seconds


def _rows(names: list[str], recording: Recording) -> dict[int, int]:
    """Frame to line; a name without folder stands for the images of all cameras that are called so."""
    found = match_names(names, recording.names)
    bare = [row for row, name in enumerate(names) if name and "/" not in name]
    for folder in set(recording.folders):
        frames = [i for i, own in enumerate(recording.folders) if own == folder]
        own = match_names([names[row] for row in bare], [recording.names[i] for i in frames])
        found = {frames[k]: bare[row] for k, row in own.items()} | found
    return found


def _row(path: Path, rows: dict[int, int], frame: int, name: str) -> int:
    if frame not in rows:
        raise FormatError(f"{place(path)} has no time for {name}, or several: give one line for it")
    return rows[frame]


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

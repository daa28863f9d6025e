"""What image names tell: their natural order, each frame's place in the sequence, and whose a name is."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import torch
from jaxtyping import Int64
from torch import Tensor

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm")
VIDEO_SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".mpg", ".mpeg", ".mts", ".insv")
"""Names of videos where images were expected; a file of any other ending is tried all the same."""
_LARGEST_NUMBER = 10_000_000
"""Longer numbers are times, not places in a sequence."""


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts `frame_2` before `frame_10`."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return tuple((0, int(p), p) if p[0] in "0123456789" else (1, 0, p) for p in parts)


def indices_in_folder(names: Sequence[str], folders: Iterable[Path]) -> Int64[Tensor, "n"] | None:
    """Each name's place among the sorted images of the first folder that holds them all."""
    for folder in folders:
        place_of = {name: i for i, name in enumerate(sorted(_images_below(folder), key=natural_key))}
        if all(name in place_of for name in names):
            return torch.tensor([place_of[name] for name in names], dtype=torch.int64)
    return None


def indices_by_number(names: Sequence[str]) -> Int64[Tensor, "n"] | None:
    """The number that each name ends with, where all have different ones."""
    found = [_last_number(name) for name in names]
    numbers = [n for n in found if n is not None]
    if not names or len(set(numbers)) < len(names):
        return None
    return torch.tensor(numbers, dtype=torch.int64)


def indices_by_order(names: Sequence[str]) -> Int64[Tensor, "n"]:
    """Each name's rank in natural order."""
    index = torch.empty(len(names), dtype=torch.int64)
    index[sorted(range(len(names)), key=lambda i: natural_key(names[i]))] = torch.arange(len(names))
    return index


def match_names(names: Sequence[str], frames: Sequence[str]) -> dict[int, int]:
    """Frame to place among a file's names: by the whole name, else by the longest end unique in both."""
    rows, wanted = _by_ending(names), _by_ending(frames)
    found: dict[int, int] = {}
    for frame, name in enumerate(frames):
        shared = (end for end in _endings(name) if len(rows.get(end, ())) == len(wanted[end]) == 1)
        if (end := next(shared, None)) is not None:
            found[frame] = rows[end][0]
    return found


def _by_ending(names: Sequence[str]) -> dict[str, list[int]]:
    """Places in the list of all names that end so."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        for end in _endings(name):
            places.setdefault(end, []).append(place)
    return places


def _endings(name: str) -> list[str]:
    """The name, then its path with ever fewer folders, each time also without suffix."""
    path = PurePosixPath(name)
    above = [path.parent.parts[k:] for k in range(len(path.parts))]
    ends = ["/".join((*folders, last)) for folders in above for last in (path.name, path.stem)]
    return list(dict.fromkeys([name, *ends]))


def _images_below(folder: Path) -> list[str]:
    found = [Path(where, file) for where, _, files in os.walk(folder) for file in files]
    return [p.relative_to(folder).as_posix() for p in found if p.suffix.lower() in IMAGE_SUFFIXES]


def _last_number(name: str) -> int | None:
    stem = re.sub(r"\.[A-Za-z][A-Za-z0-9]{0,5}$", "", name.rsplit("/", 1)[-1])
    match = re.search(r"(?<![0-9.])[0-9]{1,18}$", stem)
    number = int(match[0]) if match else None
    return number if number is not None and number < _LARGEST_NUMBER else None

"""What image names tell: their natural order, and each frame's place in the sequence."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

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


def _images_below(folder: Path) -> list[str]:
    found = [Path(where, file) for where, _, files in os.walk(folder) for file in files]
    return [p.relative_to(folder).as_posix() for p in found if p.suffix.lower() in IMAGE_SUFFIXES]


def _last_number(name: str) -> int | None:
    stem = re.sub(r"\.[A-Za-z][A-Za-z0-9]{0,5}$", "", name.rsplit("/", 1)[-1])
    match = re.search(r"(?<![0-9.])[0-9]{1,18}$", stem)
    number = int(match[0]) if match else None
    return number if number is not None and number < _LARGEST_NUMBER else None

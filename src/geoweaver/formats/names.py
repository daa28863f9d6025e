"""What image names tell: their natural order, and each frame's place in the sequence."""

import re
from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

_LARGEST_NUMBER = 10_000_000
"""Longer numbers are times, not places in a sequence."""


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts `frame_2` before `frame_10`."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return tuple((0, int(p), p) if p[0] in "0123456789" else (1, 0, p) for p in parts)


def frame_indices(names: Sequence[str]) -> Int64[Tensor, "n"]:
    """The number each name ends with, counted from 0, where all have different ones; else the natural order.

    A reconstruction may lack frames, so the rank among its own images would shift all later ones.
    """
    found = [_last_number(name) for name in names]
    numbers = [n for n in found if n is not None]
    if names and len(set(numbers)) == len(names):
        return torch.tensor(numbers) - (1 if min(numbers) == 1 else 0)
    index = torch.empty(len(names), dtype=torch.int64)
    index[sorted(range(len(names)), key=lambda i: natural_key(names[i]))] = torch.arange(len(names))
    return index


def _last_number(name: str) -> int | None:
    stem = re.sub(r"\.[A-Za-z][A-Za-z0-9]{0,5}$", "", name.rsplit("/", 1)[-1])
    match = re.search(r"(?<![0-9.])[0-9]{1,18}$", stem)
    number = int(match[0]) if match else None
    return number if number is not None and number < _LARGEST_NUMBER else None

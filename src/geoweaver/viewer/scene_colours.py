"""What a point or a camera is coloured by; every palette can be told apart by colour-blind eyes."""

from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

ColourBy = Literal["RGB", "chunk", "confidence", "trust"]
COLOUR_CHOICES: tuple[ColourBy, ...] = get_args(ColourBy)

GREY = (128, 128, 128)
TRUSTED = (0, 114, 178)
DOUBTED = (213, 94, 0)
_CYCLE = ((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (213, 94, 0))
"""Okabe and Ito's colours, less black and the yellow that a white page swallows."""


def run_colour(run: int) -> tuple[int, int, int]:
    """One colour per run, far from its neighbours'."""
    return _CYCLE[(2 * run + run // 3) % len(_CYCLE)]


def chunk_colours(chunk: Int[Tensor, "n"]) -> UInt8[Tensor, "n 3"]:
    """Neighbouring chunks differ; what belongs to no chunk is grey."""
    table = torch.tensor([*_CYCLE, GREY], dtype=torch.uint8)
    return table[torch.where(chunk >= 0, chunk % len(_CYCLE), len(_CYCLE))]


def trust_colours(trusted: Bool[Tensor, "n"], known: Bool[Tensor, "n"]) -> UInt8[Tensor, "n 3"]:
    """Blue where the data support the camera, vermilion where they do not, grey where nobody can tell."""
    table = torch.tensor([DOUBTED, TRUSTED, GREY], dtype=torch.uint8)
    return table[torch.where(known, trusted.long(), 2)]


def ramp_colours(value: Float[Tensor, "*n"]) -> UInt8[Tensor, "*n 3"]:
    """Values from 0 to 1, from dark blue to yellow."""
    steps = (value.clamp(0, 1) * 255).round().nan_to_num(0).long()
    return _ramp()[steps]


@lru_cache
def _ramp() -> UInt8[Tensor, "256 3"]:
    import matplotlib

    table = matplotlib.colormaps["cividis"](np.linspace(0, 1, 256))[:, :3]
    return torch.from_numpy((table * 255).round().astype(np.uint8))

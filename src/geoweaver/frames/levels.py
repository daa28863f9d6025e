"""Which values of images with more than eight bits are black and white: one answer for a whole sequence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

SAMPLE = 1024
"""Pixels of an image that are looked at, evenly over it."""
_DARK, _BRIGHT = 1.0, 99.0
"""Percentiles over all of them: what lies beyond is hot pixels, lamps, and one spoilt image among many."""
_HIDDEN = 0.5
"""Where even the dark has this share of the bright, as in raw thermal images, black is no zero."""
_MARGIN = 0.25
"""Of what lies between the two, left below and above it then."""


@dataclass(frozen=True)
class Levels:
    """Values that become 0 and 255."""

    black: float = 0.0
    white: float = 65535.0

    def eight_bit(self, pixels: Any) -> UInt8[np.ndarray, "height width 3"]:
        """The pixels as colours; grey three times."""
        shown = np.nan_to_num(pixels.astype(np.float32) - np.float32(self.black), posinf=self.white)
        grey = np.clip(shown * (255 / (self.white - self.black)) + 0.5, 0, 255).astype(np.uint8)
        return np.ascontiguousarray(np.repeat(grey[..., None], 3, -1) if grey.ndim == 2 else grey)


def sampled(pixels: Any) -> Float32[np.ndarray, "_"]:
    """Some finite values of an image."""
    every = pixels.reshape(-1)
    # odd, or all would lie in a few columns of an image whose width is a power of two
    some = every[:: len(every) // SAMPLE | 1].astype(np.float32)
    return np.asarray(some[np.isfinite(some)])


def find_levels(samples: Sequence[Float32[np.ndarray, "_"]], real: bool) -> Levels:
    """The levels of all images of a camera; `real` where values are no integers."""
    values = np.concatenate([np.zeros(0, np.float32), *samples])
    if not len(values):
        return Levels()
    low, high = (float(v) for v in np.percentile(values, (_DARK, _BRIGHT)))
    if low > _HIDDEN * high > 0 and high > low:
        margin = _MARGIN * (high - low)
        return Levels(low - margin, high + margin)
    return Levels(0.0, _white(high, real))


def _white(high: float, real: bool) -> float:
    """The top of the 8, 10, 12, 14 or 16 bits that the bright fills; of real values a power of two."""
    if real:
        return 2.0 ** math.ceil(math.log2(high)) if high > 0 else 1.0
    return next(2.0**bits - 1 for bits in (8, 10, 12, 14, 16, 64) if high < 2**bits)

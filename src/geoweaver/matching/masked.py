"""Which matched positions a frame's mask allows."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


def usable_at(mask: Bool[np.ndarray, "H W"] | None, pixel: Float[Tensor, "n 2"]) -> Bool[Tensor, "n"]:
    """Whether each position lies on a usable pixel; without a mask all do."""
    if mask is None:
        return torch.ones(len(pixel), dtype=torch.bool)
    column, row = pixel.floor().long().unbind(-1)
    height, width = mask.shape
    return torch.from_numpy(np.ascontiguousarray(mask))[row.clamp(0, height - 1), column.clamp(0, width - 1)]

"""Where points of one frame lie in another, read from the matches of the edge between them."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.export.symmetric import solve_symmetric

_EXACT = 0.05
"""Pixels: a match this near was measured at the point itself."""
_NEIGHBOURS = 6
_SLACK = 9.0
"""Square pixels: how much a local affine map is held to a mere shift, (noise 0.3 px / gradient 0.1)^2."""


@dataclass(frozen=True)
class Carried:
    """Places in the other frame, and which of them the matches support."""

    pixel: Float[Tensor, "n 2"]
    seen: Bool[Tensor, "n"]


def carry_points(
    pixel: Float[Tensor, "n 2"],
    source: Float[Tensor, "m 2"],
    target: Float[Tensor, "m 2"],
    reach: float,
    agreement: float,
) -> Carried:
    """The matched place where a match was measured at the point, else what the matches around it agree on.

    `reach` bounds the distance to the nearest match, `agreement` the neighbours' misfit; both in pixels.
    """
    from scipy.spatial import cKDTree

    if len(source) < _NEIGHBOURS or not len(pixel):
        return Carried(pixel.clone(), torch.zeros(len(pixel), dtype=torch.bool))
    found, row = cKDTree(source.numpy()).query(pixel.numpy(), k=_NEIGHBOURS)
    distance, near = torch.from_numpy(found), torch.from_numpy(row.astype(np.int64))
    between, misfit = _interpolate(pixel, source[near], target[near], reach)
    exact = distance[:, 0] < _EXACT
    moved = torch.where(exact[:, None], target[near[:, 0]], between)
    return Carried(moved, exact | ((distance[:, 0] < reach) & (misfit < agreement)))


def _interpolate(
    pixel: Float[Tensor, "n 2"], source: Float[Tensor, "n k 2"], target: Float[Tensor, "n k 2"], reach: float
) -> tuple[Float[Tensor, "n 2"], Float[Tensor, "n"]]:
    """A weighted affine map through the neighbours, at the point, and its weighted misfit (pixels)."""
    offset, shift = source - pixel[:, None], target - source
    weight = 1 / (1 + offset.square().sum(-1) / (reach * reach / 4)).square()
    design = torch.cat([torch.ones_like(offset[..., :1]), offset], -1)
    weighted = design * weight[..., None]
    slack = torch.diag(torch.tensor([1e-9, _SLACK, _SLACK], dtype=torch.float64))
    fit = solve_symmetric(weighted.mT @ design + slack, weighted.mT @ shift)
    left = (shift - design @ fit).square().sum(-1)
    misfit = ((left * weight).sum(-1) / weight.sum(-1)).sqrt()
    return pixel + fit[:, 0], misfit

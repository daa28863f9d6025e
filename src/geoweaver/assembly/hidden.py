"""Unknowns that belong to one block alone, eliminated from the normal equations before they are solved."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.linalg import LinAlgError
from torch import Tensor

from geoweaver.assembly.blocks import BlockSystem, Hidden, unique_pairs
from geoweaver.engine import one_blas_thread

FIRST_SHARE, MOST_SHARE = 1e-12, 1e-3
"""What a singular normal matrix of hidden unknowns gets on its diagonal, over the largest one there is."""


@dataclass(frozen=True)
class Coupling:
    """Normal equations of unknowns (h a block) that are coupled to blocks and border, not to each other."""

    block: Int[Tensor, "n"]
    """The blocks that hide them."""
    normal: Float[Tensor, "n h h"]
    gradient: Float[Tensor, "n h"]
    link: Int[Tensor, "l 2"]
    """A row of `block`, and a block that its unknowns are coupled to; sorted, each pair once."""
    mixed: Float[Tensor, "l h b"]
    border: Float[Tensor, "n h k"]


def hide(system: BlockSystem, couplings: list[Coupling]) -> BlockSystem:
    """The Schur complement: what is left for the blocks once each hides its own unknowns."""
    N, b = system.gradient.shape
    diagonal, gradient, border = system.diagonal.clone(), system.gradient.clone(), system.border.clone()
    corner, corner_gradient = system.corner.clone(), system.corner_gradient.clone()
    pairs, fills, hidden = [system.pair], [system.off], []
    for c in couplings:
        whiten = torch.from_numpy(_whiten(c.normal.numpy()))
        owner, other = c.link[:, 0], c.link[:, 1]
        mixed = whiten[owner] @ c.mixed
        slope, edge = whiten @ c.gradient[..., None], whiten @ c.border
        gradient.index_add_(0, other, -(mixed.mT @ slope[owner]).squeeze(-1))
        border.index_add_(0, other, -(mixed.mT @ edge[owner]))
        corner -= (edge.mT @ edge).sum(0)
        corner_gradient -= (edge.mT @ slope).sum(0).squeeze(-1)
        one, two = _meetings(owner, len(c.block))
        same, rising = other[one] == other[two], other[one] < other[two]
        diagonal.index_add_(0, other[one[same]], -(mixed[one[same]].mT @ mixed[two[same]]))
        pair, which = unique_pairs(other[one[rising]], other[two[rising]], N)
        fill = -(mixed[one[rising]].mT @ mixed[two[rising]])
        pairs.append(pair)
        fills.append(torch.zeros(len(pair), b, b, dtype=fill.dtype).index_add_(0, which, fill))
        hidden.append(Hidden(c.block, whiten, slope.squeeze(-1), c.link, mixed, edge))
    every = torch.cat(pairs)
    pair, which = unique_pairs(every[:, 0], every[:, 1], N)
    off = torch.zeros(len(pair), b, b, dtype=diagonal.dtype).index_add_(0, which, torch.cat(fills))
    return replace(
        system, diagonal=diagonal, pair=pair, off=off, gradient=gradient, border=border, corner=corner,
        corner_gradient=corner_gradient, hidden=tuple(hidden),
    )  # fmt: skip


@one_blas_thread()
def _whiten(normal: Any) -> Any:
    """L^-1 of each matrix; where one is singular their diagonals grow, which only shortens the step."""
    own = np.diagonal(normal, axis1=-2, axis2=-1)
    most, share = own.max(initial=1e-200), 0.0
    while True:
        stiff = normal if not share else normal + share * np.eye(normal.shape[-1]) * most
        try:
            # numpy's: torch solves thousands of small triangles a hundred times slower than it multiplies
            return np.linalg.inv(np.linalg.cholesky(stiff))
        except LinAlgError:
            share = max(8 * share, FIRST_SHARE)
            if share > MOST_SHARE:
                raise


def _meetings(owner: Int[Tensor, "l"], owners: int) -> tuple[Int[Tensor, "m"], Int[Tensor, "m"]]:
    """All ordered pairs of links with one owner; `owner` is sorted."""
    count = torch.bincount(owner, minlength=owners)
    first, partners = count.cumsum(0) - count, count[owner]
    one = torch.repeat_interleave(torch.arange(len(owner)), partners)
    within = torch.arange(len(one)) - torch.repeat_interleave(partners.cumsum(0) - partners, partners)
    return one, first[owner[one]] + within

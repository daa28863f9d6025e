"""Pieces of a prior that are sound in themselves and wrong all the same: what lies around contradicts them.

Before one flat wall, or in a fast turn, a few frames have two explanations that fit their own matches equally
well. Only the matches across the piece's border tell them apart.
"""

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from geoweaver.assembly.blocks import unique_pairs

FITTING = 0.5
"""Share of neighbours' matches across a border that must fit; where all is well it is 0.65 and more."""


def contradicted_pieces(
    piece: Int[Tensor, "P 2"],
    rows: Int[Tensor, "P"],
    fitting: Float[Tensor, "P"],
    near: Bool[Tensor, "P"],
    frames: Int[Tensor, "K"],
    least: int,
) -> Bool[Tensor, "K"]:
    """The smaller piece at every broken border, and pieces that only such a one joins to the main part.

    For every pair of frames: their pieces, its matches, the share of them that fits, and whether the two are
    neighbours in time. `frames` counts each piece's; fewer matches than `least` say nothing.
    """
    count, across = len(frames), piece[:, 0] != piece[:, 1]
    piece, rows, fitting, near = piece[across], rows[across], fitting[across], near[across]
    broken = _broken(piece[near], rows[near], fitting[near], count, least)
    smaller = torch.where(frames[broken[:, 0]] <= frames[broken[:, 1]], broken[:, 0], broken[:, 1])
    found = torch.zeros(count, dtype=torch.bool)
    found[smaller] = True
    told = rows >= least
    # pairs far apart in time were judged one by one before they came here
    joined = piece[told & (~near | (fitting >= FITTING)) & ~found[piece].any(1)]
    links = scipy.sparse.coo_matrix((np.ones(len(joined)), joined.T.numpy()), shape=(count, count))
    part = torch.from_numpy(connected_components(links, directed=False)[1].astype(np.int64))
    weight = torch.bincount(part, weights=(frames * ~found).double())
    judged = torch.zeros(count, dtype=torch.bool)
    judged[piece[told].flatten()] = True
    return found | (judged & (part != weight.argmax()))


def _broken(
    piece: Int[Tensor, "P 2"], rows: Int[Tensor, "P"], fitting: Float[Tensor, "P"], count: int, least: int
) -> Int[Tensor, "b 2"]:
    """Pairs of pieces that neighbours in time join with many matches, most of which do not fit."""
    border, which = unique_pairs(piece.amin(1), piece.amax(1), count)
    every, right = (
        torch.zeros(len(border), dtype=torch.float64).index_add_(0, which, x.double())
        for x in (rows, rows * fitting)
    )
    return border[(every >= least) & (right < FITTING * every)]

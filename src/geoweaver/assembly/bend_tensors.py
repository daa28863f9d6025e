"""The sums of fused_bend on tensors of any device: the reference that the compiled ones must agree with."""

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.assembly.kernel import cdf_slope
from geoweaver.assembly.pairs import Normalisation, Objective, PairGeometry, PairMatches
from geoweaver.assembly.residuals import BLOCK, Residual, block_residuals
from geoweaver.geometry.grid import bilinear_nodes


def bend_sums_of_rows(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation, parameters: int,
    frames: int, size: tuple[int, int], nodes: tuple[int, int],
) -> tuple[Float[Tensor, "F K"], Float[Tensor, "F K K"], Float[Tensor, "e K n"]]:  # fmt: skip
    """Gradient and normal matrix of every frame's nodes, and their coupling to each end's pair (e = 2 P)."""
    K, device = nodes[0] * nodes[1], matches.device
    gradient = torch.zeros(frames * K, dtype=torch.float64, device=device)
    normal = torch.zeros(frames * K * K, dtype=torch.float64, device=device)
    mixed = torch.zeros(2 * len(matches) * K, parameters, dtype=torch.float64, device=device)
    ends = ((matches.observation_i, matches.pixel_i), (matches.observation_j, matches.pixel_j))
    for first in range(0, matches.rows, BLOCK):
        rows = slice(first, first + BLOCK)
        pair = matches.pairs_of(rows)
        share = matches.weight[rows].double() * norm.pixels.to(device)[pair]
        flat, _ = block_residuals(matches, geometry, objective, rows, True)
        for second, residual in enumerate(flat):
            frame, pixel = ends[second]
            scale = geometry.affine[pair, 2 * second]
            by_bend, J, pull, stiff = _rows(residual, objective, share, scale, 7 + 2 * second)
            index, part = bilinear_nodes(pixel[rows], size, nodes)
            own = frame.to(device)[pair, None] * K + index
            gradient.index_add_(0, own.flatten(), (part * (pull * by_bend).sum(-1)[:, None]).flatten())
            both = (part[:, :, None] * part[:, None, :]) * (stiff * by_bend.square().sum(-1))[:, None, None]
            place = own[:, :, None] * K + index[:, None, :]
            normal.index_add_(0, place.flatten(), both.flatten())
            across = stiff[:, None] * (by_bend[..., None] * J[..., :parameters]).sum(1)
            where = (2 * pair + second)[:, None] * K + index
            mixed.index_add_(0, where.flatten(), (part[..., None] * across[:, None]).flatten(0, 1))
    return gradient.reshape(frames, K), normal.reshape(frames, K, K), mixed.reshape(-1, K, parameters)


def _rows(
    residual: Residual, objective: Objective, share: Tensor, scale: Tensor, column: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Derivative by log depth, Jacobian, pull and stiffness of one residual of some rows."""
    assert residual.jacobian is not None, "asked for"
    n, kernel = residual.norm(), objective.pixels
    slope = torch.where(residual.usable, share * cdf_slope(n, kernel), torch.zeros_like(n))
    pull = (slope / n.clamp(min=1e-12))[:, None] * residual.value
    by_bend = scale[:, None] * residual.jacobian[..., column]
    return by_bend, residual.jacobian, pull, slope / n.clamp(min=kernel.beta / 2)

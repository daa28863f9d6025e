"""Units: the truth's own, in which its points lie at distance 1, and the one scale s* from guess to truth."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_SAMPLES = 4096
"""Points of a clip that decide on its scale."""
_NEAREST = 0.1
"""Depths below this share of the clip's mean distance weigh no more than there."""


def clip_unit(points: Float[Tensor, "B S H W 3"], valid: Bool[Tensor, "B S H W"]) -> Float[Tensor, "B"]:
    """Mean distance of each clip's known points from their cameras; 1 where none is known."""
    distance = torch.where(valid, points.norm(dim=-1), 0).flatten(1).sum(1)
    count = valid.flatten(1).sum(1)
    return torch.where(count > 0, distance / count.clamp_min(1), 1)


def clip_scale(
    guessed: Float[Tensor, "B S H W 3"],
    truth: Float[Tensor, "B S H W 3"],
    valid: Bool[Tensor, "B S H W"],
) -> Float[Tensor, "B"]:
    """The s* that brings guessed points nearest to the true ones; 1 where nothing decides (Eq. camera_loss).

    It minimises the sum of |s x - y|_1 / depth over coordinates: the weighted median of y / x.
    """
    clips = zip(guessed.flatten(1, 3), truth.flatten(1, 3), valid.flatten(1), strict=True)
    return torch.stack([_scale(x[known], y[known]) for x, y, known in clips])


def _scale(guessed: Float[Tensor, "p 3"], truth: Float[Tensor, "p 3"]) -> Float[Tensor, ""]:
    # every so many-th point: the same bytes on every run and device
    step = max(1, -(-len(guessed) // _SAMPLES))
    x, y = guessed[::step].detach(), truth[::step]
    weight = (1 / y[:, 2:].clamp_min(_NEAREST)) * x.abs()
    sound = (weight > 0) & weight.isfinite()
    x, y, weight = x[sound], y[sound], weight[sound]
    if not len(x):
        return guessed.new_ones(())
    ratio, order = (y / x).sort()
    share = weight[order].double().cumsum(0)
    middle = torch.searchsorted(share, share[-1:] / 2).clamp_max(len(share) - 1)
    scale = ratio[middle[0]]
    return torch.where((scale > 0) & scale.isfinite(), scale, torch.ones_like(scale))

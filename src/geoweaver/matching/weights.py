"""How much a match counts: matcher's score times prior's confidence, made comparable (Eq. match_weight)."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Normalisation = Literal["median", "rank"]

_STEPS = 256
"""Steps of the quantile table: a rank good to 0.4 % and an exact middle entry."""
_MAX_SORTED = 8192
"""Confidences sorted per frame: the median of that many is good to about 1 % of the spread."""


def confidence_quantiles(
    confidence: Float[Tensor, "H W"], known: Bool[Tensor, "H W"]
) -> Float[Tensor, "steps"]:
    """The frame's own confidence distribution where the prior knows a depth: all that normalising needs."""
    values = confidence[known & confidence.isfinite() & (confidence > 0)].double()
    if not len(values):
        return torch.ones(_STEPS + 1, dtype=torch.float64)
    values = values[:: -(-len(values) // _MAX_SORTED)].sort().values
    place = torch.linspace(0, len(values) - 1, _STEPS + 1, dtype=torch.float64)
    below = place.floor().long()
    above = (below + 1).clamp(max=len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def normalised_confidence(
    confidence: Float[Tensor, "n"],
    quantiles: Float[Tensor, "steps"],
    how: Normalisation = "median",
    ceiling: float = 4.0,
) -> Float[Tensor, "n"]:
    """gamma: 1 for the frame's typical pixel whatever the model's scale, 0 where there is no confidence."""
    confidence = torch.nan_to_num(confidence.double(), nan=0.0, posinf=torch.inf, neginf=0.0)
    if how == "median":
        gamma = (confidence / quantiles[len(quantiles) // 2]).clamp(0, ceiling)
    else:
        # the middle of the tied entries, so that a constant confidence is typical everywhere
        first = torch.searchsorted(quantiles, confidence.contiguous())
        last = torch.searchsorted(quantiles, confidence.contiguous(), right=True)
        gamma = (first + last).double() / len(quantiles)
    return torch.where(confidence > 0, gamma, 0)


def match_weight(
    score: Float[Tensor, "n"],
    gamma_i: Float[Tensor, "n"],
    gamma_j: Float[Tensor, "n"],
    known_i: Bool[Tensor, "n"],
    known_j: Bool[Tensor, "n"],
) -> Float[Tensor, "n"]:
    """w_m = s_m sqrt(gamma_i gamma_j), where a side without depth has no say (Eq. match_weight)."""
    both = known_i & known_j
    one = torch.where(known_i, gamma_i, gamma_j)
    gamma = torch.where(both, (gamma_i * gamma_j).sqrt(), one)
    score = torch.nan_to_num(score.double(), nan=0.0, posinf=0.0, neginf=0.0).clamp(min=0)
    return torch.where(known_i | known_j, score * gamma, 0)


def match_probability(weight: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """p(m | i, j) = w_m / sum w of one pair's matches; zeros where nothing has weight (Eq. match_weight)."""
    total = weight.sum()
    return weight / total if total > 0 else torch.zeros_like(weight)

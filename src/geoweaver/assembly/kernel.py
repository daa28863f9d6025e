"""The robust CDF objective (Eqs. residual_schedule to cdf_loss), as a sum over thresholds and in closed form.

With uniform thresholds the sum over l of 1 - F(tau_l) separates over matches, and each match's share is a
midpoint rule for an integral of the logistic: a smoothed, truncated L1 that costs no histogram.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

_ROWS = 16384
"""Matches per block of `weighted_cdf`: bounds its memory to about 100 MB."""


@dataclass(frozen=True)
class Kernel:
    """One residual type's CDF settings (Eq. threshold_grid)."""

    limit: float
    """tau_max: the largest threshold, in the units of the mapped residual."""
    bins: int = 250
    """L: the number of uniform thresholds."""
    bandwidth: float = 2.0
    """kappa: logistic smoothing, in bins."""
    mapping: Literal["identity", "log1p"] = "identity"
    """rho: what is done to a residual before it meets the thresholds."""

    @property
    def step(self) -> float:
        return self.limit / self.bins

    @property
    def beta(self) -> float:
        """Logistic scale (Eq. threshold_grid)."""
        return self.bandwidth * self.step

    def mapped(self, residual: Float[Tensor, "*m"]) -> Float[Tensor, "*m"]:
        """rho(r) (Eq. residual_schedule)."""
        return residual.log1p() if self.mapping == "log1p" else residual

    def slope(self, residual: Float[Tensor, "*m"]) -> Float[Tensor, "*m"]:
        """rho'(r)."""
        return 1 / (1 + residual) if self.mapping == "log1p" else torch.ones_like(residual)


def threshold_loss(residual: Float[Tensor, "*m"], kernel: Kernel) -> Float[Tensor, "*m"]:
    """Each match's share, summed over the thresholds: the reference (Eqs. logistic_smoothing, cdf_loss)."""
    e = kernel.mapped(residual)
    tau = kernel.step * torch.arange(1, kernel.bins + 1, dtype=e.dtype, device=e.device)
    return 1 - torch.sigmoid((tau - e[..., None]) / kernel.beta).mean(-1)


def cdf_loss(residual: Float[Tensor, "*m"], kernel: Kernel) -> Float[Tensor, "*m"]:
    """Each match's share of Eq. cdf_loss in closed form, in [0, 1]."""
    e, beta, half = kernel.mapped(residual), kernel.beta, kernel.step / 2
    rising = softplus((e - half) / beta, threshold=40)
    return beta / kernel.limit * (rising - softplus((e - kernel.limit - half) / beta, threshold=40))


def cdf_slope(residual: Float[Tensor, "*m"], kernel: Kernel) -> Float[Tensor, "*m"]:
    """d cdf_loss / d residual."""
    e, beta, half = kernel.mapped(residual), kernel.beta, kernel.step / 2
    inside = torch.sigmoid((e - half) / beta) - torch.sigmoid((e - kernel.limit - half) / beta)
    return inside / kernel.limit * kernel.slope(residual)


def curvature(residual: Float[Tensor, "*m"], kernel: Kernel) -> Float[Tensor, "*m"]:
    """Weight of r^2/2 in the quadratic that touches the loss at r and lies above it."""
    return cdf_slope(residual, kernel) / residual.clamp(min=kernel.beta / 2)


def weighted_cdf(
    residual: Float[Tensor, "m"], weight: Float[Tensor, "m"], kernel: Kernel
) -> Float[Tensor, "bins"]:
    """F(tau_l) over all matches (Eq. weighted_cdf), block by block so that memory stays bounded."""
    tau = kernel.step * torch.arange(1, kernel.bins + 1, dtype=torch.float64, device=residual.device)
    total = torch.zeros_like(tau)
    for first in range(0, len(residual), _ROWS):
        rows = slice(first, first + _ROWS)
        e = kernel.mapped(residual[rows].double())
        total += weight[rows].double() @ torch.sigmoid((tau - e[:, None]) / kernel.beta)
    return total / (weight.double().sum() + 1e-12)

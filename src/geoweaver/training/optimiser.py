"""AdamW with one learning rate for the encoder and one for the heads, both on a cosine."""

import math

import torch
from torch import nn

from geoweaver.models import GPM
from geoweaver.training.settings import TrainConfig

_UNTRAINED = ("cam_enc.", "_aux")
"""The encoder of known cameras and the ray branch: no term of the loss sees them."""


def freeze_untrained(network: GPM) -> None:
    """Parameters that no loss reaches keep their values."""
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(not any(part in name for part in _UNTRAINED))


def make_optimiser(network: GPM, config: TrainConfig) -> torch.optim.AdamW:
    """Four groups: encoder and heads, each with and without decay (biases, norms, gains)."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((name.startswith("backbone."), parameter.ndim > 1), []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "lr": 0.0,
                "peak": config.encoder_rate if encoder else config.head_rate,
                "weight_decay": config.weight_decay if decays else 0.0,
            }
            for (encoder, decays), parameters in groups.items()
        ],
        betas=config.betas,
    )


def set_rates(optimiser: torch.optim.Optimizer, config: TrainConfig, step: int) -> float:
    """Give every group its learning rate of a step; returns the share of the peak."""
    share = rate_share(config, step)
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * share
    return share


def rate_share(config: TrainConfig, step: int) -> float:
    """A straight rise, then half a cosine down to 0 at the last iteration."""
    rise = round(config.warmup * config.iterations)
    if step < rise:
        return (step + 1) / (rise + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, config.iterations - rise)))

"""Matches from a dense warp between two images: both ways, checked against each other, sampled by weight.

Warps count in [-1, 1] from border to border, as torch's grid_sample without aligned corners: our (0, 0) is
(-1, -1), and the first pixel's centre is half a pixel inside.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.errors import ConfigError
from geoweaver.matching.masked import usable_at


@dataclass(frozen=True)
class WarpConfig:
    """Which pixels of a warp become matches."""

    max_matches: int = 5000
    """Matches per pair, both directions together."""
    min_certainty: float = 0.2
    """Pixels less certain than this are left out."""
    max_cycle: float = 0.01
    """There and back again must end within this distance, in units of half the image."""
    min_visible: float = 0.05
    """Share of the pixels that must be left, of both directions, or the pair is rejected whole."""

    def __post_init__(self) -> None:
        if self.max_matches < 1 or not (0 <= self.min_certainty < 1 and self.max_cycle > 0):
            raise ConfigError(
                "dense matches: need max_matches >= 1, 0 <= min_certainty < 1 and max_cycle > 0"
            )
        if not 0 <= self.min_visible < 1:
            raise ConfigError(f"dense matches: need 0 <= min_visible < 1, not {self.min_visible}")


@dataclass(frozen=True)
class Warp:
    """Where each image's pixels lie in the other, and how certain that is."""

    j_from_i: Float[Tensor, "H W 2"]
    certainty_i: Float[Tensor, "H W"]
    i_from_j: Float[Tensor, "h w 2"]
    certainty_j: Float[Tensor, "h w"]


@dataclass(frozen=True)
class WarpMatches:
    """Matches of one pair in pixels of its images; none where it is rejected."""

    pixel_i: Float[Tensor, "n 2"]
    pixel_j: Float[Tensor, "n 2"]
    score: Float[Tensor, "n"]

    def __len__(self) -> int:
        return len(self.score)


def no_matches() -> WarpMatches:
    nowhere = torch.zeros(0, 2, dtype=torch.float64)
    return WarpMatches(nowhere, nowhere, nowhere[:, 0])


def sample_warp(
    warp: Warp,
    size_i: tuple[int, int],
    size_j: tuple[int, int],
    rng: np.random.Generator,
    config: WarpConfig,
    mask_i: Bool[np.ndarray, "H W"] | None = None,
    mask_j: Bool[np.ndarray, "h w"] | None = None,
) -> WarpMatches:
    """A weighted sample without replacement of the certain, consistent pixels; the raw certainty is s_m."""
    there = _direction(warp.j_from_i, warp.certainty_i, warp.i_from_j, config)
    back = _direction(warp.i_from_j, warp.certainty_j, warp.j_from_i, config)
    place_i, place_j = torch.cat([there[0], back[1]]), torch.cat([there[1], back[0]])
    weight = torch.cat([there[2], back[2]])
    pixel_i, pixel_j = to_pixels(place_i, size_i), to_pixels(place_j, size_j)
    usable = usable_at(mask_i, pixel_i) & usable_at(mask_j, pixel_j) & (weight > 0)
    if float(usable.double().mean()) < config.min_visible:
        return no_matches()
    chosen = _weighted_order(torch.where(usable, weight, 0), rng)[: config.max_matches]
    chosen = chosen[weight[chosen].argsort(descending=True, stable=True)]
    return WarpMatches(pixel_i[chosen], pixel_j[chosen], weight[chosen])


def _weighted_order(weight: Float[Tensor, "n"], rng: np.random.Generator) -> Int[Tensor, "k"]:
    """An order whose first k rows are a weighted sample without replacement (Gumbel's trick)."""
    key = weight.log() + torch.from_numpy(rng.gumbel(size=len(weight)))
    order = key.argsort(descending=True, stable=True)
    return order[weight[order] > 0]


def _direction(
    warp: Float[Tensor, "H W 2"],
    certainty: Float[Tensor, "H W"],
    back: Float[Tensor, "h w 2"],
    config: WarpConfig,
) -> tuple[Float[Tensor, "n 2"], Float[Tensor, "n 2"], Float[Tensor, "n"]]:
    """Every pixel of one image, its place in the other, and its certainty: 0 where the warps disagree."""
    start = centres(warp.shape[1], warp.shape[0])
    again = _read(back.double(), warp.double())
    inside = (warp.abs() <= 1).all(-1) & warp.isfinite().all(-1)
    sound = inside & ((again - start).norm(dim=-1) <= config.max_cycle) & (certainty >= config.min_certainty)
    weight = torch.where(sound, certainty.double(), 0).clamp(0, 1)
    return start.reshape(-1, 2), warp.double().reshape(-1, 2), weight.flatten()


def centres(width: int, height: int) -> Float[Tensor, "H W 2"]:
    """Pixel centres of a grid in [-1, 1]."""
    y, x = torch.meshgrid(
        (2 * torch.arange(height, dtype=torch.float64) + 1) / height - 1,
        (2 * torch.arange(width, dtype=torch.float64) + 1) / width - 1,
        indexing="ij",
    )
    return torch.stack([x, y], -1)


def to_pixels(place: Float[Tensor, "n 2"], size: tuple[int, int]) -> Float[Tensor, "n 2"]:
    """Pixels of an image of (width, height) from places in [-1, 1]."""
    return (place + 1) / 2 * place.new_tensor(size)


def _read(field: Float[Tensor, "h w 2"], at: Float[Tensor, "H W 2"]) -> Float[Tensor, "H W 2"]:
    """A field between its pixels."""
    found = torch.nn.functional.grid_sample(
        field.permute(2, 0, 1)[None], at[None], align_corners=False, padding_mode="border"
    )
    return found[0].permute(1, 2, 0)

"""Wrong matches of a simulated matcher: patches moved together, repeated texture, strays,
and places taken for others."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.synth.simulated_noise import MatchNoise
from geoweaver.synth.simulated_truth import stream

PATCHES = 2
"""Patches of structured outliers per edge."""
_PERIOD_FRAMES = 30
"""Frames that share the period of a repeated texture."""


@dataclass(frozen=True)
class EdgeDraws:
    """All the random numbers of a block of edges: they depend on (seed, i, j) alone, never on the block."""

    sample: Float[Tensor, "e n 8"]
    """Uniform: pixel_i (2), occlusion, tail, unstructured, honesty, stray pixel (2)."""
    normal: Float[Tensor, "e n 3"]
    """Pixel noise (2), score noise."""
    edge: Float[Tensor, "e 13"]
    """Uniform: strength, share of structured and unstructured, then per patch centre (2), length,
    direction, repeated."""
    wave: Float[Tensor, "e 8 5"]
    """Normal: frequency (2), amplitude (2) and phase of the smooth noise."""
    period: Float[Tensor, "e 2"]
    """Uniform: length and direction of the repeated texture's period around the edge's first frame."""


def draw(edges: Int[Tensor, "e 2"], samples: int, seed: int) -> EdgeDraws:
    """The random numbers of these edges."""
    e = len(edges)
    sample, normal = np.empty((e, samples, 8)), np.empty((e, samples, 3))
    edge, wave, period = np.empty((e, 3 + 5 * PATCHES)), np.empty((e, 8, 5)), np.empty((e, 2))
    for row, (i, j) in enumerate(edges.tolist()):
        rng = stream(seed, "match", i, j)
        edge[row] = rng.random(edge.shape[1])
        wave[row] = rng.standard_normal((8, 5))
        sample[row] = rng.random((samples, 8))
        normal[row] = rng.standard_normal((samples, 3))
        period[row] = stream(seed, "period", i // _PERIOD_FRAMES).random(2)
    return EdgeDraws(*map(torch.from_numpy, (sample, normal, edge, wave, period)))


def borrowed_frame(edges: Int[Tensor, "e 2"], frames: int, seed: int) -> Int[Tensor, "e"]:
    """The frame near i whose view a wrong pair (i, j) takes for j's: the same step for all pairs of a run."""
    step = [int(stream(seed, "borrowed", j - i).integers(2, 9)) for i, j in edges.tolist()]
    ahead = edges[:, 0] + torch.tensor(step, dtype=torch.int64)
    return torch.where(ahead < frames, ahead, edges[:, 0] - torch.tensor(step, dtype=torch.int64)).clamp_min(
        0
    )


def borrowed_warp(edges: Int[Tensor, "e 2"], noise: MatchNoise, seed: int) -> Float[Tensor, "e 2 3"]:
    """The similarity that fits a borrowed view into j's image (about its centre, shift in image widths);
    one per run."""
    warps = []
    for i, j in edges.tolist():
        turn, zoom, dx, dy = stream(seed, "warp", j - i).uniform(-1, 1, 4)
        angle, scale = math.radians(noise.wrong_turn) * turn, math.exp(0.15 * zoom)
        c, s = scale * math.cos(angle), scale * math.sin(angle)
        warps.append([[c, -s, 0.1 * dx], [s, c, 0.1 * dy]])
    return torch.tensor(warps, dtype=torch.float64).reshape(-1, 2, 3)


def smooth_noise(
    wave: Float[Tensor, "e 8 5"], row: Int[Tensor, "m"], pixel: Float[Tensor, "m 2"], length: float
) -> Float[Tensor, "m 2"]:
    """A field of variance 1 and this correlation length over the first image, one per edge."""
    w = wave[row]
    angle = (w[..., :2] / length * pixel[:, None]).sum(-1) + 10 * w[..., 4]
    return math.sqrt(2 / wave.shape[1]) * (angle.cos()[..., None] * w[..., 2:4]).sum(1)


def structured(
    draws: EdgeDraws,
    row: Int[Tensor, "m"],
    pixel: Float[Tensor, "m 2"],
    target: Float[Tensor, "m 2"],
    noise: MatchNoise,
    size: tuple[int, int],
) -> tuple[Float[Tensor, "m 2"], Bool[Tensor, "m"]]:
    """A common affine shift for each patch, and which matches are in one;
    `row` (sorted) is each match's edge."""
    extent = torch.tensor(size, dtype=torch.float64)
    patch = draws.edge[:, 3:].reshape(-1, PATCHES, 5)
    centre = patch[..., :2] * extent
    distance = (pixel[:, None] - centre[row]).norm(dim=-1)
    nearest, mine = distance.min(-1)
    share = noise.structured * (0.5 + draws.edge[:, 1])
    hit = _rank(row, nearest) < (share[row] * _count(row, len(draws.edge))[row])
    shift = _shift(draws, patch, noise, size[0])[row, mine]
    # towards the image's middle, so that the patch stays inside
    inward = ((extent / 2 - target) * shift).sum(-1)
    side = _group_sum(row * PATCHES + mine, inward, len(draws.edge) * PATCHES)[row * PATCHES + mine].sign()
    stretch = 0.08 * (patch[row, mine, 2:3] - 0.5) * (pixel - centre[row, mine])
    return side[:, None] * shift + stretch, hit


def _shift(draws: EdgeDraws, patch: Tensor, noise: MatchNoise, width: int) -> Float[Tensor, "e p 2"]:
    """Each patch's displacement: anywhere, or the period of the texture around the edge's first frame."""
    own = torch.stack([0.03 + 0.12 * patch[..., 2], 2 * math.pi * patch[..., 3]], -1)
    # repeated texture is mostly horizontal: windows, bricks, planks
    period = torch.stack([0.03 + 0.08 * draws.period[:, 0], 0.5 * (draws.period[:, 1] - 0.5)], -1)
    polar = torch.where((patch[..., 4] < noise.repeated)[..., None], period[:, None], own)
    return width * polar[..., :1] * torch.stack([polar[..., 1].cos(), polar[..., 1].sin()], -1)


def _rank(row: Int[Tensor, "m"], key: Float[Tensor, "m"]) -> Int[Tensor, "m"]:
    """Place of each match among its edge's matches by rising key; `row` is sorted."""
    order = torch.from_numpy(np.lexsort((key.numpy(), row.numpy())))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return place - torch.searchsorted(row, row)


def _count(row: Int[Tensor, "m"], rows: int) -> Int[Tensor, "e"]:
    return torch.bincount(row, minlength=rows)


def _group_sum(group: Int[Tensor, "m"], value: Float[Tensor, "m"], groups: int) -> Float[Tensor, "g"]:
    return torch.zeros(groups, dtype=value.dtype).index_add_(0, group, value)

"""Depth errors of a simulated prior, and the confidence that knows of most of them."""

import numpy as np
import torch
import torch.nn.functional as nnf
from jaxtyping import Bool, Float
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

from geoweaver.synth.simulated_noise import PriorNoise
from geoweaver.synth.simulated_truth import stream

REGION = 1 / 7
"""Share of the image that a confidently wrong region covers."""
_CONFIDENT_AT, _FLOOR = 0.03, 0.005
"""Relative error at which confidence is 1 + e, and the error below which it grows no further (about 18)."""
_LEAST_SHARE = 0.1
"""Depth never falls below this share of the truth, whatever the shift."""


def predicted_depth(
    true: Float[Tensor, "n H W"], noise: PriorNoise, seed: int, chunk: int
) -> tuple[Float[Tensor, "n H W"], Float[Tensor, "n H W"]]:
    """Depth with every error of the model (0 = unknown) and its confidence (> 1),
    both in the unit of `true`."""
    known = _flying(_affine(true, noise, seed, chunk), true, noise, seed, chunk)
    fine = stream(seed, "fine", chunk).standard_normal(true.shape, dtype=np.float32)
    smooth = _error_field("smooth", noise.smooth, true, noise, seed, chunk)
    known = known * torch.exp(smooth + noise.fine * torch.from_numpy(fine))
    valid = (true > 0) & ~_blobs("invalid", true, noise.invalid, noise, seed, chunk)
    depth = torch.where(valid, known * _confidently_wrong(true, noise, seed, chunk).exp(), 0)
    return depth, _confidence(known, true, valid, noise, seed, chunk)


def smooth_field(
    rng: np.random.Generator, shape: tuple[int, int, int], cells: int, frames: float
) -> Float[Tensor, "n H W"]:
    """Random fields of variance 1: `cells` control points along the width, alike over so many frames."""
    n, height, width = shape
    rows = max(2, round(cells * height / width))
    margin = 2 * round(frames)  # so that the ends vary like the middle
    white = rng.standard_normal((n + 2 * margin, rows + 2, cells + 2))
    grid = gaussian_filter1d(white, frames / 2, axis=0)[margin : margin + n]
    coarse = torch.from_numpy(grid.astype(np.float32))[:, None]
    field = nnf.interpolate(coarse, size=(height, width), mode="bicubic", align_corners=True)[:, 0]
    return field / field.square().mean().sqrt()


def _error_field(
    name: str, size: float, true: Tensor, noise: PriorNoise, seed: int, chunk: int
) -> Float[Tensor, "n H W"]:
    """This effect's smooth field, of standard deviation `size`."""
    if size == 0:
        return torch.zeros_like(true)
    n, height, width = true.shape
    rng = stream(seed, name, chunk)
    return size * smooth_field(rng, (n, height, width), noise.smooth_cells, noise.smooth_frames)


def _affine(true: Tensor, noise: PriorNoise, seed: int, chunk: int) -> Float[Tensor, "n H W"]:
    """a d + b with b relative to the frame's median depth."""
    a, b = stream(seed, "affine", chunk).standard_normal((2, len(true))).astype(np.float32)
    median = torch.stack([d[d > 0].median() if (d > 0).any() else d.new_zeros(()) for d in true])
    scale = torch.from_numpy(np.exp(noise.depth_scale * a))
    shift = noise.depth_shift * torch.from_numpy(b) * median
    return torch.maximum(scale[:, None, None] * true + shift[:, None, None], _LEAST_SHARE * true)


def _flying(depth: Tensor, true: Tensor, noise: PriorNoise, seed: int, chunk: int) -> Float[Tensor, "n H W"]:
    """Some pixels beside a depth edge hang anywhere between its near and its far side."""
    if noise.flying == 0:
        return depth
    chance, where = torch.from_numpy(stream(seed, "flying", chunk).random((2, *true.shape), dtype=np.float32))
    edge, near, far = depth_edges(true, noise.edge_ratio)
    between = near * (far / near) ** where
    hit = edge & (chance < noise.flying)
    return torch.where(hit, depth * (between / true), depth)


def depth_edges(
    depth: Float[Tensor, "n H W"], ratio: float
) -> tuple[Bool[Tensor, "n H W"], Float[Tensor, "n H W"], Float[Tensor, "n H W"]]:
    """Valid pixels with a relative depth step above `ratio` within 3 x 3, and the near and far side of it."""
    solid = torch.where(depth > 0, depth, torch.inf)
    far = nnf.max_pool2d(depth[:, None], 3, 1, 1)[:, 0]
    near = -nnf.max_pool2d(-solid[:, None], 3, 1, 1)[:, 0]
    return (depth > 0) & (far > near * (1 + ratio)), near, far


def _blobs(
    name: str, true: Tensor, share: float, noise: PriorNoise, seed: int, chunk: int
) -> Bool[Tensor, "n H W"]:
    """Blobs that cover this share of each frame."""
    covered = round(share * true[0].numel())
    if covered == 0:
        return torch.zeros(true.shape, dtype=torch.bool)
    field = _error_field(name, 1.0, true, noise, seed, chunk).flatten(1)
    least = field.kthvalue(field.shape[1] - covered + 1, dim=1).values
    return (field >= least[:, None]).reshape(true.shape)


def _confidently_wrong(true: Tensor, noise: PriorNoise, seed: int, chunk: int) -> Float[Tensor, "n H W"]:
    """Log-depth error that the confidence knows nothing of: whole frames, and regions of others."""
    rng = stream(seed, "wrong", chunk)
    n = len(true)
    chance, size = rng.random((2, n)), rng.choice([-1, 1], (2, n)) * rng.uniform(0.5, 1, (2, n))
    share = np.array([[noise.wrong_frames], [noise.wrong_regions]])
    frame, region = torch.from_numpy(np.where(chance < share, noise.wrong_size * size, 0).astype(np.float32))
    inside = _blobs("wrong", true, REGION * bool(region.any()), noise, seed, chunk)
    return torch.add(frame[:, None, None], region[:, None, None] * inside)


def _confidence(
    known: Tensor, true: Tensor, valid: Tensor, noise: PriorNoise, seed: int, chunk: int
) -> Float[Tensor, "n H W"]:
    """1 + exp(...), falling with the mean relative error of 3 x 3 pixels; lowest where there is no depth."""
    error = torch.where(valid, (known / true.clamp_min(1e-30) - 1).abs(), 1)
    local = nnf.avg_pool2d(error[:, None], 3, 1, 1, count_include_pad=False)[:, 0]
    logit = 1 - ((local + _FLOOR) / (_CONFIDENT_AT + _FLOOR)).log()
    blur = _error_field("confidence", noise.confidence_noise, true, noise, seed, chunk)
    return torch.exp(logit + blur) + 1

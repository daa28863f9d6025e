"""Dense matches between exact frames as a matcher would give them: noise, outliers, fakes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Matches, ViewGraph
from geoweaver.synth.simulated_noise import MatchNoise
from geoweaver.synth.simulated_outliers import (
    EdgeDraws,
    borrowed_frame,
    borrowed_warp,
    draw,
    smooth_noise,
    structured,
)
from geoweaver.synth.simulated_truth import SceneTruth, in_image, projected, seen_points, visible

__all__ = ["LabelledMatches", "MatchLabel", "MatchNoise", "simulate_labelled_matches", "simulate_matches"]

_OVERSAMPLE = 1.5
"""Pixels tried per match wanted: an edge that shares two thirds of its view is full,
others have fewer matches."""
_BLOCK_RAYS = 400_000
"""Rays of one block of edges: bounds the memory; the matches do not depend on it."""
_SURE_BELOW = 2.0
"""Error (px in 512) at which an honest score is one half."""


class MatchLabel(IntEnum):
    """What a simulated match really is."""

    TRUE = 0
    STRUCTURED = 1
    UNSTRUCTURED = 2
    OCCLUDED = 3
    """Right in the second image, but something else is seen there."""
    BORROWED = 4
    """Of a wrong pair: the second frame sees another place."""


@dataclass(frozen=True)
class LabelledMatches:
    """Matches, and what they really are."""

    matches: Matches
    label: Int[Tensor, "M"]


@dataclass(frozen=True)
class _Rows:
    """Matches of a block before they err: the row of the draws, the sample in it, and the exact geometry."""

    row: Int[Tensor, "m"]
    sample: Int[Tensor, "m"]
    pixel: Float[Tensor, "m 2"]
    target: Float[Tensor, "m 2"]
    hidden: Bool[Tensor, "m"]
    difficulty: Float[Tensor, "m"]
    """Parallax in units of 30 degrees plus the distance ratio in powers of two."""


def simulate_matches(
    truth: SceneTruth,
    graph: ViewGraph,
    noise: MatchNoise,
    seed: int,
    per_edge: int = 500,
    wrong: Bool[Tensor, "E"] | None = None,
) -> Matches:
    """At most `per_edge` matches for every edge; edges marked `wrong` get a fake that is consistent in
    itself."""
    return simulate_labelled_matches(truth, graph, noise, seed, per_edge, wrong).matches


def simulate_labelled_matches(
    truth: SceneTruth,
    graph: ViewGraph,
    noise: MatchNoise,
    seed: int,
    per_edge: int = 500,
    wrong: Bool[Tensor, "E"] | None = None,
) -> LabelledMatches:
    """The same, with what each match really is; an edge's matches depend on (seed, i, j) alone."""
    wrong = torch.zeros(len(graph), dtype=torch.bool) if wrong is None else wrong
    samples = math.ceil(_OVERSAMPLE * per_edge)
    blocks = [
        _block(truth, graph.edges[rows], wrong[rows], rows, noise, seed, per_edge, samples)
        for rows in _runs(len(graph), max(1, _BLOCK_RAYS // samples))
    ]
    edge, pixel_i, pixel_j, score, label = (torch.cat(column) for column in zip(*blocks, strict=True))
    return LabelledMatches(Matches(edge, pixel_i, pixel_j, score), label)


def _runs(total: int, length: int) -> Iterator[Int[Tensor, "e"]]:
    return (torch.arange(at, min(at + length, total)) for at in range(0, max(total, 1), length))


def _block(
    truth: SceneTruth,
    edges: Int[Tensor, "e 2"],
    wrong: Bool[Tensor, "e"],
    number: Int[Tensor, "e"],
    noise: MatchNoise,
    seed: int,
    per_edge: int,
    samples: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Columns (edge, pixel_i, pixel_j, score, label) of a block of edges."""
    draws = draw(edges, samples, seed)
    rows = _exact_rows(truth, edges, wrong, draws, noise, seed, per_edge)
    pixel_j, seen_error, label = _erring(rows, draws, wrong, noise, truth.size)
    score = _score(seen_error, draws.normal[rows.row, rows.sample, 2], noise)
    keep = in_image(pixel_j, truth.size)
    return number[rows.row][keep], rows.pixel[keep], pixel_j[keep], score[keep], label[keep]


def _exact_rows(
    truth: SceneTruth,
    edges: Tensor,
    wrong: Tensor,
    draws: EdgeDraws,
    noise: MatchNoise,
    seed: int,
    per_edge: int,
) -> _Rows:
    """Random pixels of i whose point j sees (or would see but for an occluder),
    at most `per_edge` of each edge."""
    e, n = draws.sample.shape[:2]
    size = torch.tensor(truth.size, dtype=torch.float64)
    pixel = (draws.sample[..., :2] * size).reshape(-1, 2)
    j = torch.where(wrong, borrowed_frame(edges, len(truth), seed), edges[:, 1])
    i, j = edges[:, 0].repeat_interleave(n), j.repeat_interleave(n)
    points, depth = seen_points(truth, i, pixel)
    target, inside = projected(truth, j, points)
    inside &= depth > 0
    seen = inside.clone()
    seen[inside] = visible(truth, j[inside], points[inside])
    hidden = inside & ~seen & (draws.sample[..., 2].reshape(-1) < noise.occluded)
    target = _warped(target, borrowed_warp(edges, noise, seed), wrong, n, size)
    keep = ((seen | hidden) & in_image(target, truth.size)).reshape(e, n)
    least = torch.where(wrong, noise.wrong_strength + (1 - noise.wrong_strength) * draws.edge[:, 0], 1)
    keep &= keep.cumsum(-1) <= (least * per_edge).ceil()[:, None]
    row, sample = keep.nonzero(as_tuple=True)
    flat = keep.reshape(-1)
    difficulty = _difficulty(truth, i[flat], j[flat], points[flat])
    return _Rows(row, sample, pixel[flat], target[flat], hidden[flat], difficulty)


def _warped(target: Tensor, warp: Tensor, wrong: Tensor, n: int, size: Tensor) -> Float[Tensor, "m 2"]:
    """Targets of wrong pairs, moved by their similarity about the image's middle."""
    centred = (target - size / 2).reshape(len(warp), n, 2)
    moved = centred @ warp[..., :2].mT + size[0] * warp[:, None, :, 2] + size / 2
    return torch.where(wrong[:, None, None], moved, centred + size / 2).reshape(-1, 2)


def _difficulty(truth: SceneTruth, i: Tensor, j: Tensor, points: Tensor) -> Float[Tensor, "m"]:
    a = points - truth.cam_from_world[i].centre
    b = points - truth.cam_from_world[j].centre
    parallax = torch.atan2(torch.linalg.cross(a, b).norm(dim=-1), (a * b).sum(-1))
    ratio = torch.linalg.vector_norm(a, dim=-1) / torch.linalg.vector_norm(b, dim=-1)
    return torch.add(parallax / math.radians(30), ratio.log2().abs())


def _erring(
    rows: _Rows, draws: EdgeDraws, wrong: Tensor, noise: MatchNoise, size: tuple[int, int]
) -> tuple[Float[Tensor, "m 2"], Float[Tensor, "m"], Int[Tensor, "m"]]:
    """Matched pixels in j, the error (px in 512) that the score knows of, and what each match is."""
    uniform, px = draws.sample[rows.row, rows.sample], size[0] / 512
    error = px * _pixel_noise(rows, draws, uniform, noise, px)
    shift, in_patch = structured(draws, rows.row, rows.pixel, rows.target, noise, size)
    share = noise.unstructured * (0.5 + draws.edge[:, 2]) / max(1 - noise.structured, 1e-9)
    stray = ~in_patch & (uniform[:, 4] < share[rows.row])
    anywhere = uniform[:, 6:8] * torch.tensor(size, dtype=torch.float64)
    pixel = rows.target + error + torch.where(in_patch[:, None], shift, 0)
    pixel = torch.where(stray[:, None], anywhere, pixel)
    honest = uniform[:, 5] < torch.where(in_patch, 0.5, 1) * noise.honest
    seen = torch.where((in_patch | stray) & ~honest, error.norm(dim=-1), (pixel - rows.target).norm(dim=-1))
    return pixel, seen / px, _label(rows, wrong, in_patch, stray)


def _pixel_noise(
    rows: _Rows, draws: EdgeDraws, uniform: Tensor, noise: MatchNoise, px: float
) -> Float[Tensor, "m 2"]:
    """Noise in pixels of a 512 wide image: partly a smooth field, with a heavy tail,
    growing with difficulty."""
    white = draws.normal[rows.row, rows.sample, :2]
    smooth = smooth_noise(draws.wave, rows.row, rows.pixel / px, noise.correlation)
    size = (
        noise.sigma * (1 + noise.growth * rows.difficulty) * torch.where(uniform[:, 3] < noise.tail, 4.0, 1.0)
    )
    return size[:, None] * (math.sqrt(1 - noise.correlated) * white + math.sqrt(noise.correlated) * smooth)


def _label(rows: _Rows, wrong: Tensor, in_patch: Tensor, stray: Tensor) -> Int[Tensor, "m"]:
    label = torch.where(rows.hidden, MatchLabel.OCCLUDED, MatchLabel.TRUE)
    label = torch.where(in_patch, MatchLabel.STRUCTURED, label)
    label = torch.where(stray, MatchLabel.UNSTRUCTURED, label)
    return torch.where(wrong[rows.row], MatchLabel.BORROWED, label)


def _score(error: Float[Tensor, "m"], normal: Float[Tensor, "m"], noise: MatchNoise) -> Float[Tensor, "m"]:
    """In (0, 1): one half at `_SURE_BELOW` pixels, falling with the error, blurred by `score_noise`."""
    logit = 1.5 * math.log(_SURE_BELOW) - 1.5 * (error + 0.1).log()
    return (logit + noise.score_noise * normal).sigmoid()

"""Where cameras tear: steps between neighbours that their matches contradict, sampled or not.

What the optimiser sees was sampled to agree with a prior's depth: where a piece is wrong, only matches that
agree with it are left. All matches of a pair can be held against epipolar lines, which need no depth; how
many could agree at all, a motion of the pair's own tells.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Matches
from geoweaver.geometry import SE3
from geoweaver.geometry.epipolar import calibrated_inliers, epipolar_distance, fundamental_matrix

_MOST_ROWS = 200
"""Matches of a pair that are looked at, spread over all of them."""


@dataclass(frozen=True)
class TearConfig:
    """When matches contradict a step; ratios all."""

    tolerance: float = 0.003
    """Distance from the epipolar line, as a share of the image diagonal, up to which a match agrees."""
    share: float = 0.6
    """Of the matches across a cut that could agree, so many must; where all is well 0.75 and more do, at a
    wrong step hardly any. 0: no step is judged."""
    reach: int = 4
    """Frames so many steps apart at most are neighbours."""
    least: int = 20
    """Matches below which nothing is told."""


@dataclass(frozen=True)
class Evidence:
    """Of each edge: matches that a motion of its own explains, and how many of so many the cameras do."""

    possible: Int[Tensor, "E"]
    agreeing: Int[Tensor, "E"]


def gather_evidence(
    edges: Int[Tensor, "E 2"],
    matches: Matches,
    cam_from_world: SE3,
    intrinsics: Float[Tensor, "F 4"],
    size: tuple[int, int],
    config: TearConfig,
) -> Evidence:
    """Every edge's matches held against the cameras."""
    tolerance = config.tolerance * float(np.hypot(*size))
    bounds = torch.searchsorted(matches.edge, torch.arange(len(edges) + 1)).tolist()
    rotation, translation = cam_from_world.rotation.numpy(), cam_from_world.translation.numpy()
    K = intrinsics.numpy()
    out = torch.zeros(2, len(edges), dtype=torch.long)
    for edge, (i, j) in enumerate(edges.tolist()):
        start, stop = bounds[edge : edge + 2]
        rows = slice(start, stop, max(1, (stop - start) // _MOST_ROWS))
        left, right = (x[rows].double().numpy() for x in (matches.pixel_i, matches.pixel_j))
        turn = rotation[j] @ rotation[i].T
        F = fundamental_matrix(turn, translation[j] - turn @ translation[i], K[i], K[j])
        out[:, edge] = torch.tensor(_tally(F, left, right, K[[i, j]], tolerance, config.share))
    return Evidence(out[0], out[1])


def _tally(
    F: Float[np.ndarray, "3 3"],
    left: Float[np.ndarray, "m 2"],
    right: Float[np.ndarray, "m 2"],
    lenses: Float[np.ndarray, "2 4"],
    tolerance: float,
    share: float,
) -> tuple[int, int]:
    """Matches that could agree, and those that do."""
    found = int((epipolar_distance(F, left, right) <= tolerance).sum())
    if found >= share * len(left):
        return len(left), found
    # wrong matches agree with no motion at all: they do not speak against this one
    return max(found, int(calibrated_inliers(left, right, lenses[0], lenses[1], tolerance).sum())), found


def torn_frames(
    edges: Int[Tensor, "E 2"],
    far: Bool[Tensor, "E"],
    evidence: Evidence,
    group: Int[Tensor, "F"],
    tied: Bool[Tensor, "F"],
    config: TearConfig,
) -> Bool[Tensor, "F"]:
    """Which tied frames no agreeing matches join to the largest part.

    Along time frames hang together where neighbours' matches across a cut agree with the cameras; what is
    torn there is joined where all matches between two parts agree. Edges between frames `far` apart are
    claims: those that do not agree say nothing, and one alone joins nothing.
    """
    run, near = torch.full((len(group),), -1), torch.zeros_like(far)
    for camera in torch.unique(group[tied]).tolist():
        own = (tied & (group == camera)).nonzero().squeeze(1)
        place = torch.full((len(group),), -1)
        place[own] = torch.arange(len(own))
        ends = place[edges]
        mine = (ends >= 0).all(1) & ~far & (ends.diff(dim=1).abs().squeeze(1) <= config.reach)
        every, right = (
            _across(ends[mine], x[mine], len(own)) for x in (evidence.possible, evidence.agreeing)
        )
        torn = ~_agree(every, right, config)
        torn[0] = False
        run[own] = int(run.max()) + 1 + torn.cumsum(0)
        near |= mine
    told = (tied[edges].all(1)) & (near | _agree(evidence.possible, evidence.agreeing, config))
    weight = torch.stack([evidence.possible, evidence.agreeing, 1 + near.long()], 1)
    part = _joined(run, edges[told], weight[told], config)
    return tied & (part != torch.bincount(part[tied]).argmax()) if bool(tied.any()) else tied


def _joined(
    part: Int[Tensor, "F"], edges: Int[Tensor, "e 2"], weight: Int[Tensor, "e 3"], config: TearConfig
) -> Int[Tensor, "F"]:
    """Parts merged, the best joined first, as long as the matches between some two of them agree.

    For every edge: matches that could agree, that do, and 2 for neighbours, 1 for a claim; two are needed.
    """
    while True:
        ends = part[edges].sort(1).values
        apart = ends[:, 0] != ends[:, 1]
        pair, which = torch.unique(ends[apart], dim=0, return_inverse=True)
        sums = torch.zeros(len(pair), 3, dtype=torch.long).index_add_(0, which, weight[apart])
        every, right, support = sums.unbind(1)
        right = torch.where(_agree(every, right, config) & (support >= 2), right, 0)
        if not bool(right.any()):
            return part
        keep, gone = pair[right.argmax()].tolist()
        part = torch.where(part == gone, keep, part)


def contradicted_alone(
    edges: Int[Tensor, "E 2"],
    evidence: Evidence,
    asked: Bool[Tensor, "F"],
    trusted: Bool[Tensor, "F"],
    config: TearConfig,
) -> Bool[Tensor, "F"]:
    """Which frames, of those asked about, matches with trusted ones contradict; the worst goes first."""
    out = torch.zeros_like(asked)
    while True:
        kept = trusted & ~out
        told = kept[edges].all(1)
        every, right = (
            torch.zeros(len(asked), dtype=torch.long).index_add_(
                0, edges[told].flatten(), x[told].repeat_interleave(2)
            )
            for x in (evidence.possible, evidence.agreeing)
        )
        wrong = asked & kept & (every >= config.least) & (right < config.share * every)
        if not bool(wrong.any()):
            return out
        out[torch.where(wrong, right / every.clamp(min=1), torch.inf).argmin()] = True


def _agree(possible: Int[Tensor, "n"], agreeing: Int[Tensor, "n"], config: TearConfig) -> Bool[Tensor, "n"]:
    """Enough matches, and enough of them."""
    return (possible >= config.least) & (agreeing >= config.share * possible)


def _across(ends: Int[Tensor, "e 2"], amount: Int[Tensor, "e"], count: int) -> Int[Tensor, "n"]:
    """For the cut before each place (none before the first): the amounts of the edges across it, summed."""
    low, high = ends.amin(1), ends.amax(1)
    change = torch.zeros(count + 1, dtype=torch.long)
    change.index_add_(0, low + 1, amount).index_add_(0, high + 1, -amount)
    return change.cumsum(0)[:count]

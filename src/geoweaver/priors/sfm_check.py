"""A model is checked, not believed: do its matches agree, and does one scale hold it together?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from geoweaver.priors.sfm_mapping import SparseModel
from geoweaver.priors.sfm_pairs import VerifiedPair
from geoweaver.priors.sfm_tears import torn_cut

Pixels = Sequence[Float[np.ndarray, "_ 2"]]

_REPROJECTION_PX = 4.0
_GROSS = 0.25
"""Of the image's diagonal."""
_MOSTLY = 0.7
"""Pairs with a smaller share of matches that are not gross mistakes testify to nothing."""
_ENOUGH = 25
"""Matches from which on a pair's share of agreeing ones means something."""
_UNSOUND = 0.7
"""A pair is against a model that explains a smaller share of its matches: on sound models none is."""
NEAR = 4
"""Frames so far apart at most are near: their matches are many, and seldom wrong."""
_STRAY = 0.4
"""A frame is a stray where the model explains a smaller share of its matches with near frames."""
_FEW = 0.1
"""Where a larger share of the frames are strays, the model is bent rather than they lost."""
_PARALLAX = np.radians(1.5)
_OWN_PARALLAX = np.radians(3.0)
"""Structure that stands by itself needs more than what merely ties two halves."""
_FEWEST_TIES = 8
_OWN_STRUCTURE = 100
_BRIDGE = 30


@dataclass(frozen=True)
class PairVerdict:
    """How many of a pair's matches a model explains, those that it was built from and those it left out."""

    a: int
    b: int
    matches: int
    share: float

    @property
    def against(self) -> bool:
        """Enough matches, and too many of them contradict the model."""
        return self.matches >= _ENOUGH and self.share < _UNSOUND


def pair_verdicts(model: SparseModel, pairs: Sequence[VerifiedPair], keypoints: Pixels) -> list[PairVerdict]:
    """The model's points seen from each frame must project onto their matches in the other frame."""
    row = {int(m): k for k, m in enumerate(model.member)}
    gross = _GROSS * 2 * float(np.hypot(*model.intrinsics[2:]))
    verdicts = []
    for pair in pairs:
        if pair.a in row and pair.b in row:
            errors = _pair_errors(model, pair, row[pair.a], row[pair.b], keypoints)
            # repeated objects are matched across the image by mistake; a bent model misses by less
            agree = errors[errors < gross] < _REPROJECTION_PX
            if len(agree) > _MOSTLY * len(errors):
                verdicts.append(PairVerdict(pair.a, pair.b, len(agree), float(agree.mean())))
    return verdicts


def _pair_errors(
    model: SparseModel, pair: VerifiedPair, i: int, j: int, keypoints: Pixels
) -> Float[np.ndarray, "m"]:
    """Larger of the two reprojection errors of every match that has a point on either side."""
    left, right = pair.matches[:, 0], pair.matches[:, 1]
    forth = _reprojection(model, model.point_of[i, left], j, keypoints[pair.b][right])
    back = _reprojection(model, model.point_of[j, right], i, keypoints[pair.a][left])
    errors = np.fmax(forth, back)
    return np.asarray(errors[~np.isnan(errors)])


def _reprojection(
    model: SparseModel, points: Int[np.ndarray, "m"], camera: int, pixels: Float[np.ndarray, "m 2"]
) -> Float[np.ndarray, "m"]:
    """Pixels between where points fall in a camera and where they were matched; nan without a point."""
    known = points >= 0
    errors = np.full(len(points), np.nan)
    moved = model.cam_from_chunk[camera].act(torch.from_numpy(model.points[points[known]])).numpy()
    fx, fy, cx, cy = model.intrinsics
    z = np.where(moved[:, 2] > 0, moved[:, 2], np.nan)
    shown = moved[:, :2] / z[:, None] * [fx, fy] + [cx, cy]
    distance = np.linalg.norm(shown - pixels[known], axis=1)
    errors[known] = np.where(np.isnan(distance), np.inf, distance)
    return errors


def without_strays(model: SparseModel, pairs: Sequence[VerifiedPair], keypoints: Pixels) -> SparseModel:
    """The model without single frames that were put elsewhere: where they look alike, among far ones."""
    row = {int(m): k for k, m in enumerate(model.member)}
    agree, judged = np.zeros(len(model)), np.zeros(len(model))
    for pair in pairs:
        if pair.b - pair.a <= NEAR and pair.a in row and pair.b in row:
            i, j = row[pair.a], row[pair.b]
            errors = _pair_errors(model, pair, i, j, keypoints)
            agree[[i, j]] += (errors < _REPROJECTION_PX).sum()
            judged[[i, j]] += len(errors)
    stray = (judged >= _ENOUGH) & (agree < _STRAY * judged)
    return sub_model(model, ~stray) if 0 < stray.sum() <= _FEW * len(model) else model


def soundness(verdicts: Sequence[PairVerdict]) -> float:
    """Mean share of agreeing matches over the pairs, minus the share of pairs that are against the model."""
    if not verdicts:
        return 0.0
    return float(np.mean([v.share for v in verdicts]) - np.mean([v.against for v in verdicts]))


def is_sound(verdicts: Sequence[PairVerdict]) -> bool:
    """No more than one pair in two hundred is against the model."""
    return sum(v.against for v in verdicts) <= len(verdicts) / 200


def sub_model(model: SparseModel, keep: Bool[np.ndarray, "n"]) -> SparseModel:
    """Some of a model's cameras, and the points that at least two of them see."""
    point_of = model.point_of[keep]
    seen = np.bincount(point_of[point_of >= 0], minlength=len(model.points)) >= 2
    renumbered = np.append(np.where(seen, np.cumsum(seen) - 1, -1), -1)
    return replace(
        model,
        member=model.member[keep],
        cam_from_chunk=model.cam_from_chunk[torch.from_numpy(np.flatnonzero(keep))],
        points=model.points[seen],
        point_of=renumbered[point_of],
    )


def split_model(
    model: SparseModel, pairs: Sequence[VerifiedPair], keypoints: Pixels, smallest: int
) -> Iterator[SparseModel]:
    """Pieces that are sound in themselves: cut where matches disagree or where nothing carries the scale."""
    if len(model) < smallest:
        return
    verdicts, torn = pair_verdicts(model, pairs, keypoints), torn_cut(model, pairs, keypoints, NEAR)
    sound = is_sound(verdicts) and not torn
    cut = torn or (weakest_cut(model, keypoints, smallest) if sound else _disagreement(model, verdicts))
    if cut == 0:
        if sound:
            yield model
        return
    row = np.arange(len(model))
    # a frame that both sides see well stays in both: it ties them
    bridge = cut - 1 if sound and cut > 1 and _sees(model, cut - 1, cut) >= _BRIDGE else cut
    for side in (row < cut, row >= bridge):
        yield from split_model(sub_model(model, side), pairs, keypoints, smallest)


def _sees(model: SparseModel, row: int, start: int) -> int:
    """Points of a row that two of the rows from `start` on see as well."""
    later = model.point_of[start:]
    often = np.bincount(later[later >= 0], minlength=len(model.points)) >= 2
    own = model.point_of[row]
    return int(often[own[own >= 0]].sum())


def _disagreement(model: SparseModel, verdicts: Sequence[PairVerdict]) -> int:
    """The row before which a cut separates the contradicting pairs best from the agreeing ones."""
    rows = np.searchsorted(model.member, [[v.a, v.b] for v in verdicts])
    against = np.array([v.against for v in verdicts])
    across = (rows[:, :1] < np.arange(1, len(model))) & (rows[:, 1:] >= np.arange(1, len(model)))
    gain = across[against].sum(0) / np.maximum(across.sum(0), 1)
    return int(gain.argmax()) + 1


def weakest_cut(model: SparseModel, keypoints: Pixels, smallest: int = 5) -> int:
    """The row before which two halves with structure share too few points for one scale; 0: none."""
    ties, before, after = scale_ties(model, keypoints)
    weak = (ties < _FEWEST_TIES) & (before >= _OWN_STRUCTURE) & (after >= _OWN_STRUCTURE)
    weak[: smallest - 1], weak[len(weak) - smallest + 1 :] = False, False
    if not weak.any():
        return 0
    lowest = np.flatnonzero(weak & (ties == ties[weak].min()))
    return int(lowest[len(lowest) // 2]) + 1


def scale_ties(
    model: SparseModel, keypoints: Pixels
) -> tuple[Int[np.ndarray, "cuts"], Int[np.ndarray, "cuts"], Int[np.ndarray, "cuts"]]:
    """For the cut before each row but the first: points with parallax on both sides, before it, after it."""
    row, point, ray = _sightings(model, keypoints)
    cuts = np.arange(1, len(model))
    ties, before, after = (np.zeros(len(cuts), np.int64) for _ in range(3))
    bounds = np.flatnonzero(np.diff(point, prepend=-1, append=len(model.points)))
    for start, stop in pairwise(bounds):
        rows, rays = row[start:stop], ray[start:stop]
        from_first, from_last = (np.arccos(np.clip(rays @ end, -1, 1)) for end in (rays[0], rays[-1]))
        ties += (cuts > _first(rows, from_first >= _PARALLAX)) & (cuts <= _last(rows, from_last >= _PARALLAX))
        before += cuts > _first(rows, from_first >= _OWN_PARALLAX)
        after += cuts <= _last(rows, from_last >= _OWN_PARALLAX)
    return ties, before, after


def _first(rows: Int[np.ndarray, "o"], chosen: Bool[np.ndarray, "o"]) -> int:
    """The first chosen row; beyond all rows where there is none."""
    return int(rows[chosen.argmax()]) if chosen.any() else 1 << 30


def _last(rows: Int[np.ndarray, "o"], chosen: Bool[np.ndarray, "o"]) -> int:
    """The last chosen row, -1 where there is none."""
    return int(rows[np.flatnonzero(chosen)[-1]]) if chosen.any() else -1


def _sightings(
    model: SparseModel, keypoints: Pixels
) -> tuple[Int[np.ndarray, "o"], Int[np.ndarray, "o"], Float[np.ndarray, "o 3"]]:
    """All observations sorted by point, then by frame: row, point and the ray in the chunk's axes."""
    row, feature = np.nonzero(model.point_of >= 0)
    point = model.point_of[row, feature]
    order = np.lexsort((row, point))
    row, feature, point = row[order], feature[order], point[order]
    fx, fy, cx, cy = model.intrinsics
    # a model whose points were all given up has no sightings
    seen = [keypoints[model.member[r]][f] for r, f in zip(row, feature, strict=True)]
    pixel = np.array(seen).reshape(-1, 2)
    ray = np.concatenate([(pixel - [cx, cy]) / [fx, fy], np.ones((len(pixel), 1))], 1)
    ray = np.einsum("nji,nj->ni", model.cam_from_chunk.rotation.numpy()[row], ray)
    return row, point, ray / np.linalg.norm(ray, axis=1, keepdims=True)

"""Which views can judge which: those that see the same surfaces, from elsewhere, together all of them."""

from collections import defaultdict

import numpy as np
from jaxtyping import Bool, Float, Int

from geoweaver.datatypes import ViewGraph
from geoweaver.fusion.survey import GRID, Survey

_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Places before and after in the sequence that are looked at."""
_NEAREST, _EVERY = 96, 4
"""Of so many nearest cameras every fourth is looked at: the nearest of a slow video are all alike."""
_BESIDE = 2
"""Places before and after that are always neighbours: they alone see what is seen only for a moment."""
_SAME_SURFACE = 0.25
"""Relative difference of coarse depth up to which two views may see the same surface."""
_GOOD_ANGLE = np.radians(6.0)
"""Parallax from which another view counts fully."""
_WIDE_ANGLE = np.radians(50.0)
"""Parallax beyond which surfaces look too different."""
_LEAST = 0.1
"""What a view without parallax, beside one already chosen, or of another depth still counts."""
_APART = 0.05
"""Distance to a chosen camera, in median depths, from which a camera adds all it can."""
_WORTH = 0.01
"""Share of the image below which a view is not worth reading."""


def choose_neighbours(survey: Survey, count: int, graph: ViewGraph | None = None) -> list[list[int]]:
    """For each row of the survey up to `count` other rows, the most useful first."""
    candidates = _candidates(survey, graph)
    centre = survey.centre
    return [_choose(survey, centre, row, candidates[row], count) for row in range(len(survey))]


def _candidates(survey: Survey, graph: ViewGraph | None) -> list[Int[np.ndarray, "c"]]:
    """Rows near in time, near in space, or tied by the view graph."""
    from scipy.spatial import cKDTree

    n = len(survey)
    tied = _tied(survey, graph)
    nearest = np.zeros((n, 0), np.int64)
    if n > 1:
        ranks = range(2, min(_NEAREST, n) + 1, _EVERY)
        nearest = cKDTree(survey.centre).query(survey.centre, k=list(ranks))[1].reshape(n, -1)
    found = []
    for row in range(n):
        steps = [row + sign * step for step in _STEPS for sign in (-1, 1)]
        near = [r for r in steps if 0 <= r < n]
        rows = np.unique(np.array([*near, *nearest[row].tolist(), *tied[row]], np.int64))
        found.append(rows[(rows != row) & (rows < n)])
    return found


def _tied(survey: Survey, graph: ViewGraph | None) -> dict[int, list[int]]:
    """Rows that share an edge."""
    row_of = {int(f): k for k, f in enumerate(survey.frame)}
    tied: dict[int, list[int]] = defaultdict(list)
    for i, j in [] if graph is None else graph.edges.tolist():
        if i in row_of and j in row_of:
            tied[row_of[i]].append(row_of[j])
            tied[row_of[j]].append(row_of[i])
    return tied


def _choose(
    survey: Survey,
    centre: Float[np.ndarray, "n 3"],
    row: int,
    candidates: Int[np.ndarray, "c"],
    count: int,
) -> list[int]:
    """Next in time first; then each adds most where few see, and stands apart from those already chosen."""
    if not len(candidates):
        return []
    worth = _worth(survey, centre, row, candidates)
    covered = np.zeros(worth.shape[1])
    apart = np.ones(len(candidates))
    chosen: list[int] = []
    beside = np.abs(candidates - row) <= _BESIDE
    for _ in range(min(count, len(candidates))):
        gain = apart * (worth / (1 + covered)).sum(1)
        next_to = beside & (apart > 0) & (gain > 0)
        gain = np.where(next_to, gain, 0) if next_to.any() else gain
        best = int(gain.argmax())
        if gain[best] <= 0 or gain[best] < _WORTH * worth.shape[1] * _LEAST:
            break
        chosen.append(int(candidates[best]))
        covered += worth[best]
        distance = np.linalg.norm(centre[candidates] - centre[candidates[best]], axis=1)
        apart = np.minimum(apart, np.clip(distance / (_APART * survey.median[row]), _LEAST, 1))
        apart[best] = 0
    return chosen


def _worth(
    survey: Survey, centre: Float[np.ndarray, "n 3"], row: int, candidates: Int[np.ndarray, "c"]
) -> Float[np.ndarray, "c p"]:
    """How well each candidate can judge each known place of a row's coarse grid."""
    points = _places(survey, row)
    camera = survey.camera[candidates]
    R, t, K = camera[:, :9].reshape(-1, 3, 3), camera[:, 9:12], camera[:, 12:]
    local = np.einsum("cij,pj->cpi", R, points) + t[:, None]
    z = np.where(local[..., 2] > 0, local[..., 2], np.finfo(np.float64).max)
    xy = local[..., :2] / z[..., None] * K[:, None, :2] + K[:, None, 2:]
    inside = (local[..., 2] > 0) & (xy >= 0).all(-1) & (xy < 1).all(-1)
    cell = np.where(inside[..., None], xy * (GRID[1], GRID[0]), 0).astype(np.int64)
    seen = survey.depth[candidates[:, None], cell[..., 1], cell[..., 0]]
    # one that sees another depth there may still contradict
    same = np.where(np.abs(seen - z) < _SAME_SURFACE * z, 1.0, _LEAST)
    here, there = points - centre[row], points - centre[candidates][:, None]
    lengths = np.linalg.norm(here, axis=-1) * np.linalg.norm(there, axis=-1)
    cosine = (here * there).sum(-1) / np.maximum(lengths, np.finfo(np.float64).tiny)
    return np.asarray(same * _by_angle(np.arccos(np.clip(cosine, -1, 1)), inside & (seen > 0)))


def _by_angle(angle: Float[np.ndarray, "c p"], seen: Bool[np.ndarray, "c p"]) -> Float[np.ndarray, "c p"]:
    rise = np.clip(angle / _GOOD_ANGLE, _LEAST, 1)
    fall = np.clip((2 * _WIDE_ANGLE - angle) / _WIDE_ANGLE, _LEAST, 1)
    return np.asarray(np.where(seen, rise * fall, 0))


def _places(survey: Survey, row: int) -> Float[np.ndarray, "p 3"]:
    """World points behind the known cells of a row's coarse grid."""
    camera = survey.camera[row]
    R, t, (fx, fy, cx, cy) = camera[:9].reshape(3, 3), camera[9:12], camera[12:]
    y, x = np.nonzero(survey.depth[row] > 0)
    z = survey.depth[row][y, x]
    local = np.stack([((x + 0.5) / GRID[1] - cx) / fx * z, ((y + 0.5) / GRID[0] - cy) / fy * z, z], -1)
    return np.asarray((local - t) @ R)

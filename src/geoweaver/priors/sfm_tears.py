"""Where a model's cameras contradict the matches of neighbours, whether they became points or not.

A check by points is blind where a model kept none: mapping everything at once sets such cameras anywhere,
and a bent stretch sheds what speaks against it. Epipolar lines need no points.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from geoweaver.geometry.epipolar import calibrated_inliers, epipolar_distance, fundamental_matrix
from geoweaver.priors.sfm_mapping import SparseModel
from geoweaver.priors.sfm_pairs import VerifiedPair

Pixels = Sequence[Float[np.ndarray, "_ 2"]]

_NEAR_LINE_PX = 2.0
"""What verified matches keep within of the pair's own epipolar lines."""
_AGREEING = 0.8
"""Share of them that must be near the model's lines too: sound models have 0.9 and more at every cut."""
_ENOUGH = 25
"""Matches across a cut below which nothing is said."""


def torn_cut(model: SparseModel, pairs: Sequence[VerifiedPair], keypoints: Pixels, near: int) -> int:
    """The row before which near frames' matches contradict the cameras most; 0: nowhere too much."""
    every, agreeing = cut_evidence(model, pairs, keypoints, near)
    share = np.where(every >= _ENOUGH, agreeing / np.maximum(every, 1), 1.0)
    return int(share.argmin()) + 1 if len(share) and share.min() < _AGREEING else 0


def cut_evidence(
    model: SparseModel, pairs: Sequence[VerifiedPair], keypoints: Pixels, near: int
) -> tuple[Int[np.ndarray, "cuts"], Int[np.ndarray, "cuts"]]:
    """For the cut before each row but the first: near frames' matches across it, and those that agree."""
    row = {int(m): k for k, m in enumerate(model.member)}
    every, agreeing = (np.zeros(max(len(model) - 1, 0), np.int64) for _ in range(2))
    for pair in pairs:
        if pair.b - pair.a <= near and pair.a in row and pair.b in row:
            i, j = row[pair.a], row[pair.b]
            possible, found = _pair_evidence(model, pair, i, j, keypoints)
            every[i:j] += possible
            agreeing[i:j] += found
    return every, agreeing


def _pair_evidence(
    model: SparseModel, pair: VerifiedPair, i: int, j: int, keypoints: Pixels
) -> tuple[int, int]:
    """Matches that a motion of the pair's own explains, and how many of so many the model does."""
    left, right = keypoints[pair.a][pair.matches[:, 0]], keypoints[pair.b][pair.matches[:, 1]]
    found = int((epipolar_distance(fundamental(model, i, j), left, right) < _NEAR_LINE_PX).sum())
    if found >= _AGREEING * len(left):
        return len(left), found
    # repeated objects are matched by mistake, and no motion explains them beside the rest
    lens = np.array(model.intrinsics)
    possible = int(calibrated_inliers(left, right, lens, lens, _NEAR_LINE_PX).sum())
    return max(possible, found), found


def fundamental(model: SparseModel, i: int, j: int) -> Float[np.ndarray, "3 3"]:
    """x_j^T F x_i = 0 in pixels, by the cameras of two rows."""
    step = model.cam_from_chunk[j] @ model.cam_from_chunk[i].inverse()
    K = np.array(model.intrinsics)
    return fundamental_matrix(step.rotation.numpy(), step.translation.numpy(), K, K)

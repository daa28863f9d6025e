"""Which frames of a chunk are matched with each other, and their verified matches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from geoweaver.datatypes import Features
from geoweaver.engine import map_in_threads
from geoweaver.geometry.epipolar import epipolar_inliers
from geoweaver.nearest import mutual_nearest

OFFSETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Distances in the sequence at which frames are matched: dense near by, then doubling."""
_RATIO = 0.8
_FARTHEST = 0.7
"""Lowe's ratio and the largest distance of unit descriptors: COLMAP's values."""
_VERIFY_PX = 2.0
_FEWEST = 15
"""Verified matches that a pair needs to count."""


@dataclass(frozen=True)
class VerifiedPair:
    """Matches of frames a < b (positions in the chunk) that one epipolar geometry explains."""

    a: int
    b: int
    matches: Int[np.ndarray, "m 2"]
    """Rows of the two frames' keypoints."""


def chunk_pairs(frames: int, offsets: Sequence[int] = OFFSETS) -> list[tuple[int, int]]:
    """Pairs of positions in a chunk, sorted."""
    return sorted((a, a + o) for o in offsets for a in range(frames - o))


def match_descriptors(first: Features, second: Features) -> Int[np.ndarray, "k 2"]:
    """Mutual nearest neighbours that pass the ratio test."""
    return mutual_nearest(first.descriptors, second.descriptors, _RATIO, _FARTHEST)


def verify_pair(
    place: tuple[int, int],
    first: Float[np.ndarray, "n 2"],
    second: Float[np.ndarray, "m 2"],
    matches: Int[np.ndarray, "k 2"],
    threshold: float = _VERIFY_PX,
) -> VerifiedPair:
    """The matches that one fundamental matrix explains; none where they are too few to tell."""
    nothing = VerifiedPair(*place, matches[:0])
    if len(matches) < _FEWEST:
        return nothing
    p, q = first[matches[:, 0]], second[matches[:, 1]]
    kept = matches[epipolar_inliers(p, q, threshold)]
    if len(kept) < _FEWEST:
        return nothing
    return VerifiedPair(*place, kept)


def verified_pairs(features: Sequence[Features], offsets: Sequence[int] = OFFSETS) -> list[VerifiedPair]:
    """Match all pairs of a chunk and keep those that an epipolar geometry supports."""
    keypoints = [pixel_array(f) for f in features]

    def verified(place: tuple[int, int]) -> VerifiedPair:
        a, b = place
        return verify_pair(place, keypoints[a], keypoints[b], match_descriptors(features[a], features[b]))

    found = map_in_threads(verified, chunk_pairs(len(features), offsets))
    return [pair for pair in found if len(pair.matches)]


def pixel_array(features: Features) -> Float[np.ndarray, "n 2"]:
    """Keypoints as float64 rows x, y."""
    return np.ascontiguousarray(features.keypoints.double().numpy())

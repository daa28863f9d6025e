"""Pairs of a chunk, and their verification against known epipolar geometry."""

import numpy as np

from geoweaver.priors.sfm_pairs import chunk_pairs, verify_pair


def test_pairs_are_sorted_distinct_and_inside() -> None:
    pairs = chunk_pairs(20)
    assert pairs == sorted(set(pairs)) and all(0 <= a < b < 20 for a, b in pairs)
    assert {(a, a + 1) for a in range(19)} <= set(pairs)


def test_verification_drops_matches_that_contradict_the_geometry() -> None:
    rng = np.random.default_rng(3)
    points = rng.uniform([-1, -1, 3], [1, 1, 6], (120, 3))
    first = points[:, :2] / points[:, 2:] * 300 + 200
    moved = points - [0.4, 0.05, 0.1]
    second = moved[:, :2] / moved[:, 2:] * 300 + 200
    second[:30] = rng.uniform(100, 300, (30, 2))
    matches = np.stack([np.arange(120)] * 2, 1)
    kept = set(verify_pair((0, 1), first, second, matches).matches[:, 0].tolist())
    assert set(range(30, 120)) <= kept and len(kept) < 100


def test_too_few_matches_verify_nothing() -> None:
    pixels = np.random.default_rng(0).uniform(0, 100, (8, 2))
    assert len(verify_pair((0, 1), pixels, pixels, np.stack([np.arange(8)] * 2, 1)).matches) == 0

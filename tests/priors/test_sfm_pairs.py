"""Matching against brute force, verification against known epipolar geometry."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.priors.sfm_pairs import chunk_pairs, match_descriptors, verify_pair


def test_pairs_are_sorted_distinct_and_inside() -> None:
    pairs = chunk_pairs(20)
    assert pairs == sorted(set(pairs)) and all(0 <= a < b < 20 for a, b in pairs)
    assert {(a, a + 1) for a in range(19)} <= set(pairs)


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 30))
def test_matches_are_mutual_nearest_and_distinct(seed: int, n: int, m: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.rand(n, 8, generator=generator), torch.rand(m, 8, generator=generator)
    second[: min(n, m) // 2] = first[: min(n, m) // 2] + 0.01
    first, second = (torch.nn.functional.normalize(d) for d in (first, second))
    distance = torch.cdist(first, second).numpy()
    expected = []
    for i in range(n):
        j = int(distance[i].argmin())
        rest = np.delete(distance[i], j)
        clear = distance[i, j] < 0.8 * (rest.min() if len(rest) else 2.45)
        if clear and distance[i, j] < 0.7 and int(distance[:, j].argmin()) == i:
            expected.append((i, j))
    assert [tuple(row) for row in match_descriptors(first, second).tolist()] == expected


def test_no_features_match_nothing() -> None:
    assert match_descriptors(torch.zeros(0, 128), torch.rand(5, 128)).shape == (0, 2)


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

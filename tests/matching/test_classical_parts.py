"""Two-view geometry, the rough field and the score, each alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.datatypes import Features
from geoweaver.errors import ConfigError
from geoweaver.geometry.epipolar import epipolar_distance
from geoweaver.matching.classical_score import FITTED, believe
from geoweaver.matching.classical_warp import scaled_field, supported, warp_field
from geoweaver.matching.two_view import (
    TwoViewConfig,
    count_inliers,
    fit_fundamental,
    match_features,
    two_view_geometry,
)


def features(pixel: np.ndarray, descriptors: np.ndarray) -> Features:
    n = len(pixel)
    return Features(
        torch.from_numpy(pixel), torch.from_numpy(descriptors.astype(np.uint8)), torch.ones(n), torch.zeros(n)
    )


def two_views(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of random points in two cameras that stand apart."""
    rng = np.random.default_rng(seed)
    points = rng.uniform([-2, -1.5, 3], [2, 1.5, 9], (n, 3))
    c, s = np.cos(0.1), np.sin(0.1)
    moved = points @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]).T + [0.6, 0.05, 0.2]
    return tuple(400 * p[:, :2] / p[:, 2:] + [320, 240] for p in (points, moved))


def described(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 90, (n, 128))


def test_nearest_neighbours_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(0)
    a = described(60, rng)
    b = np.concatenate([np.clip(a[:40] + rng.integers(-8, 9, (40, 128)), 0, 255), described(30, rng)])
    at = np.zeros((1, 2))
    i, j = match_features(
        features(at.repeat(60, 0), a), features(at.repeat(70, 0), b), TwoViewConfig(ratio=0.8)
    )
    unit = [d / np.linalg.norm(d, axis=1, keepdims=True) for d in (a, b)]
    distance = np.linalg.norm(unit[0][:, None] - unit[1][None], axis=-1)
    expected = [
        (k, int(row.argmin()))
        for k, row in enumerate(distance)
        if distance[:, row.argmin()].argmin() == k and np.sort(row)[0] < 0.8 * np.sort(row)[1]
    ]
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
    assert len(expected) >= 40


def test_geometry_is_found_among_wrong_pairs() -> None:
    rng = np.random.default_rng(1)
    pixel_i, pixel_j = two_views(200)
    pixel_j[120:] = rng.uniform(0, [640, 480], (80, 2))
    d = described(200, rng)
    found = two_view_geometry(features(pixel_i, d), features(pixel_j, d))
    assert 110 <= len(found) <= 130
    exact_i, exact_j = two_views(200)
    assert np.median(epipolar_distance(found.fundamental, exact_i, exact_j)) < 0.1
    counts = count_inliers(lambda f: features((pixel_i, pixel_j)[f], d), [(0, 1)])
    assert counts.tolist() == [len(found)]


@pytest.mark.parametrize("n", [0, 5, 30, 400])
def test_random_pairs_are_no_geometry(n: int) -> None:
    rng = np.random.default_rng(n)
    d = described(n, rng)
    views = [features(rng.uniform(0, [640, 480], (n, 2)), d) for _ in range(2)]
    assert len(two_view_geometry(views[0], views[1])) == 0


def test_largest_features_are_compared_where_there_are_too_many() -> None:
    rng = np.random.default_rng(0)
    pixel, d = rng.uniform(0, 400, (50, 2)), described(50, rng)
    large = Features(
        torch.from_numpy(pixel), torch.from_numpy(d.astype(np.uint8)), torch.arange(50.0), torch.zeros(50)
    )
    i, _ = match_features(large, large, TwoViewConfig(max_features=10))
    assert i.tolist() == list(range(40, 50))


def test_too_few_pairs_fit_nothing() -> None:
    fundamental, agree = fit_fundamental(np.zeros((5, 2)), np.zeros((5, 2)), 1.0, 100)
    assert not fundamental.any() and not agree.any()


def test_two_view_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="ratio"):
        TwoViewConfig(ratio=0.0)
    with pytest.raises(ConfigError, match="min_inliers"):
        TwoViewConfig(min_inliers=3)


@given(st.integers(0, 1000), st.integers(12, 300))
def test_an_affinity_is_reproduced_everywhere(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    linear, shift = np.eye(2) + 0.2 * rng.standard_normal((2, 2)), 30 * rng.standard_normal(2)
    pixel = rng.uniform(0, [160, 96], (n, 2))
    field = warp_field(pixel, pixel @ linear.T + shift, (160, 96))
    grid = np.stack(np.meshgrid(np.arange(160), np.arange(96)), -1)
    assert np.abs(field - (grid @ linear.T + shift)).max() < 0.05


def test_the_field_follows_two_motions_and_ignores_an_outlier() -> None:
    rng = np.random.default_rng(0)
    pixel = rng.uniform(0, [320, 200], (300, 2))
    moved = pixel + np.where(pixel[:, :1] < 160, [[4.0, 0.0]], [[20.0, 3.0]])
    moved[7] += [40, -25]
    field = warp_field(pixel, moved, (320, 200))
    assert (
        np.abs(
            field[20:180, 20:120] - np.stack(np.meshgrid(np.arange(20, 120), np.arange(20, 180)), -1) - [4, 0]
        ).max()
        < 2
    )
    assert (
        np.abs(
            field[20:180, 200:300]
            - np.stack(np.meshgrid(np.arange(200, 300), np.arange(20, 180)), -1)
            - [20, 3]
        ).max()
        < 2
    )
    assert not supported(pixel, moved)[7] and supported(pixel, moved).mean() > 0.97


def test_images_of_two_sizes_are_laid_over_each_other() -> None:
    field = scaled_field((40, 20), (80, 60))
    assert np.allclose(field[0, 0], [0.5, 1.0]) and np.allclose(field[-1, -1], [78.5, 58.0])


@pytest.mark.parametrize("kind", ["near", "wide"])
def test_worse_evidence_is_believed_less(kind: str) -> None:
    good = np.array([[0.1, 8.0, 0.95, 3.0, 0.1, 0.2]])
    for column, worse in ((0, 2.0), (2, 0.2), (3, 30.0), (4, 3.0), (5, 4.0)):
        bad = good.copy()
        bad[0, column] = worse
        assert believe(bad, FITTED[kind])[0] < believe(good, FITTED[kind])[0]
    assert believe(good, FITTED[kind])[0] > 0.9
    assert believe(np.array([[5.0, 8.0, 0.0, 30.0, 5.0, 5.0]]), FITTED[kind])[0] < 0.05

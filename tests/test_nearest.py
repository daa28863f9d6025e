"""Nearest descriptors against brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver import nearest
from geoweaver.nearest import mutual_nearest


def brute_force(first: np.ndarray, second: np.ndarray, ratio: float, farthest: float) -> list[list[int]]:
    """The same by definition, in float64."""
    a, b = (d / np.linalg.norm(d, axis=1, keepdims=True) for d in (first.astype(float), second.astype(float)))
    distance = np.linalg.norm(a[:, None] - b[None], axis=-1)
    found = []
    for i, row in enumerate(distance):
        j = int(row.argmin())
        rest = np.delete(row, j)
        clear = row[j] < ratio * (rest.min() if len(rest) else np.inf)
        if clear and row[j] < farthest and int(distance[:, j].argmin()) == i:
            found.append([i, j])
    return found


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 60), st.sampled_from([0.7, 2.0]))
def test_nearest_are_those_of_brute_force(seed: int, n: int, m: int, farthest: float) -> None:
    rng = np.random.default_rng(seed)
    first, second = (rng.integers(0, 90, (k, 128)).astype(np.uint8) for k in (n, m))
    half = min(n, m) // 2
    second[:half] = np.clip(first[:half] + rng.integers(-8, 9, (half, 128)), 0, 255)
    found = mutual_nearest(torch.from_numpy(first), torch.from_numpy(second), 0.8, farthest)
    assert found.tolist() == brute_force(first, second, 0.8, farthest)


def test_no_descriptor_is_taken_twice() -> None:
    rng = np.random.default_rng(0)
    twice = torch.from_numpy(rng.integers(0, 90, (1, 128)).astype(np.uint8)).repeat(3, 1)
    other = torch.cat([twice[:1], torch.from_numpy(rng.integers(0, 90, (5, 128)).astype(np.uint8))])
    assert mutual_nearest(twice, other, 0.8).tolist() == [[0, 0]]


def test_blank_descriptors_stand_out_from_nothing() -> None:
    blank = torch.zeros(4, 128, dtype=torch.uint8)
    assert mutual_nearest(blank, blank, 0.8).tolist() == []


def test_no_descriptors_match_nothing() -> None:
    some = torch.ones(5, 128, dtype=torch.uint8)
    assert mutual_nearest(some[:0], some, 0.8).shape == (0, 2)
    assert mutual_nearest(some, some[:0], 0.8).shape == (0, 2)


def test_products_are_exact_with_and_without_byte_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    first, second = (torch.from_numpy(rng.integers(0, 256, (n, 128)).astype(np.uint8)) for n in (70, 33))
    first[0], second[0] = 255, 255
    exact = first.numpy().astype(int) @ second.numpy().astype(int).T
    for bytewise in (nearest._bytes_multiply_exactly(), False):
        monkeypatch.setattr(nearest, "_bytes_multiply_exactly", lambda b=bytewise: b)
        assert (nearest.products(first, second).numpy() == exact).all()

"""Sums per voxel: however the points come in, what they sum to is the same; memory stays bounded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.fusion.voxels import Heap, Merger, collect, count_voxels, merge


def rows(n: int, seed: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2, (n, 1))
    place = np.concatenate([weight, weight * spread * rng.uniform(-1, 1, (n, 3))], 1)
    return place, rng.uniform(0, 1, (n, 8)).astype(np.float32)


@given(st.integers(0, 10_000), st.integers(1, 400), st.floats(0.05, 3.0))
def test_each_voxel_holds_the_sum_of_its_points(seed: int, n: int, size: float) -> None:
    place, look = rows(n, seed)
    heap = collect(place, look, size)
    cells = np.floor(place[:, 1:] / place[:, :1] / size).astype(int)
    expected: dict[tuple[int, ...], np.ndarray] = {}
    for cell, row in zip(map(tuple, cells), place, strict=True):
        expected[cell] = expected.get(cell, np.zeros(4)) + row
    found = {tuple(np.floor(m / size).astype(int)): p for m, p in zip(heap.mean, heap.place, strict=True)}
    assert len(heap) == len(expected)
    assert (np.diff(heap.key) > 0).all()
    for cell, total in expected.items():
        # a mean on a voxel's very border may round into the next
        if cell in found:
            np.testing.assert_allclose(found[cell], total, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(heap.look.sum(0), look.sum(0), rtol=1e-4)


@given(st.integers(0, 10_000))
def test_parts_sum_to_the_whole(seed: int) -> None:
    place, look = rows(300, seed)
    whole = collect(place, look, 0.3)
    parts = merge([collect(place[:100], look[:100], 0.3), collect(place[100:], look[100:], 0.3)])
    assert np.array_equal(whole.key, parts.key)
    np.testing.assert_allclose(whole.place, parts.place, rtol=1e-9, atol=1e-12)


def test_memory_stays_bounded_whatever_comes_in() -> None:
    merger, most = Merger(1e-3, target=2000), 0
    for seed in range(40):
        merger.add(collect(*rows(1000, seed), 1e-3))
        most = max(most, len(merger.heap) + sum(len(h) for h in merger.waiting))
    heap = merger.finish()
    assert most <= 1.5 * 2000 + 0.25 * 2000 + 1000
    assert 1500 < len(heap) <= 2000
    total = sum(rows(1000, seed)[0][:, 0].sum() for seed in range(40))
    np.testing.assert_allclose(heap.place[:, 0].sum(), total)


def test_what_is_out_of_reach_is_dropped() -> None:
    place, look = rows(10, 0)
    place[3, 1:] = 1e30
    heap = collect(place, look, 1e-3)
    assert len(heap) == 9
    assert np.isfinite(heap.place).all()


def test_counting_is_what_collecting_gives() -> None:
    heap: Heap = collect(*rows(500, 1), 1e-3)
    assert count_voxels(heap, 0.4) == len(collect(heap.place, heap.look, 0.4))

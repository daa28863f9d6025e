"""Candidates: what brute force finds, never neighbours, in bounded memory."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.graph.retrieval import RetrievalConfig, find_candidates


def ring(frames: int, laps: float = 2.0, dimensions: int = 32) -> torch.Tensor:
    """Descriptors that come back after each lap: smooth random functions of the place on a ring."""
    generator = torch.Generator().manual_seed(0)
    phase = torch.linspace(0, laps * 2 * torch.pi, frames)[:, None] * torch.arange(1, 9)
    return torch.cat([phase.sin(), phase.cos()], 1) @ torch.randn(16, dimensions, generator=generator)


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 1000))
def test_agrees_with_brute_force(per_frame: int, gap: int, seed: int) -> None:
    descriptors = torch.randn(90, 16, generator=torch.Generator().manual_seed(seed))
    found = find_candidates(descriptors, [list(range(90))], RetrievalConfig(per_frame, gap, spread=0))
    unit = torch.nn.functional.normalize(descriptors, dim=1)
    similar = unit @ unit.T
    step = torch.arange(90)
    similar[(step[:, None] - step).abs() < gap] = -2
    expected = {
        (min(i, int(j)), max(i, int(j)))
        for i in range(90)
        for j in similar[i].topk(per_frame).indices
        if similar[i, j] > -2
    }
    assert {(i, j) for i, j in found.pairs.tolist()} == expected


def test_finds_the_second_lap_at_the_first() -> None:
    found = find_candidates(ring(400), [list(range(400))], RetrievalConfig())
    gap = found.pairs[:, 1] - found.pairs[:, 0]
    assert gap.min() >= 16
    near_a_lap = ((gap - 199.5).abs() <= 2).double()
    assert near_a_lap[found.rank > 0.98].mean() > 0.9
    first = found.pairs[(gap - 199.5).abs() <= 2].flatten().unique()
    assert len(first) > 380


def test_spread_names_a_place_once() -> None:
    config = RetrievalConfig(per_frame=5, spread=4)
    pairs = find_candidates(ring(400, laps=4), [list(range(400))], config).pairs.tolist()
    named = [j for i, j in pairs if i == 10] + [i for i, j in pairs if j == 10]
    assert len(named) >= 3
    without = find_candidates(ring(400, laps=4), [list(range(400))], RetrievalConfig(5, spread=0)).pairs
    places = {round(j / 100) for i, j in without.tolist() if i == 10}
    assert len({round(j / 100) for j in named}) >= len(places)


def test_other_cameras_may_match_at_any_time() -> None:
    descriptors = ring(60, laps=0.5).repeat_interleave(2, 0)
    chains = [list(range(0, 120, 2)), list(range(1, 120, 2))]
    pairs = find_candidates(descriptors, chains, RetrievalConfig(spread=0)).pairs
    assert {(2 * k, 2 * k + 1) for k in range(60)} <= {(i, j) for i, j in pairs.tolist()}


def test_frames_without_features_find_nothing() -> None:
    descriptors = ring(100)
    descriptors[40:45] = 0
    pairs = find_candidates(descriptors, [list(range(100))], RetrievalConfig()).pairs
    assert not ((pairs >= 40) & (pairs < 45)).any()
    assert len(find_candidates(torch.zeros(100, 8), [list(range(100))], RetrievalConfig())) == 0
    assert len(find_candidates(torch.zeros(0, 8), [], RetrievalConfig())) == 0


def test_never_holds_a_square_matrix() -> None:
    seen = []
    original = torch.Tensor.__matmul__

    def watched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        result = original(a, b)
        seen.append(result.numel())
        return result

    torch.Tensor.__matmul__ = watched  # type: ignore[method-assign]
    try:
        find_candidates(torch.randn(3000, 8), [list(range(3000))], RetrievalConfig())
    finally:
        torch.Tensor.__matmul__ = original  # type: ignore[method-assign]
    assert 0 < max(seen) <= 3000 * 1024 // 2

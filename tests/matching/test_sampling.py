"""Sampling: frequencies follow the weight, budgets hold, relaxing keeps the graph together and no more."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import chisquare

from geoweaver.errors import ConfigError
from geoweaver.matching import SamplingConfig
from geoweaver.matching.sampling import pair_rng, rows_per_pair, sampling_order
from geoweaver.matching.verdicts import relaxations

PLENTY = 10**15


def test_ordered_draws_follow_the_weight_without_replacement() -> None:
    weight = np.array([1.0, 2, 3, 5, 9])
    p = weight / weight.sum()
    rng, draws = np.random.default_rng(7), 8_000
    seen = np.zeros((5, 5))
    for _ in range(draws):
        first, second = sampling_order(weight, rng.random(5), 0.0, True)[:2]
        seen[first, second] += 1
    expected = [[p[a] * p[b] / (1 - p[a]) if a != b else 0.0 for b in range(5)] for a in range(5)]
    off_diagonal = ~np.eye(5, dtype=bool)
    assert (np.diag(seen) == 0).all()
    assert chisquare(seen[off_diagonal], draws * np.array(expected)[off_diagonal]).pvalue > 1e-3


def test_what_weighs_nothing_is_never_drawn() -> None:
    for weight, rows in (([0.0, 2, 0, 1], [1, 3]), ([0.0] * 4, []), ([], [])):
        uniform = np.random.default_rng(0).random(len(weight))
        assert sorted(sampling_order(np.array(weight), uniform, 0.0, True)) == rows


def test_a_pairs_numbers_depend_on_the_pair_alone() -> None:
    numbers = {
        pair: tuple(pair_rng(3, *pair).random(4)) for pair in [(-1, 0, 1), (0, 0, 1), (0, 1, 0), (1, 0, 1)]
    }
    assert len(set(numbers.values())) == 4
    assert (
        tuple(pair_rng(3, 0, 0, 1).random(4)) == numbers[(0, 0, 1)] != tuple(pair_rng(4, 0, 0, 1).random(4))
    )


def test_confidence_is_relative_to_the_median_or_the_largest() -> None:
    weight, uniform = np.array([0.0, 0.4, 0.6, 1.0, 1.0, 3.0]), np.full(6, 0.5)
    assert sorted(sampling_order(weight, uniform, 0.5, True)) == [2, 3, 4, 5]
    assert sorted(sampling_order(weight, uniform, 0.5, False)) == [5]
    assert sorted(sampling_order(1e6 * weight, uniform, 0.5, True)) == [2, 3, 4, 5]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30), st.integers(40, 2000))
def test_the_cap_is_the_largest_that_fits(available: list[int], budget: int) -> None:
    config, counts = SamplingConfig(max_rows=budget, max_per_pair=250), torch.tensor(available)
    cap = rows_per_pair(counts, config, PLENTY)
    assert 1 <= cap <= 250
    assert int(counts.clamp(max=cap).sum()) <= budget
    assert cap == 250 or int(counts.clamp(max=cap + 1).sum()) > budget


def test_little_memory_means_fewer_rows() -> None:
    counts = torch.full((100,), 10_000)
    assert rows_per_pair(counts, SamplingConfig(), PLENTY) == 10_000
    assert rows_per_pair(counts, SamplingConfig(memory_share=0.5), memory=320 * 100 * 1000) == 1000


def test_relaxing_joins_what_is_apart_and_nothing_else() -> None:
    nodes = torch.tensor([[0, 1], [1, 2], [0, 2], [2, 3], [2, 3], [4, 5]])
    sound = torch.tensor([[1, 1, 1], [0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0]]).bool()
    support = torch.tensor([0.9, 0.3, 0.5, 0.2, 0.4, 0.0])[:, None].expand(6, 3)
    assert relaxations(nodes, sound, support).tolist() == [0, -1, 1, -1, 2, -1]


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_relaxing_connects_whatever_the_loosest_step_connects(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = torch.from_numpy(rng.integers(count, size=(12, 2)))
    first = torch.from_numpy(rng.integers(5, size=12))
    sound = torch.arange(4) >= first[:, None]
    step = relaxations(nodes, sound, torch.from_numpy(rng.random((12, 4))))

    def components(kept: torch.Tensor) -> list[int]:
        a, b = nodes[kept].numpy().T
        graph = coo_array((np.ones(len(a)), (a, b)), shape=(count, count))
        return connected_components(graph, directed=False)[1].tolist()

    assert components(step >= 0) == components(sound[:, -1])
    assert torch.equal(step == 0, sound[:, 0])
    assert int((step > 0).sum()) == len(set(components(sound[:, 0]))) - len(set(components(step >= 0)))


def test_defaults_are_the_papers() -> None:
    config = SamplingConfig()
    assert (config.confidence, config.depth_consistency, config.max_per_pair) == (0.5, 0.2, 10_000)
    assert config.weights == "kept"
    assert config.thresholds() == pytest.approx((0.2, 0.3, 0.45, 0.675))


@pytest.mark.parametrize("wrong", [{"depth_consistency": 0.0}, {"relax_factor": 1.0}, {"max_per_pair": 0}])
def test_settings_out_of_range_are_told(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="sampling"):
        SamplingConfig(**wrong)  # type: ignore[arg-type]

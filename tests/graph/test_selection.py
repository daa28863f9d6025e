"""Selection: spanning trees, hop distance, connectivity, linear size."""

import networkx
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.graph.hops import hop_distance
from geoweaver.graph.selection import SelectionConfig, select_edges, spanning_tree


def random_pairs(frames: int, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(frames, (count, 2), generator=generator).sort(1).values
    pairs = torch.unique(ends[ends[:, 0] < ends[:, 1]], dim=0)
    return pairs, torch.rand(len(pairs), generator=generator, dtype=torch.float64)


def chain_of(frames: int) -> torch.Tensor:
    return torch.stack([torch.arange(frames - 1), torch.arange(1, frames)], 1)


def graph_of(frames: int, *edges: torch.Tensor) -> networkx.Graph:
    graph = networkx.empty_graph(frames)
    graph.add_edges_from(torch.cat(edges).tolist())
    return graph


@given(st.integers(2, 40), st.integers(1, 120), st.integers(0, 10_000))
def test_the_tree_weighs_as_much_as_networkx_says(frames: int, count: int, seed: int) -> None:
    pairs, score = random_pairs(frames, count, seed)
    rows = spanning_tree(frames, pairs, score)
    graph = networkx.empty_graph(frames)
    graph.add_weighted_edges_from([(i, j, float(s)) for (i, j), s in zip(pairs.tolist(), score, strict=True)])
    tree = networkx.maximum_spanning_tree(graph)
    assert abs(float(score[rows].sum()) - tree.size(weight="weight")) < 1e-9
    assert len(rows) == tree.number_of_edges()


@given(st.integers(2, 40), st.integers(0, 60), st.integers(0, 10_000))
def test_hops_are_shortest_paths(frames: int, count: int, seed: int) -> None:
    edges, _ = random_pairs(frames, count, seed)
    pairs, _ = random_pairs(frames, 40, seed + 1)
    hops = hop_distance(frames, edges, pairs)
    lengths = dict(networkx.all_pairs_shortest_path_length(graph_of(frames, edges)))
    for (i, j), hop in zip(pairs.tolist(), hops.tolist(), strict=True):
        assert hop == lengths[i].get(j, float("inf"))


@given(st.integers(3, 60), st.integers(1, 200), st.integers(0, 10_000), st.integers(1, 4))
def test_joins_all_that_candidates_can_join_with_few_edges(
    frames: int, count: int, seed: int, trees: int
) -> None:
    pairs, rank = random_pairs(frames, count, seed)
    chain = chain_of(frames)[: frames // 3]
    chosen = select_edges(frames, chain, pairs, rank, SelectionConfig(trees=trees, min_rank=0.9))
    assert int(chosen.sum()) <= trees * (frames - 1)
    with_all = networkx.number_connected_components(graph_of(frames, chain, pairs))
    assert networkx.number_connected_components(graph_of(frames, chain, pairs[chosen])) == with_all


def test_a_low_rank_is_left_out_where_it_joins_nothing() -> None:
    pairs, rank = torch.tensor([[0, 50], [10, 60]]), torch.tensor([0.95, 0.5], dtype=torch.float64)
    assert select_edges(100, chain_of(100), pairs, rank, SelectionConfig()).tolist() == [True, False]
    apart = torch.cat([chain_of(55), chain_of(45) + 55])
    assert select_edges(100, apart, pairs, rank, SelectionConfig()).tolist() == [True, True]


def test_distance_in_the_graph_outvotes_a_little_more_likeness() -> None:
    """Three pairs close a cycle, so one is left out: the least alike, or with modulation the nearest."""
    pairs = torch.tensor([[0, 20], [20, 90], [0, 90]])
    rank = torch.tensor([0.97, 0.95, 0.94], dtype=torch.float64)
    plain = select_edges(100, chain_of(100), pairs, rank, SelectionConfig(trees=1, far=0.0))
    modulated = select_edges(100, chain_of(100), pairs, rank, SelectionConfig(trees=1, far=0.5))
    assert plain.tolist() == [True, True, False]
    assert modulated.tolist() == [False, True, True]


def test_a_second_tree_takes_other_edges() -> None:
    pairs, rank = random_pairs(50, 400, 3)
    one = select_edges(50, chain_of(50), pairs, rank, SelectionConfig(trees=1, min_rank=0))
    two = select_edges(50, chain_of(50), pairs, rank, SelectionConfig(trees=2, min_rank=0))
    assert (two & one).sum() == one.sum() == 49
    assert two.sum() == 98

"""The whole graph: connected, linear in the frames, verified, sorted."""

import networkx
import torch

from geoweaver.datatypes import Chunk, EdgeKind, ViewGraph
from geoweaver.graph import GraphConfig, SelectionConfig, build_graph


def cut(first: int, frames: int, size: int = 60) -> list[Chunk]:
    starts = range(first, first + frames - 1, size - 1)
    return [Chunk(0, tuple(range(s, min(s + size, first + frames)))) for s in starts]


def ring(frames: int, laps: float, dimensions: int = 32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    phase = torch.linspace(0, laps * 2 * torch.pi, frames)[:, None] * torch.arange(1, 9)
    return torch.cat([phase.sin(), phase.cos()], 1) @ torch.randn(16, dimensions, generator=generator)


def components(graph: ViewGraph, frames: int) -> int:
    net = networkx.empty_graph(frames)
    net.add_edges_from(graph.edges.tolist())
    return networkx.number_connected_components(net)


def long_range(graph: ViewGraph) -> torch.Tensor:
    return graph.edges[graph.kind == EdgeKind.LONG_RANGE]


def test_is_sorted_unique_and_forward() -> None:
    graph = build_graph(cut(0, 300), torch.zeros(300, dtype=torch.long), ring(300, 2))
    key = graph.edges[:, 0] * 300 + graph.edges[:, 1]
    assert (key.diff() > 0).all() and (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert set(graph.kind.tolist()) == {0, 1, 2}


def test_edges_are_linear_in_frames() -> None:
    sizes = [
        len(build_graph(cut(0, n), torch.zeros(n, dtype=torch.long), ring(n, n / 150))) for n in (300, 1200)
    ]
    assert 3.5 < sizes[1] / sizes[0] < 4.5
    assert sizes[1] < 1200 * 7


def test_five_thousand_frames() -> None:
    graph = build_graph(cut(0, 5000), torch.zeros(5000, dtype=torch.long), ring(5000, 6))
    assert components(graph, 5000) == 1
    lap = (long_range(graph).diff(dim=1).flatten().double() / (4999 / 6) - 1).abs()
    assert (lap < 0.02).any(), "the loop is closed"


def test_two_cameras_are_joined_by_what_they_both_see() -> None:
    camera = torch.cat([torch.zeros(100, dtype=torch.long), torch.ones(80, dtype=torch.long)])
    descriptors = torch.cat([ring(100, 1), ring(80, 1)])
    graph = build_graph([*cut(0, 100), *cut(100, 80)], camera, descriptors)
    assert components(graph, 180) == 1
    temporal = graph.edges[graph.kind != EdgeKind.LONG_RANGE]
    assert (camera[temporal[:, 0]] == camera[temporal[:, 1]]).all()


def test_verification_has_the_last_word_on_candidates() -> None:
    camera, asked = torch.zeros(300, dtype=torch.long), []

    def verify(pairs: torch.Tensor) -> torch.Tensor:
        asked.append(len(pairs))
        gap = pairs[:, 1] - pairs[:, 0]
        return torch.where((gap == 1) | (pairs[:, 0] % 2 == 0), 80, 0)

    chosen = long_range(build_graph(cut(0, 300), camera, ring(300, 2), verify=verify))
    assert len(chosen) > 100 and (chosen[:, 0] % 2 == 0).all()
    assert sum(asked) <= 300 * 6
    none = build_graph(cut(0, 300), camera, ring(300, 2), verify=lambda p: torch.zeros(len(p)))
    assert len(long_range(none)) == 0


def test_a_weak_link_is_mended_and_bridged() -> None:
    camera = torch.zeros(300, dtype=torch.long)

    def verify(pairs: torch.Tensor) -> torch.Tensor:
        return torch.where((pairs[:, 0] == 99) & (pairs[:, 1] == 100), 3, 60)

    plain = build_graph(cut(0, 300), camera, ring(300, 2))
    mended = build_graph(cut(0, 300), camera, ring(300, 2), verify=verify)
    near = {(i, j) for i, j in mended.edges[mended.kind != EdgeKind.LONG_RANGE].tolist()}
    assert {(i, j) for i in (97, 98, 99) for j in (100, 101, 102)} <= near
    assert len(near) > int((plain.kind != EdgeKind.LONG_RANGE).sum())


def test_no_trees_no_long_range() -> None:
    config = GraphConfig(selection=SelectionConfig(trees=0))
    graph = build_graph(cut(0, 120), torch.zeros(120, dtype=torch.long), ring(120, 2), config)
    assert len(long_range(graph)) == 0 and components(graph, 120) == 1


def test_a_single_frame_has_no_edges() -> None:
    graph = build_graph([Chunk(0, (0,))], torch.zeros(1, dtype=torch.long), torch.ones(1, 4))
    assert graph.edges.shape == (0, 2)


def test_the_same_twice() -> None:
    made = [build_graph(cut(0, 300), torch.zeros(300, dtype=torch.long), ring(300, 3)) for _ in range(2)]
    assert torch.equal(made[0].edges, made[1].edges) and torch.equal(made[0].kind, made[1].kind)

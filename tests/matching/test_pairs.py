"""Observation pairs: all of them across chunks, each edge once for frames, none lost at a border."""

import torch
from box_room import make_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from geoweaver.datatypes import Observations, ViewGraph
from geoweaver.geometry import SE3
from geoweaver.matching import TIE, canonical_observation, chunk_pairs, frame_pairs


def index(frame: list[int], chunk: list[int], confidence: list[float] | None = None) -> Observations:
    n = len(frame)
    return Observations(
        torch.tensor(frame, dtype=torch.long),
        torch.tensor(chunk, dtype=torch.long),
        SE3.identity(n),
        torch.ones(n, 4, dtype=torch.float64),
        torch.tensor(confidence if confidence is not None else [1.0] * n, dtype=torch.float64),
        (4, 4),
    )


def chain(chunks: int, length: int, confidence: int = 0) -> Observations:
    """Chunks that share one frame with the next."""
    frame = [k * (length - 1) + n for k in range(chunks) for n in range(length)]
    rng = torch.Generator().manual_seed(confidence)
    return index(
        frame,
        [k for k in range(chunks) for _ in range(length)],
        torch.rand(len(frame), generator=rng).tolist(),
    )


def temporal(frames: int, reach: int = 3) -> ViewGraph:
    return make_graph([(i, j) for i in range(frames) for j in range(i + 1, min(i + reach + 1, frames))])


def brute_force(graph: ViewGraph, observations: Observations) -> set[tuple[int, int, int]]:
    frame, chunk = observations.frame.tolist(), observations.chunk.tolist()
    everyone = [(i, j) for i in range(len(frame)) for j in range(len(frame)) if chunk[i] != chunk[j]]
    edges = enumerate(graph.edges.tolist())
    pairs = {(e, i, j) for e, (a, b) in edges for i, j in everyone if (frame[i], frame[j]) == (a, b)}
    return pairs | {(TIE, i, j) for i, j in everyone if frame[i] == frame[j] and i < j}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=14, unique=True),
       st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=8))  # fmt: skip
def test_chunk_pairs_are_all_combinations_across_chunks(
    seen: list[tuple[int, int]], edges: list[tuple[int, int]]
) -> None:
    observations = index([f for f, _ in seen], [k for _, k in seen])
    graph = make_graph([(a, b) for a, b in edges if a < b])
    pairs = [tuple(p) for p in chunk_pairs(graph, observations).tolist()]
    assert len(set(pairs)) == len(pairs)
    assert pairs == sorted(brute_force(graph, observations))


@settings(max_examples=30)
@given(st.integers(2, 5), st.integers(3, 6), st.integers(0, 99))
def test_no_edge_is_lost_or_doubled_at_a_border(chunks: int, length: int, seed: int) -> None:
    observations = chain(chunks, length, seed)
    graph = temporal(int(observations.frame.max()) + 1)
    pairs = frame_pairs(graph, observations, canonical_observation(observations))
    assert pairs[:, 0].tolist() == list(range(len(graph)))
    for k in range(1, chunks):
        border = k * (length - 1)
        crossing = (graph.edges[:, 0] <= border) & (graph.edges[:, 1] >= border)
        after = graph.edges[pairs[:, 0]]
        assert int(((after[:, 0] <= border) & (after[:, 1] >= border)).sum()) == int(crossing.sum()) > 0
    assert torch.equal(observations.frame[pairs[:, 1:]], graph.edges)


def test_the_more_confident_observation_is_canonical() -> None:
    observations = index([0, 1, 1, 3, 3], [0, 0, 1, 1, 2], [0.5, 0.2, 0.9, 0.4, 0.4])
    assert canonical_observation(observations).tolist() == [0, 2, -1, 3]
    assert canonical_observation(observations, frames=6).tolist() == [0, 2, -1, 3, -1, -1]


def test_a_confidence_that_is_no_number_loses() -> None:
    assert canonical_observation(index([0, 0], [0, 1], [float("nan"), 0.1])).tolist() == [1]
    assert canonical_observation(index([0], [0], [float("nan")])).tolist() == [0]


def test_frames_that_nobody_saw_have_no_pairs() -> None:
    observations = index([0, 1], [0, 0])
    graph = make_graph([(0, 1), (1, 7)])
    assert frame_pairs(graph, observations, canonical_observation(observations)).tolist() == [[0, 0, 1]]
    assert len(chunk_pairs(graph, observations)) == 0


def test_nothing_at_all_is_no_error() -> None:
    none = index([], [])
    assert len(canonical_observation(none)) == 0
    assert chunk_pairs(make_graph([]), none).shape == (0, 3)
    assert frame_pairs(make_graph([]), none, canonical_observation(none)).shape == (0, 3)

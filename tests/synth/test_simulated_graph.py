"""The simulated graph: true edges see the same things, wrong ones do not,
and their number is linear in the frames."""

import numpy as np
import pytest
import torch
from pillar_room import room

from geoweaver.datatypes import EdgeKind
from geoweaver.errors import ConfigError
from geoweaver.synth.simulated_graph import GraphChoice, simulate_graph
from geoweaver.synth.simulated_truth import consecutive_chunks, in_image, projected, seen_points, visible

torch.set_num_threads(1)
TRUTH = room(frames=240, laps=2.0, depth_size=(32, 18))
CHUNKS = consecutive_chunks(240)
CHOICE = GraphChoice(wrong=0.25)
GRAPH, WRONG = simulate_graph(TRUTH, CHUNKS, CHOICE, 0)


def seen_share(i: int, j: int) -> float:
    """Share of 200 random points of frame i that frame j really sees."""
    pixel = torch.rand(200, 2, dtype=torch.float64) * torch.tensor(TRUTH.size)
    points, _ = seen_points(TRUTH, torch.full((200,), i), pixel)
    there, inside = projected(TRUTH, torch.full((200,), j), points)
    assert (in_image(there, TRUTH.size) | ~inside).all()
    return float((inside & visible(TRUTH, torch.full((200,), j), points)).double().mean())


def test_edges_are_sorted_pairs_without_repetition() -> None:
    i, j = GRAPH.edges.unbind(-1)
    assert (i < j).all() and (i >= 0).all() and (j < 240).all()
    code = i * 240 + j
    assert (code.diff() > 0).all()


def test_kinds_say_where_the_frames_are() -> None:
    chunks_of = [{c.index for c in CHUNKS if f in c.frames} for f in range(240)]
    for (i, j), kind in zip(GRAPH.edges.tolist(), GRAPH.kind.tolist(), strict=True):
        if kind == EdgeKind.LONG_RANGE:
            assert j - i >= CHOICE.gap
        else:
            assert (kind == EdgeKind.TEMPORAL) == bool(chunks_of[i] & chunks_of[j])
    pairs = set(map(tuple, GRAPH.edges.tolist()))
    assert all((i, i + o) in pairs for o in (1, 2, 4, 8) for i in range(240 - o))
    assert {(59 - a, 59 + b) for a in (1, 2, 4, 8) for b in (1, 2, 4, 8)} <= pairs


def test_true_long_range_edges_are_covisible() -> None:
    torch.manual_seed(0)
    true = GRAPH.edges[(GRAPH.kind == EdgeKind.LONG_RANGE) & ~WRONG]
    assert len(true) > 60
    shares = [min(seen_share(i, j), seen_share(j, i)) for i, j in true[::5].tolist()]
    assert np.min(shares) > 0.1 and np.mean(np.array(shares) > CHOICE.overlap - 0.05) > 0.9


def test_wrong_edges_have_their_share_and_see_less_than_true_ones() -> None:
    torch.manual_seed(0)
    long = GRAPH.kind == EdgeKind.LONG_RANGE
    assert (WRONG & ~long).sum() == 0
    assert float(WRONG.sum() / long.sum()) == pytest.approx(0.25, abs=0.01)
    shares = [min(seen_share(i, j), seen_share(j, i)) for i, j in GRAPH.edges[WRONG][::3].tolist()]
    assert np.mean(shares) < 0.1


def test_wrong_edges_come_in_runs() -> None:
    pairs = set(map(tuple, GRAPH.edges[WRONG].tolist()))
    followed = [(i + 2, j + 2) in pairs or (i - 2, j - 2) in pairs for i, j in pairs]
    assert np.mean(followed) > 0.8


def test_the_number_of_edges_is_linear_in_the_frames() -> None:
    for frames, laps in ((240, 2.0), (480, 6.0)):
        truth = room(frames, laps, (32, 18))
        graph, _ = simulate_graph(truth, consecutive_chunks(frames), CHOICE, 0)
        assert len(graph) <= frames * (4 + 16 / 59 + 3 / (1 - CHOICE.wrong))


def test_same_seed_same_graph_and_shares_out_of_range_are_refused() -> None:
    again, wrong = simulate_graph(TRUTH, CHUNKS, CHOICE, 0)
    assert torch.equal(again.edges, GRAPH.edges) and torch.equal(wrong, WRONG)
    other, _ = simulate_graph(TRUTH, CHUNKS, CHOICE, 1)
    assert not torch.equal(other.edges, GRAPH.edges)
    none, wrong = simulate_graph(TRUTH, CHUNKS, GraphChoice(wrong=0.0), 0)
    assert not wrong.any() and len(none) < len(GRAPH)
    with pytest.raises(ConfigError, match=r"0 to 0.5"):
        GraphChoice(wrong=0.7)


def test_two_frames_make_one_edge() -> None:
    graph, wrong = simulate_graph(room(2, 0.02, (32, 18)), consecutive_chunks(2), GraphChoice(), 0)
    assert graph.edges.tolist() == [[0, 1]] and not wrong.any()

"""The simulated matches: exact where they should be, wrong in the stated ways and shares elsewhere."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from pillar_room import SIZE, room
from scipy.stats import spearmanr

from geoweaver.datatypes import ViewGraph
from geoweaver.errors import ConfigError
from geoweaver.geometry import Sim3
from geoweaver.geometry.camera import lift, project, resize_intrinsics, sample_bilinear
from geoweaver.synth import simulated_matches
from geoweaver.synth.simulated_graph import GraphChoice, simulate_graph
from geoweaver.synth.simulated_matches import (
    LabelledMatches,
    MatchLabel,
    MatchNoise,
    simulate_labelled_matches,
    simulate_matches,
)
from geoweaver.synth.simulated_outliers import borrowed_frame, borrowed_warp
from geoweaver.synth.simulated_prior import PriorNoise, simulate_chunk
from geoweaver.synth.simulated_truth import consecutive_chunks, in_image, projected, seen_points, visible

torch.set_num_threads(1)
TRUTH = room(frames=120, laps=1.6)
CHUNKS = consecutive_chunks(120)
GRAPH, WRONG = simulate_graph(TRUTH, CHUNKS, GraphChoice(wrong=0.2), 0)
EXACT = MatchNoise.exact()


def made(noise: MatchNoise, per_edge: int = 120, seed: int = 0, wrong: bool = False) -> LabelledMatches:
    """Matches of all edges, or of the right ones only."""
    if wrong:
        return simulate_labelled_matches(TRUTH, GRAPH, noise, seed, per_edge, WRONG)
    right = ViewGraph(GRAPH.edges[~WRONG], GRAPH.kind[~WRONG])
    return simulate_labelled_matches(TRUTH, right, noise, seed, per_edge)


def true_error(labelled: LabelledMatches, edges: torch.Tensor) -> torch.Tensor:
    """pixel_j minus where the point behind pixel_i really is (nan where it is behind the camera or
    outside)."""
    m = labelled.matches
    points, _ = seen_points(TRUTH, edges[m.edge, 0], m.pixel_i)
    there, inside = projected(TRUTH, edges[m.edge, 1], points)
    return torch.where(inside[:, None], m.pixel_j - there, torch.nan)


RIGHT = GRAPH.edges[~WRONG]


def test_exact_matches_reproject_exactly_and_are_visible() -> None:
    labelled = made(EXACT)
    m = labelled.matches
    i, j = RIGHT[m.edge].unbind(-1)
    points, depth = seen_points(TRUTH, i, m.pixel_i)
    lifted = TRUTH.cam_from_world[i].inverse().act(lift(m.pixel_i, depth, TRUTH.intrinsics[i]))
    back = project(TRUTH.cam_from_world[j].act(lifted), TRUTH.intrinsics[j])
    assert (back - m.pixel_j).norm(dim=1).max() < 1e-6
    other, _ = seen_points(TRUTH, j, m.pixel_j)
    assert (other - points).norm(dim=1).max() < 1e-6
    assert (labelled.label == MatchLabel.TRUE).all()
    assert in_image(m.pixel_i, SIZE).all() and in_image(m.pixel_j, SIZE).all()
    assert (m.score > 0.95).all() and (m.edge.diff() >= 0).all()


def test_exact_prior_and_matches_agree_across_chunks_through_sampled_depth() -> None:
    """What Stage 2 does: lift with the chunk's own depth map, move by the true gauges,
    project into another chunk."""
    made_chunks = [simulate_chunk(TRUTH, chunk, PriorNoise.exact(), 4) for chunk in CHUNKS]
    of_frame = {int(f): (k, at) for k, c in enumerate(made_chunks) for at, f in enumerate(c.prior.frame)}
    m = made(EXACT).matches
    errors = []
    for edge in range(0, len(RIGHT), 7):
        (ki, ai), (kj, aj) = (of_frame[f] for f in RIGHT[edge].tolist())
        pixel_i, pixel_j = m.pixel_i[m.edge == edge], m.pixel_j[m.edge == edge]
        a, b = made_chunks[ki], made_chunks[kj]
        small = pixel_i * torch.tensor([96 / 512, 54 / 288])
        depth, valid = sample_bilinear(a.prior.depth[ai].double(), small, max_jump=0.1)
        k_i, k_j = (resize_intrinsics(p.prior.intrinsics[at], (96, 54), SIZE) for p, at in ((a, ai), (b, aj)))
        world = (a.world_from_chunk @ Sim3.from_se3(a.prior.cam_from_chunk[ai].inverse())).act(
            lift(pixel_i, depth, k_i)
        )
        in_b = b.prior.cam_from_chunk[aj].act(b.world_from_chunk.inverse().act(world))
        errors.append((project(in_b, k_j) - pixel_j).norm(dim=1)[valid])
    error = torch.cat(errors)
    assert len(error) > 1000
    assert error.median() < 1e-3 and error.quantile(0.9) < 0.5


def test_pixel_noise_has_the_stated_size_and_tail() -> None:
    noise = replace(EXACT, sigma=0.8)
    error = true_error(made(noise), RIGHT)
    error = error[~error.isnan().any(1)]
    assert float(error.std()) == pytest.approx(0.8, rel=0.05)
    tailed = true_error(made(replace(noise, tail=0.1)), RIGHT)
    tailed = tailed[~tailed.isnan().any(1)].flatten()
    assert float(tailed.std()) == pytest.approx(0.8 * math.sqrt(0.9 + 0.1 * 16), rel=0.06)
    kurtosis = float((tailed / tailed.std()).pow(4).mean())
    assert kurtosis > 5 > float((error / error.std()).pow(4).mean())


def test_noise_scales_with_the_image() -> None:
    big = replace(TRUTH, size=(1024, 576), intrinsics=2 * TRUTH.intrinsics)
    graph = ViewGraph(GRAPH.edges[:50], GRAPH.kind[:50])
    small, large = (simulate_matches(t, graph, MatchNoise.default(), 0, 60) for t in (TRUTH, big))
    assert torch.equal(small.edge, large.edge)
    torch.testing.assert_close(2 * small.pixel_j, large.pixel_j, rtol=0, atol=1e-6)
    torch.testing.assert_close(small.score, large.score)


def test_noise_is_correlated_between_neighbours() -> None:
    def neighbours(correlated: float) -> float:
        labelled = made(replace(EXACT, sigma=1.0, correlated=correlated), per_edge=300)
        error, m = true_error(labelled, RIGHT), labelled.matches
        pairs = []
        for edge in range(0, 60, 2):
            at = (m.edge == edge).nonzero()[:, 0]
            close = torch.cdist(m.pixel_i[at], m.pixel_i[at]) < 8
            first, second = close.triu(1).nonzero(as_tuple=True)
            pairs.append(torch.stack([error[at][first], error[at][second]]))
        a, b = torch.cat(pairs, 1)
        good = ~(a + b).isnan().any(1)
        return float(np.corrcoef(a[good].flatten(), b[good].flatten())[0, 1])

    assert neighbours(0.0) < 0.1
    assert 0.35 < neighbours(0.5) < 0.6
    assert neighbours(1.0) > 0.85


def test_noise_grows_with_the_baseline() -> None:
    error = true_error(made(replace(EXACT, sigma=0.5, growth=1.0)), RIGHT).norm(dim=1)
    m = made(replace(EXACT, sigma=0.5, growth=1.0)).matches
    gap = (RIGHT[m.edge, 1] - RIGHT[m.edge, 0])[~error.isnan()]
    error = error[~error.isnan()]
    assert error[gap == 8].mean() > 1.1 * error[gap == 1].mean()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_outlier_shares_are_as_stated(share: float) -> None:
    noise = MatchNoise.default().with_outliers(share)
    label = made(noise).label
    counts = torch.bincount(label, minlength=5) / len(label)
    assert float(counts[MatchLabel.STRUCTURED]) == pytest.approx(0.6 * share, abs=0.04)
    assert float(counts[MatchLabel.UNSTRUCTURED]) == pytest.approx(0.4 * share, abs=0.02)
    error = true_error(made(noise), RIGHT).norm(dim=1)
    bad = float((error > 12).double().sum() / (~error.isnan()).sum())
    assert bad == pytest.approx(share, abs=0.05)


def test_shares_above_the_range_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"at most 0\.6"):
        MatchNoise(structured=0.5, unstructured=0.2)


def test_structured_outliers_move_together() -> None:
    labelled = made(replace(EXACT, structured=0.3), per_edge=200)
    m, error = labelled.matches, true_error(labelled, RIGHT)
    spread, length = [], []
    for edge in range(40):
        mine = (m.edge == edge) & (labelled.label == MatchLabel.STRUCTURED) & ~error.isnan().any(1)
        if mine.sum() < 10:
            continue
        shifts, where = error[mine], m.pixel_i[mine]
        gap = torch.cdist(where, where) + 1e9 * torch.eye(len(where))
        near = gap.argmin(1)
        spread.append((shifts - shifts[near]).norm(dim=1).median())
        length.append(shifts.norm(dim=1).median())
    assert len(length) > 20
    assert torch.stack(spread).median() < 1 and torch.stack(length).min() > 0.02 * SIZE[0]


def test_repeated_texture_agrees_between_edges_of_one_frame() -> None:
    labelled = made(replace(EXACT, structured=0.3, repeated=1.0))
    error = true_error(labelled, RIGHT)
    mine = (labelled.label == MatchLabel.STRUCTURED) & (RIGHT[labelled.matches.edge, 0] < 30)
    shift = error[mine & ~error.isnan().any(1)]
    length, angle = shift.norm(dim=1), torch.atan2(shift[:, 1], shift[:, 0])
    # stretched by up to 4 per cent of the patch, up or down the period
    assert (length / length.median()).log().abs().quantile(0.8) < 0.3
    assert (2 * (angle - angle.median())).sin().abs().median() < 0.3


def test_occluded_matches_are_hidden() -> None:
    labelled = made(replace(EXACT, occluded=1.0))
    m = labelled.matches
    hidden = labelled.label == MatchLabel.OCCLUDED
    assert hidden.sum() > 20
    points, _ = seen_points(TRUTH, RIGHT[m.edge, 0], m.pixel_i)
    assert torch.equal(~visible(TRUTH, RIGHT[m.edge, 1], points), hidden)


def test_scores_rank_errors_mostly() -> None:
    for noise, least, most in ((MatchNoise.default(), 0.5, 0.9), (MatchNoise.hard(), 0.25, 0.7)):
        labelled = made(noise)
        error, score = true_error(labelled, RIGHT).norm(dim=1), labelled.matches.score
        assert (score > 0).all() and (score < 1).all()
        good = ~error.isnan()
        assert least < spearmanr(score[good], -error[good])[0] < most
    stray = score[labelled.label == MatchLabel.UNSTRUCTURED]
    assert (stray > 0.5).double().mean() > 0.2


def test_wrong_pairs_are_consistent_with_another_view_and_with_their_run() -> None:
    labelled = made(EXACT, wrong=True)
    m = labelled.matches
    fake = WRONG[m.edge]
    assert torch.equal(labelled.label == MatchLabel.BORROWED, fake)
    edges = GRAPH.edges[m.edge[fake]]
    pixel_i, pixel_j = m.pixel_i[fake], m.pixel_j[fake]
    warp = borrowed_warp(edges, EXACT, 0)
    middle = torch.tensor(SIZE) / 2
    plain = torch.linalg.solve(
        warp[:, :, :2], (pixel_j - middle - SIZE[0] * warp[:, :, 2])[..., None]
    ).squeeze(-1)
    points, _ = seen_points(TRUTH, edges[:, 0], pixel_i)
    borrowed, _ = projected(TRUTH, borrowed_frame(edges, len(TRUTH), 0), points)
    assert (plain + middle - borrowed).norm(dim=1).max() < 1e-6
    error = true_error(labelled, GRAPH.edges).norm(dim=1)[fake]
    assert float(((error > 20) | error.isnan()).double().mean()) > 0.9
    i, j = GRAPH.edges[WRONG].unbind(-1)
    same = (j - i) == (j - i)[0]
    assert (
        borrowed_warp(GRAPH.edges[WRONG][same], EXACT, 0)
        == borrowed_warp(GRAPH.edges[WRONG][same], EXACT, 0)[0]
    ).all()
    counts = torch.bincount(m.edge, minlength=len(GRAPH))[WRONG]
    assert counts.max() <= 120 and counts.double().mean() > 20


def test_matches_depend_on_seed_and_edge_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = MatchNoise.hard()
    whole = simulate_matches(TRUTH, GRAPH, noise, 0, 50, WRONG)
    part = ViewGraph(GRAPH.edges[100:130], GRAPH.kind[100:130])
    monkeypatch.setattr(simulated_matches, "_BLOCK_RAYS", 600)
    alone = simulate_matches(TRUTH, part, noise, 0, 50, WRONG[100:130])
    mine = (whole.edge >= 100) & (whole.edge < 130)
    assert torch.equal(whole.pixel_i[mine], alone.pixel_i)
    torch.testing.assert_close(whole.pixel_j[mine], alone.pixel_j, rtol=0, atol=1e-9)
    torch.testing.assert_close(whole.score[mine], alone.score)
    other = simulate_matches(TRUTH, part, noise, 1, 50, WRONG[100:130])
    assert len(other) != len(alone) or not torch.equal(other.pixel_i, alone.pixel_i)


def test_an_empty_graph_has_no_matches() -> None:
    none = ViewGraph(torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert len(simulate_matches(TRUTH, none, MatchNoise.default(), 0)) == 0

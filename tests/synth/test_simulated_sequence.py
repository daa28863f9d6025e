"""Whole simulated sequences: the five recipes give the assembly all it needs, with loops,
in the worlds themselves."""

import pytest
import torch

from geoweaver.datatypes import EdgeKind
from geoweaver.errors import ConfigError
from geoweaver.geometry import world_camera
from geoweaver.geometry.camera import lift, project
from geoweaver.synth.simulated_matches import MatchLabel
from geoweaver.synth.simulated_sequence import (
    PRESETS,
    RECIPES,
    Simulated,
    sequence_truth,
    simulate_scene,
    simulate_sequence,
)
from geoweaver.synth.simulated_truth import seen_points

torch.set_num_threads(1)


def reprojection(simulated: Simulated) -> torch.Tensor:
    """Error of the right matches under the true cameras and cast depth."""
    truth, m = simulated.truth, simulated.matches
    right = ~simulated.wrong_edges[m.edge] & (simulated.label == MatchLabel.TRUE)
    i, j = simulated.graph.edges[m.edge[right]].unbind(-1)
    _, depth = seen_points(truth, i, m.pixel_i[right])
    local = lift(m.pixel_i[right], depth, truth.intrinsics[i])
    moved = truth.cam_from_world[j].act(truth.cam_from_world[i].inverse().act(local))
    return (project(moved, truth.intrinsics[j]) - m.pixel_j[right]).norm(dim=1)


def test_an_exact_sequence_satisfies_the_geometry() -> None:
    simulated = simulate_sequence("apartment_walk", 100, preset="exact", per_edge=60)
    assert reprojection(simulated).max() < 1e-6
    assert [len(c) for c in simulated.chunks] == [60, 41] and len(simulated.priors) == 2
    assert not simulated.wrong_edges.any()
    for k, prior in enumerate(simulated.priors):
        placed = world_camera(simulated.world_from_chunk[k], prior.cam_from_chunk)
        truth = simulated.truth.cam_from_world[prior.frame]
        torch.testing.assert_close(placed.translation, truth.translation, rtol=0, atol=1e-9)
        depth = simulated.truth.depth_of(int(prior.frame[7]))
        scaled = prior.depth[7].double() * simulated.world_from_chunk.scale[k]
        torch.testing.assert_close(scaled, depth, rtol=1e-6, atol=0)


def test_observations_index_all_chunks_at_the_size_of_the_matches() -> None:
    simulated = simulate_sequence("tabletop_orbits", 70, preset="default", per_edge=10)
    seen = simulated.observations
    assert seen.chunks == 2 and len(seen) == 71 and seen.size == simulated.truth.size
    assert seen.frame.tolist() == [*range(60), *range(59, 70)]
    assert seen.chunk.tolist() == [0] * 60 + [1] * 11
    error = seen.intrinsics / simulated.truth.intrinsics[seen.frame]
    assert (error[:, 2:] - 1).abs().max() < 1e-12 and 0 < float((error[:, :2] - 1).abs().max()) < 0.1
    prior = simulated.priors[1]
    mean = prior.confidence[3][prior.depth[3] > 0].double().mean()
    assert float(seen.confidence[63]) == pytest.approx(float(mean), rel=1e-5)


def test_same_seed_same_sequence_and_other_names_have_other_errors() -> None:
    one, again = (simulate_sequence("tabletop_orbits", 70, 1, "hard", 20) for _ in range(2))
    assert torch.equal(one.matches.pixel_j, again.matches.pixel_j)
    assert torch.equal(one.priors[1].depth, again.priors[1].depth)
    other = simulate_sequence("corridor_loop", 70, 1, "hard", 20)
    ratio = one.priors[0].intrinsics[:, 0] / other.priors[0].intrinsics[:, 0]
    assert ratio.std() > 1e-4


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="apartment_walk"):
        simulate_sequence("nowhere")
    with pytest.raises(ConfigError, match="hard"):
        simulate_sequence("apartment_walk", preset="easy")


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_come_back_and_stay_clear_of_walls(name: str) -> None:
    truth = sequence_truth(name, depth_size=(48, 27))
    assert 300 <= len(truth) <= 1000
    every = [truth.depth_of(f) for f in range(0, len(truth), 5)]
    assert all((d > 0).double().mean() > 0.3 for d in every)
    assert min(float(d[d > 0].min()) for d in every) > 0.1
    nearby = torch.cdist(truth.cam_from_world.centre[:40:4], truth.cam_from_world.centre[len(truth) // 3 :])
    scale = torch.stack([d[d > 0].median() for d in every]).median()
    assert nearby.min() < 0.3 * scale


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_recipes_have_loops_and_enough_matches(name: str) -> None:
    simulated = simulate_scene(
        sequence_truth(name, seed=2, depth_size=(48, 27)), PRESETS["hard"], 2, per_edge=40
    )
    long = simulated.graph.kind == EdgeKind.LONG_RANGE
    loops = long & ~simulated.wrong_edges
    assert loops.sum() > 30 and float(simulated.wrong_edges.sum() / long.sum()) == pytest.approx(
        0.3, abs=0.02
    )
    count = torch.bincount(simulated.matches.edge, minlength=len(simulated.graph))
    assert (count[~simulated.wrong_edges] >= 8).double().mean() > 0.97
    assert (count[simulated.wrong_edges] >= 8).double().mean() > 0.8
    assert reprojection(simulated).median() < 4

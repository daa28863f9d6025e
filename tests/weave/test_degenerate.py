"""Input that determines little or nothing: an honest verdict or one clear line, never NaN."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from geoweaver.datatypes import Observations
from geoweaver.errors import DegenerateError
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import rotation_angle
from geoweaver.weave import WeaveConfig, weave
from tests.synth.pillar_room import walk
from tests.weave.tiny import Tiny, along, assert_finite, ate, some_frames, tiny, woven


@cache
def short() -> Tiny:
    """Three chunks of eight frames: 0 to 7, 7 to 14, 14 to 21."""
    return tiny(frames=22, chunk=8, laps=0.25, per_edge=80)


def test_the_short_walk_itself_is_trusted() -> None:
    case = short()
    result = woven(case)
    assert_finite(result)
    assert result.trust.trusted.all()
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.05


def test_one_chunk() -> None:
    case = tiny(frames=10, chunk=12, laps=0.12, per_edge=80)
    result = woven(case)
    assert_finite(result)
    assert result.stage1.world_from_chunk.scale.tolist() == [1.0]
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.05
    assert result.trust.trusted.all()


@pytest.mark.parametrize(("frames", "chunk"), [(1, 12), (2, 12), (3, 2)])
def test_a_few_frames(frames: int, chunk: int) -> None:
    result = woven(tiny(frames=frames, chunk=chunk, laps=0.01 * frames, per_edge=150))
    assert_finite(result)
    assert len(result.state.cam_from_world) == frames
    if frames == 1:
        assert "no matches" in result.trust.reason[0] and result.trust.sigma.isinf().all()


def test_a_chunk_that_nothing_ties_is_said_to_be_loose() -> None:
    case = short()
    first, second = case.graph.edges.unbind(1)
    loner = some_frames(case.priors[2], list(range(1, 8)))
    case = replace(case.without_edges((first <= 14) & (second > 14)), priors=(*case.priors[:2], loner))
    result = woven(case)
    assert_finite(result)
    assert result.stage2.component.tolist() == [0, 0, 1]
    assert result.trust.trusted[:15].all() and not result.trust.trusted[15:].any()
    assert all("no verified match ties" in r for r in result.trust.reason[15:])
    assert result.trust.sigma[15:].isinf().all() and result.trust.sigma[:15].isfinite().all()
    assert any("2 loose pieces" in note for note in result.reports[0].notes)
    # each piece is right in itself
    for piece in (slice(0, 15), slice(15, 22)):
        assert ate(result.state.cam_from_world[piece], case.truth.cam_from_world[piece]) < 0.1


def test_matches_with_a_loose_piece_accuse_nobody() -> None:
    """Where a link failed the piece beyond it lies anywhere: the larger one must not doubt the smaller."""
    case = short()
    first, second = case.graph.edges.unbind(1)
    across = ((first <= 14) & (second > 14))[case.matches.edge]
    pixel = case.matches.pixel_j.clone()
    # most matches across are wrong, so that the link is not verified; they stay in the table
    wrong = across & (torch.arange(len(pixel)) % 10 != 0)
    turned = torch.randperm(int(wrong.sum()), generator=torch.Generator().manual_seed(0))
    pixel[wrong] = pixel[wrong][turned]
    loner = some_frames(case.priors[2], list(range(1, 8)))
    matches = replace(case.matches, pixel_j=pixel)
    result = woven(replace(case, matches=matches, priors=(*case.priors[:2], loner)))
    assert result.stage2.component.tolist() == [0, 0, 1]
    assert result.trust.trusted[:15].all() and not result.trust.contradicted.any()
    assert all("no verified match ties" in r for r in result.trust.reason[15:])


@pytest.mark.parametrize("nothing", [0.0, torch.nan, torch.inf, -1.0])
def test_depth_that_is_nowhere_valid(nothing: float) -> None:
    case = short()
    result = woven(case.with_depth({k: torch.full_like(p.depth, nothing) for k, p in enumerate(case.priors)}))
    assert_finite(result)
    assert not result.trust.trusted.any()
    assert all("no matches with depth" in r for r in result.trust.reason)


def test_one_chunk_without_depth_takes_the_sequence_apart() -> None:
    case = short()
    result = woven(case.with_depth({1: torch.zeros_like(case.priors[1].depth)}))
    assert_finite(result)
    middle = range(8, 14)
    assert not any(bool(result.trust.trusted[f]) for f in middle)
    assert len(result.stage2.component.unique()) == 3
    # at most one of the two sound ends is the main piece
    assert not (result.trust.trusted[:7].any() and result.trust.trusted[15:].any())


def test_nan_in_depth_and_confidence_costs_only_what_it_touches() -> None:
    case = short()
    depth, confidence = case.priors[1].depth.clone(), case.priors[1].confidence.clone()
    depth[2], depth[3, 5:20, 10:30], depth[4] = torch.nan, torch.nan, torch.inf
    confidence[5, :10], confidence[6] = torch.nan, torch.nan
    spoiled = replace(case.priors[1], depth=depth, confidence=confidence)
    result = woven(replace(case, priors=(case.priors[0], spoiled, case.priors[2])))
    assert_finite(result)
    untrusted = (~result.trust.trusted).nonzero().flatten().tolist()
    assert set(untrusted) <= {9, 11, 13} and {9, 11} <= set(untrusted)
    sound = result.trust.trusted
    assert ate(result.state.cam_from_world[sound], case.truth.cam_from_world[sound]) < 0.1


def test_pure_rotation() -> None:
    """Nothing but the prior's depth says how far things are; the turns are all that the data show."""
    turn = walk(22, 0.25).rotation
    place = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    case = along(SE3(turn, -(turn @ place)), chunk=8, per_edge=80)
    result = woven(case)
    assert_finite(result)
    estimate = result.state.cam_from_world
    between = estimate.rotation @ estimate.rotation[0].mT @ turn[0] @ turn.mT
    assert rotation_angle(between).max() < 0.03
    # world unit: the first chunk's median depth
    assert (estimate.centre - estimate.centre.mean(0)).norm(dim=-1).max() < 0.05
    assert result.trust.trusted.all()


def test_a_straight_track_is_trusted() -> None:
    """Centres on a line leave the turn about it open; the cameras' own rotations do not."""
    s = torch.linspace(-2, 2, 22, dtype=torch.float64)
    rotation = walk(8, 0.25).rotation[0].expand(22, 3, 3)
    centre = torch.stack([s, torch.full_like(s, 3.0), 0 * s], -1)
    case = along(SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1)), chunk=8, per_edge=80)
    result = woven(case)
    assert_finite(result)
    assert result.trust.trusted.all()
    assert result.trust.sigma[:, 1].max() < 0.1


def test_a_graph_without_edges() -> None:
    """Shared frames alone still lay out the chunks; no frame was seen twice, so none is trusted."""
    case = short()
    result = woven(case.without_edges(torch.ones(len(case.graph), dtype=torch.bool)))
    assert_finite(result)
    assert result.stage2.component.tolist() == [0, 0, 0]
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.2
    assert not result.trust.trusted.any()


def test_edges_without_matches() -> None:
    case = short()
    none = replace(
        case.matches, edge=case.matches.edge[:0], pixel_i=case.matches.pixel_i[:0],
        pixel_j=case.matches.pixel_j[:0], score=case.matches.score[:0],
    )  # fmt: skip
    result = woven(replace(case, matches=none))
    assert_finite(result)
    assert not result.trust.trusted.any()


def test_a_frame_in_no_chunk_lies_between_its_neighbours() -> None:
    case = short()
    gap = some_frames(case.priors[1], [0, 1, 2, 4, 5, 6, 7])
    result = woven(replace(case, priors=(case.priors[0], gap, case.priors[2])))
    assert_finite(result)
    assert int(result.tables.canonical[10]) == -1
    assert not result.trust.trusted[10] and result.trust.sigma[10].isinf().all()
    assert result.trust.trusted[:10].all() and result.trust.trusted[11:].all()
    centre = result.start.cam_from_world.centre
    assert torch.allclose(
        centre[10], (centre[9] + centre[11]) / 2, atol=0.1 * float((centre[9] - centre[11]).norm())
    )


def test_a_piece_of_one_frame_is_a_chunk_like_any_other() -> None:
    case = short()
    pieces = [some_frames(case.priors[1], rows) for rows in ([0, 1, 2, 3], [4], [5, 6, 7])]
    result = woven(replace(case, priors=(case.priors[0], *pieces, case.priors[2])))
    assert_finite(result)
    assert result.trust.trusted.all()
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.05


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_camera_without_frames_has_no_say(calibrated: bool) -> None:
    case, group = short(), torch.tensor([0] * 11 + [2] * 11)
    result = weave(
        case.observations, case.graph, case.matches, case.priors.__getitem__, group, calibrated, WeaveConfig()
    )
    assert_finite(result)
    assert result.state.focal_delta.shape == (3, 2)
    assert (result.state.focal_delta[1] == 0).all()
    assert bool((result.state.focal_delta[[0, 2]] != 0).all()) != calibrated
    assert result.trust.trusted.all()


def test_matches_that_are_no_numbers_are_no_matches() -> None:
    case = short()
    pixel, score = case.matches.pixel_j.clone(), case.matches.score.clone()
    pixel[::50], score[::70] = torch.nan, torch.nan
    result = woven(replace(case, matches=replace(case.matches, pixel_j=pixel, score=score)))
    assert_finite(result)
    assert result.trust.trusted.all()


@pytest.mark.parametrize("what", ["translation", "focal"])
def test_a_camera_that_is_no_camera_is_one_clear_line(what: str) -> None:
    case = short()
    prior = case.priors[1]
    shift, intrinsics = prior.cam_from_chunk.translation.clone(), prior.intrinsics.clone()
    if what == "translation":
        shift[3] = torch.nan
    else:
        intrinsics[3, 0] = 0.0
    bad = replace(prior, cam_from_chunk=SE3(prior.cam_from_chunk.rotation, shift), intrinsics=intrinsics)
    with pytest.raises(DegenerateError, match=r"frame 10 in chunk 1 .* 1 such"):
        woven(replace(case, priors=(case.priors[0], bad, case.priors[2])))


def test_no_observation_at_all_is_one_clear_line() -> None:
    none = torch.zeros(0, dtype=torch.long)
    empty = Observations(
        none, none, SE3.identity(0), torch.zeros(0, 4).double(), torch.zeros(0).double(), (64, 48)
    )
    case, group = short(), torch.zeros(22, dtype=torch.long)
    with pytest.raises(DegenerateError, match="no frame at all"):
        weave(empty, case.graph, case.matches, case.priors.__getitem__, group, False, WeaveConfig())


def test_frames_that_no_prior_saw_do_not_choose_the_main_part() -> None:
    case = short()
    first, second = case.graph.edges.unbind(1)
    opening = some_frames(case.priors[0], list(range(5)))
    case = replace(case.without_edges((first <= 6) & (second > 6)), priors=(opening, case.priors[1]))
    result = woven(case)
    assert_finite(result)
    assert [k for k in range(22) if result.trust.trusted[k]] == list(range(7, 15))
    assert all("no verified match ties" in r for r in result.trust.reason[:5])

"""Where frames lie that no match ties to the others."""

from dataclasses import replace

import pytest
import torch

from geoweaver.datatypes import Camera, Frames
from geoweaver.geometry import SE3
from geoweaver.placement import place_frames, placed_by_prior
from geoweaver.stage_views import stage_views
from geoweaver.weave import WeaveConfig
from tests.weave.tiny import Tiny, tiny, woven

LOST = 4


def untied(shift: float) -> Tiny:
    """A walk of one chunk with a frame without matches, which the prior puts off its place."""
    case = tiny(frames=10, chunk=12, laps=0.12, per_edge=80)
    case = case.without_edges((case.graph.edges == LOST).any(1))
    camera = case.priors[0].cam_from_chunk
    moved = camera.translation.clone()
    step = camera.centre.diff(dim=0).norm(dim=1).median()
    moved[LOST] += shift * step
    prior = replace(case.priors[0], cam_from_chunk=SE3(camera.rotation, moved))
    return replace(case, priors=(prior,))


def frames_of(case: Tiny) -> Frames:
    count, size = len(case.truth), case.truth.size
    camera = Camera("PINHOLE", tuple(case.truth.intrinsics[0].tolist()), *size)
    every = torch.ones(count, dtype=torch.bool)
    stamps, group = torch.arange(count).double(), torch.zeros(count, dtype=torch.long)
    return Frames(tuple(map(str, range(count))), stamps, group, every, (camera,), size)


@pytest.mark.parametrize(("shift", "kept"), [(0.5, True), (30.0, False)])
def test_a_frame_that_only_the_prior_places_stays_near_its_neighbours(shift: float, kept: bool) -> None:
    case = untied(shift)
    frames, result = frames_of(case), woven(case)
    seen = placed_by_prior(frames, result)
    assert seen.tolist() == [kept or k != LOST for k in range(10)]
    placed = place_frames(frames, result, seen)
    centre = placed.cam_from_world.centre
    apart = (centre[LOST + 1] - centre[LOST - 1]).norm()
    assert (centre[LOST] - centre[LOST - 1]).norm() < 2 * apart
    assert placed.trusted.tolist() == [k != LOST for k in range(10)]
    assert ("far off its neighbours' way" in placed.reason[LOST]) != kept


def test_frames_that_no_prior_saw_go_with_their_neighbours_in_the_view_of_stage_3() -> None:
    case = tiny(frames=10, chunk=12, laps=0.12, per_edge=80)
    result = woven(case)
    canonical = result.tables.canonical.clone()
    canonical[LOST] = -1
    far = SE3(result.state.cam_from_world.rotation, result.state.cam_from_world.translation + 5.0)
    moved = replace(result.state, cam_from_world=far)
    unseen = replace(result, tables=replace(result.tables, canonical=canonical), state=moved)
    centre = stage_views(unseen, WeaveConfig())[2].cam_from_world.centre
    between = (far.centre[LOST - 1] + far.centre[LOST + 1]) / 2
    assert (centre[LOST] - between).norm() < (far.centre[LOST + 1] - far.centre[LOST - 1]).norm()


def test_without_any_match_the_prior_is_all_there_is() -> None:
    case = tiny(frames=10, chunk=12, laps=0.12, per_edge=80)
    case = case.without_edges(torch.ones(len(case.graph), dtype=torch.bool))
    assert placed_by_prior(frames_of(case), woven(case)).all()


def test_why_the_prior_left_a_frame_out_stands_beside_it() -> None:
    case = tiny(frames=10, chunk=12, laps=0.12, per_edge=80)
    result = woven(case)
    canonical = result.tables.canonical.clone()
    canonical[LOST] = -1
    unseen = replace(result, tables=replace(result.tables, canonical=canonical))
    placed = place_frames(frames_of(case), unseen, canonical >= 0, {LOST: "too dark"})
    assert placed.reason[LOST] == "the prior could not place it (too dark): the camera is interpolated"


def test_a_camera_without_a_placed_frame_keeps_the_lens_it_began_with() -> None:
    case = tiny(frames=10, chunk=12, laps=0.12, per_edge=80)
    result, frames = woven(case), frames_of(case)
    other = replace(frames.cameras[0], rectified=(500.0, 501.0, 80.0, 60.0))
    camera = (torch.arange(10) >= 8).long()
    canonical = torch.where(camera == 1, -1, result.tables.canonical)
    unseen = replace(result, tables=replace(result.tables, canonical=canonical))
    both = replace(frames, camera=camera, cameras=(frames.cameras[0], other))
    placed = place_frames(both, unseen, canonical >= 0)
    assert placed.intrinsics[8:].tolist() == [[500.0, 501.0, 80.0, 60.0]] * 2
    assert torch.equal(placed.intrinsics[:8], place_frames(frames, result, canonical >= 0).intrinsics[:8])

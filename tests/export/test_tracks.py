"""Tracks: points carried by matches, triangulated robustly, and believed only where views agree."""

import math
from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from made_runs import exact_depth

from geoweaver.export.carry import carry_points
from geoweaver.export.symmetric import solve_symmetric
from geoweaver.export.tracks import TrackConfig, build_tracks
from geoweaver.export.triangulation import TriangulationConfig, triangulate
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import project_with_depth, sample_bilinear

LENS = torch.tensor([200.0, 200.0, 100.0, 80.0], dtype=torch.float64)


def grid(step=8):
    axis = torch.arange(4, 160, step, dtype=torch.float64)
    return torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1).reshape(-1, 2)


def side_by_side(count, step=0.2):
    """Cameras along x that look along z."""
    centre = torch.zeros(count, 3, dtype=torch.float64)
    centre[:, 0] = step * torch.arange(count)
    return SE3(torch.eye(3, dtype=torch.float64).expand(count, 3, 3), -centre)


def views_of(points, cameras):
    return project_with_depth(cameras.act(points[:, None]), LENS)[0]


@given(st.integers(0, 10_000))
def test_small_systems_are_solved(seed):
    rng = torch.Generator().manual_seed(seed)
    A = torch.randn(5, 3, 3, generator=rng, dtype=torch.float64)
    H, g = A.mT @ A + 0.1 * torch.eye(3), torch.randn(5, 3, 2, generator=rng, dtype=torch.float64)
    torch.testing.assert_close(H @ solve_symmetric(H, g), g)


def test_singular_systems_move_nothing():
    assert torch.equal(solve_symmetric(torch.zeros(1, 3, 3), torch.ones(1, 3)), torch.zeros(1, 3))


def test_a_measured_point_is_carried_as_measured():
    source = grid()
    target = source + torch.randn(source.shape, generator=torch.Generator().manual_seed(0))
    carried = carry_points(source, source, target.double(), 6.0, 0.1)
    assert carried.seen.all() and torch.equal(carried.pixel, target.double())


def test_between_measured_points_the_motion_is_interpolated():
    A = torch.tensor([[1.03, 0.02], [-0.01, 0.98]], dtype=torch.float64)
    source = grid()
    point = torch.tensor([[50.0, 51.0], [63.5, 80.0]], dtype=torch.float64)
    carried = carry_points(point, source, source @ A.T + 5, 8.0, 1.0)
    assert carried.seen.all()
    assert (carried.pixel - (point @ A.T + 5)).abs().max() < 0.05


def test_neighbours_that_contradict_each_other_carry_nothing():
    source = grid()
    # two surfaces meet at x = 60
    target = source + torch.where(source[:, :1] > 60, 12.0, 0.0)
    carried = carry_points(
        torch.tensor([[60.5, 50.0], [30.5, 50.0]], dtype=torch.float64), source, target, 8.0, 1.0
    )
    assert carried.seen.tolist() == [False, True]


def test_far_from_every_match_nothing_is_carried():
    carried = carry_points(torch.tensor([[400.0, 10.0]], dtype=torch.float64), grid(), grid(), 8.0, 1.0)
    assert not carried.seen.any()
    few = torch.zeros(2, 2, dtype=torch.float64)
    assert not carry_points(few, few, few, 8.0, 1.0).seen.any()


def test_points_are_found_in_spite_of_a_wrong_view():
    points = torch.tensor([[0.1, 0.2, 3.0], [-0.3, 0.1, 5.0]], dtype=torch.float64)
    cameras = side_by_side(5)
    pixel = views_of(points, cameras)
    pixel[0, 2] += 30
    found = triangulate(pixel, torch.ones(2, 5).bool(), cameras, LENS.expand(5, 4), 3, TriangulationConfig())
    torch.testing.assert_close(found.position, points)
    assert found.used.tolist() == [[True, True, False, True, True], [True] * 5]


def test_behind_the_cameras_or_without_parallax_no_point_is_believed():
    cameras = side_by_side(4)
    points = torch.tensor([[0.1, 0.2, -3.0], [0.0, 0.0, 500.0]], dtype=torch.float64)
    pixel = views_of(points, cameras)
    found = triangulate(pixel, torch.ones(2, 4).bool(), cameras, LENS.expand(4, 4), 3, TriangulationConfig())
    assert not found.used.any()


def test_a_frame_without_a_free_place_begins_no_track():
    nothing = torch.zeros(0, 3, 2, dtype=torch.float64)
    seen, lenses = torch.zeros(0, 3, dtype=torch.bool), LENS.expand(3, 4)
    found = triangulate(nothing, seen, side_by_side(3), lenses, 3, TriangulationConfig())
    assert found.position.shape == (0, 3) and found.used.shape == found.error.shape == (0, 3)


def test_the_scene_s_unit_does_not_matter():
    points, cameras = torch.tensor([[0.1, 0.2, 3.0]], dtype=torch.float64), side_by_side(4)
    large = SE3(cameras.rotation, 1e6 * cameras.translation)
    pixel = views_of(points, cameras)
    found = triangulate(pixel, torch.ones(1, 4).bool(), large, LENS.expand(4, 4), 3, TriangulationConfig())
    torch.testing.assert_close(found.position, 1e6 * points)
    assert found.used.all()


def test_tracks_of_a_run_are_long_true_and_one_view_per_frame(run):
    tracks = build_tracks(run, range(len(run.frames)))
    assert len(tracks) > 300 and len(tracks.point) / len(tracks) > 3
    assert len(torch.unique(tracks.point * 1000 + tracks.frame)) == len(tracks.point)
    assert tracks.error.max() < TriangulationConfig().max_error and tracks.error.mean() < 0.5
    distance = []
    for frame in range(len(run.frames)):
        mine = tracks.frame == frame
        points = run.result.cam_from_world[frame].act(tracks.position[tracks.point[mine]])
        depth, known = sample_bilinear(exact_depth(run.depths.clip, run.result, frame), tracks.pixel[mine])
        distance.append((points[:, 2] / depth - 1).abs()[known])
    assert torch.cat(distance).median() < 0.03 and (torch.cat(distance) < 0.1).double().mean() > 0.9


def test_colours_are_the_image_s_own(run):
    tracks = build_tracks(run, range(len(run.frames)))
    first = torch.cat([torch.ones(1).bool(), tracks.point.diff() > 0]).nonzero().squeeze(1)
    for row in first[:: len(first) // 7].tolist():
        x, y = tracks.pixel[row].long().tolist()
        seen = run.frames.pixels.read(int(tracks.frame[row]))[y, x]
        assert tracks.colour[tracks.point[row]].tolist() == seen.tolist()


def test_disbelieved_edges_and_frames_that_are_left_out_give_no_views(run):
    some = [0, 1, 2, 3, 4]
    rejected = torch.zeros(len(run.graph), dtype=torch.bool)
    rejected[(run.graph.edges == torch.tensor([0, 1])).all(1)] = True
    tracks = build_tracks(replace(run, rejected=rejected), some)
    assert set(tracks.frame.tolist()) <= set(some)
    begun = {int(p): int(f) for p, f in zip(tracks.point.flip(0), tracks.frame.flip(0), strict=True)}
    from_zero = [p for p, frame in begun.items() if frame == 0]
    assert from_zero and not ((tracks.frame == 1) & torch.isin(tracks.point, torch.tensor(from_zero))).any()


def test_two_frames_alone_still_have_points(run):
    tracks = build_tracks(run, [2, 3])
    assert len(tracks) > 50 and len(tracks.point) == 2 * len(tracks)


def test_without_edges_there_are_no_tracks(run):
    assert len(build_tracks(run, [4])) == 0


def test_fewer_cells_give_fewer_points(run):
    rows = range(len(run.frames))
    assert len(build_tracks(run, rows, TrackConfig(per_frame=50))) < 0.3 * len(build_tracks(run, rows))


def test_the_angle_is_the_one_that_is_stated():
    cameras = side_by_side(2, 1.0)
    points = torch.tensor(
        [[0.0, 0.0, 1 / math.tan(math.radians(a))] for a in (0.9, 1.1)], dtype=torch.float64
    )
    pixel = views_of(points, cameras)
    found = triangulate(pixel, torch.ones(2, 2).bool(), cameras, LENS.expand(2, 4), 2, TriangulationConfig())
    assert found.used[:, 0].tolist() == [False, True]

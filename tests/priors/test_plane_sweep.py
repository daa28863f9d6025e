"""The sweep's parts against plain numpy, and its depth against exact scenes."""

from dataclasses import replace

import numpy as np
import pytest
from painted_wall import BOARD, FOCAL, SIZE, WALL, Walk, sideways, walk

from geoweaver.priors.plane_sweep import SweepConfig, depth_size, shrink, sweep_piece
from geoweaver.priors.plane_sweep_aggregate import aggregate, pick_planes
from geoweaver.priors.plane_sweep_consistency import calibrated, confidence_of, consistent_views
from geoweaver.priors.plane_sweep_cost import (
    FINE,
    NO_VIEW,
    OUTSIDE,
    UNITS,
    census,
    cost_volume,
    in_steps,
    pairs,
    warp,
)
from geoweaver.priors.plane_sweep_planes import Planes, away_from_jumps, fit_planes
from geoweaver.priors.plane_sweep_refine import Refined, both_looks, refine
from geoweaver.priors.plane_sweep_views import (
    SweepViews,
    depth_planes,
    plane_homographies,
    project_points,
    source_views,
)


def views_of(taken: Walk, size: tuple[int, int] = SIZE) -> SweepViews:
    """Exact cameras, and points spread over each frame's true surface."""
    factor = size[0] / SIZE[0]
    cameras = taken.cam_from_world
    rng = np.random.default_rng(0)
    points = []
    for k in range(len(cameras)):
        x, y = rng.integers(0, SIZE[0], 150), rng.integers(0, SIZE[1], 150)
        z = taken.depth[k, y, x].astype(np.float64)
        local = np.stack([(x + 0.5 - SIZE[0] / 2) / FOCAL * z, (y + 0.5 - SIZE[1] / 2) / FOCAL * z, z], 1)
        points.append((local - cameras.translation[k].numpy()) @ cameras.rotation[k].numpy())
    intrinsics = tuple(factor * v for v in (FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2))
    return SweepViews(cameras.rotation.numpy(), cameras.translation.numpy(), intrinsics, size, tuple(points))


@pytest.fixture(scope="module")
def taken() -> Walk:
    return sideways()


def test_a_warp_by_the_identity_changes_nothing(taken: Walk) -> None:
    image = in_steps(shrink(taken.read(0), SIZE))
    out = np.empty_like(image)
    warp(pairs(image), np.eye(3, dtype=np.float32), 0, out)
    np.testing.assert_array_equal(out[:-1, :-1], image[:-1, :-1])
    assert (out[-1] == OUTSIDE).all() and (out[:, -1] == OUTSIDE).all()
    part = np.empty_like(image[:5])
    warp(pairs(image), np.eye(3, dtype=np.float32), 7, part)
    np.testing.assert_array_equal(part, out[7:12])


def test_a_plane_at_the_walls_depth_warps_one_view_onto_the_other(taken: Walk) -> None:
    views = views_of(taken)
    images = [in_steps(shrink(taken.read(k), SIZE)) for k in (4, 6)]
    out = np.empty_like(images[0])
    warp(pairs(images[1]), plane_homographies(views, 4, np.array([6]), np.array([1 / WALL]))[0, 0], 0, out)
    wall = (taken.depth[4] > BOARD + 0.7) & (out >= 0)
    wall[:20], wall[-20:], wall[:, :20], wall[:, -60:] = False, False, False, False
    assert np.median(np.abs(out - images[0])[wall]) < 2 * FINE


def test_census_is_the_comparison_of_neighbours() -> None:
    image = in_steps(np.random.default_rng(0).uniform(0, 255, (7, 12)).astype(np.float32))
    code = np.zeros((2, 12), np.int16)
    census(image, 3, code)
    for x in range(2, 10):
        bits = image[1:6, x - 2 : x + 3].ravel() < image[3, x]
        assert code[0, x] == sum(1 << i for i in range(15) if bits[i])
        assert code[1, x] == sum(1 << i for i in range(10) if bits[15 + i])


def test_the_cost_of_a_plane_is_the_better_half_of_its_differences() -> None:
    """Against the definition, for more rows than are worked on at once, with sources that see a part."""
    rng = np.random.default_rng(2)
    reference, *sources = in_steps(rng.uniform(0, 255, (6, 45, 20)).astype(np.float32))
    shifts = rng.integers(-6, 7, (4, 5, 2))
    homographies = np.tile(np.eye(3, dtype=np.float32), (4, 5, 1, 1))
    homographies[..., :2, 2] = shifts
    volume, seen = np.empty((45, 20, 4), np.int16), np.empty((45, 20), np.float32)
    likely = np.full(4, 0.25, np.float32)
    cost_volume(reference, np.stack(sources), homographies, likely, volume, seen)
    for y, x, d in [(2, 2, 0), (20, 9, 1), (33, 10, 2), (34, 11, 3), (42, 17, 0), (30, 3, 1)]:
        costs = []
        for source, (dx, dy) in zip(sources, shifts[d], strict=True):
            warped = np.full((45, 20), OUTSIDE)
            for j, i in np.ndindex(45, 20):
                if 0 <= j + dy < 44 and 0 <= i + dx < 19:
                    warped[j, i] = source[j + dy, i + dx]
            window, own = warped[y - 2 : y + 3, x - 2 : x + 3], reference[y - 2 : y + 3, x - 2 : x + 3]
            if warped[y, x] >= 0:
                costs.append(int(((window < warped[y, x]) != (own < reference[y, x])).sum()))
        half = sorted(costs)[: (len(costs) + 1) // 2]
        assert volume[y, x, d] == (UNITS * sum(half) // len(half) if half else NO_VIEW)
    assert (volume[:2] == NO_VIEW).all() and (volume[:, -2:] == NO_VIEW).all()
    assert seen[20, 10] == 1 and seen[0, 0] == 0


def test_aggregation_along_one_row_is_dynamic_programming() -> None:
    """A single row: only the two horizontal paths cost anything beyond the plain cost."""
    rng = np.random.default_rng(1)
    volume = rng.integers(0, 190, (1, 9, 16)).astype(np.int16)
    image = np.zeros((1, 9), np.float32)
    total = np.zeros_like(volume)
    aggregate(volume, image, 20, 100, 8.0, total)
    expected = 6 * volume[0].astype(np.int64)
    for order in (range(9), range(8, -1, -1)):
        before = None
        for x in order:
            here = volume[0, x].astype(np.int64)
            if before is not None:
                jump = np.abs(np.subtract.outer(np.arange(16), np.arange(16)))
                price = np.where(jump == 0, 0, np.where(jump == 1, 20, 100))
                here = here + (before + price).min(1) - before.min()
            expected[x] += here
            before = here
    np.testing.assert_array_equal(total[0], expected)


def test_the_parabola_finds_the_minimum_between_planes() -> None:
    planes = np.arange(16)
    total = (10 * (planes - 6.3) ** 2).round().astype(np.int16)[None, None]
    plane, margin, lowest = (np.empty((1, 1), np.float32) for _ in range(3))
    pick_planes(total, plane, margin, lowest, total)
    assert plane[0, 0] == pytest.approx(6.3, abs=0.05) and margin[0, 0] > 0


def test_sources_see_the_frame_from_the_side(taken: Walk) -> None:
    views = views_of(taken)
    sources = source_views(views, 5, 4)
    x = taken.cam_from_world.centre[:, 0].numpy()
    baseline = np.abs(x[sources] - x[5])
    assert 5 not in sources and len(set(sources.tolist())) == 4
    assert (np.degrees(baseline / WALL) > 1.5).all()


def test_sources_stand_on_both_sides() -> None:
    # forwards through a door: from behind it a part of the room is hidden, from before it another one
    n = 21
    translation = np.zeros((n, 3))
    translation[:, 2] = -0.2 * np.arange(n)
    x, y = np.meshgrid(np.linspace(-4, 4, 9), np.linspace(-2, 2, 5))
    wall = np.stack([x.ravel(), y.ravel(), np.full(x.size, 6.0)], 1)
    views = SweepViews(
        np.tile(np.eye(3), (n, 1, 1)), translation, (200.0, 200.0, 150.0, 75.0), (300, 150), (wall,) * n
    )
    sources = source_views(views, 10, 4)
    assert {bool(k > 10) for k in sources[:2]} == {True, False}
    assert 1 <= sum(k > 10 for k in sources) <= 3


def test_planes_reach_from_the_sky_to_before_the_sparse_points(taken: Walk) -> None:
    views = views_of(taken)
    inverse = depth_planes(views, 3, 64)
    _, z = project_points(views, 3, views.points[3])
    assert inverse[0] == 0 and 1 / inverse[-1] < z.min()
    np.testing.assert_allclose(np.diff(inverse), inverse[1])


def test_true_depth_is_consistent_and_wrong_depth_is_not(taken: Walk) -> None:
    views = views_of(taken)
    sources = np.array([3, 4, 6, 7])
    agree, visible, fused = consistent_views(views, taken.depth, 5, sources)
    inner = np.s_[30:-30, 40:-40]
    assert agree[inner].mean() > 3 and visible[inner].mean() > 3.8
    np.testing.assert_allclose(fused[inner], taken.depth[5][inner], rtol=0.04)
    wrong = taken.depth.copy()
    wrong[5] *= 1.15
    assert consistent_views(views, wrong, 5, sources)[0].mean() < 0.5


def test_confidence_rises_with_agreement_and_margin_and_falls_with_cost() -> None:
    one = np.ones((1, 1), np.float32)
    base = confidence_of(2 * one, 4 * one, one, 6 * one)
    assert confidence_of(3 * one, 4 * one, one, 6 * one) > base
    assert confidence_of(2 * one, 4 * one, 2 * one, 6 * one) > base
    assert confidence_of(2 * one, 4 * one, one, 9 * one) < base
    assert 0 < base < 1


def test_calibration_keeps_the_order_of_confidences() -> None:
    said = np.linspace(0, 1, 50)[None]
    told = calibrated(said)
    assert (np.diff(told) > 0).all() and told.min() > 0 and told.max() < 1


def test_filling_stops_at_edges() -> None:
    image = np.zeros((40, 60), np.float32)
    image[:, 30:] = 200
    inverse, weight = np.zeros_like(image), np.zeros_like(image)
    inverse[20, 5], inverse[20, 55], weight[20, 5], weight[20, 55] = 0.5, 0.25, 1, 1
    planes = fit_planes(inverse, weight, image, 24.0, 0.03)
    np.testing.assert_allclose(planes.inverse[18:22, 2:26], 0.5, rtol=1e-3)
    np.testing.assert_allclose(planes.inverse[18:22, 34:58], 0.25, rtol=1e-3)
    assert (planes.weight[18:22, 2:26] > 0).all()


def test_a_blank_part_of_a_slanted_wall_goes_on_as_the_wall_does() -> None:
    y, x = np.mgrid[:60, :90]
    wall = 0.2 + 0.002 * x + 0.001 * y
    weight = np.ones_like(wall)
    weight[20:40, 30:50] = 0
    weight[10:12, 10:12] = 0.5
    spoilt = wall.copy()
    spoilt[10:12, 10:12] *= 3
    planes = fit_planes(spoilt, weight, np.zeros((60, 90), np.float32), 16.0, 0.03)
    np.testing.assert_allclose(planes.inverse[20:40, 30:50], wall[20:40, 30:50], rtol=0.01)
    np.testing.assert_allclose(planes.inverse[10:12, 10:12], wall[10:12, 10:12], rtol=0.02)
    np.testing.assert_allclose(planes.across[30, 40], 0.002, rtol=0.1)


def test_depth_beside_a_jump_counts_less_than_on_a_slanted_surface() -> None:
    x = np.mgrid[:30, :60][1]
    slanted = 0.2 + 0.004 * x
    assert away_from_jumps(slanted)[15, 30] > 0.99
    jump = np.where(x < 30, slanted, 2 * slanted)
    assert away_from_jumps(jump)[15, 28] < 0.1 and away_from_jumps(jump)[15, 10] > 0.99


def test_refinement_finds_the_wall_between_two_planes_of_the_sweep(taken: Walk) -> None:
    views = views_of(taken)
    images = np.stack([shrink(taken.read(k), SIZE) for k in range(len(views))])
    step = 0.02 / WALL
    true = 1 / taken.depth[5].astype(np.float64)
    flat = np.zeros_like(true)
    found = refine(views, images, 5, np.array([3, 7]), Planes(true + 0.4 * step, flat, flat, flat + 1), step)
    wall = (taken.depth[5] > BOARD + 0.7) & (found.information > 3)
    wall[:20], wall[-20:], wall[:, :40], wall[:, -40:] = False, False, False, False
    assert wall.sum() > 1000
    assert np.median(np.abs(found.inverse - true)[wall]) < 0.15 * step


def test_views_from_farther_aside_measure_more_finely(taken: Walk) -> None:
    views = views_of(taken)
    images = np.stack([shrink(taken.read(k), SIZE) for k in range(len(views))])
    step, true = 0.02 / WALL, 1 / taken.depth[5].astype(np.float64)
    planes = Planes(true + 0.3 * step, *np.zeros((2, *true.shape)), np.ones_like(true))
    first = refine(views, images, 5, np.array([4, 6]), planes, step)
    second = refine(views, images, 5, np.array([1, 9]), replace(planes, inverse=first.inverse), step)
    both = both_looks(first, second)
    wall = (taken.depth[5] > BOARD + 0.7) & (second.information > 3)
    wall[:20], wall[-20:], wall[:, :60], wall[:, -60:] = False, False, False, False
    assert wall.sum() > 500
    assert np.median(np.abs(both.inverse - true)[wall]) < 0.8 * np.median(np.abs(first.inverse - true)[wall])
    blank = Refined(second.inverse, np.zeros_like(second.information))
    np.testing.assert_allclose(both_looks(first, blank).inverse, first.inverse, rtol=1e-6)


def test_the_sweep_finds_wall_and_board(taken: Walk) -> None:
    views = views_of(taken)
    depth, confidence = sweep_piece(views, taken.read, SweepConfig())
    error = np.abs(depth - taken.depth) / taken.depth
    valid = depth > 0
    sure = valid & (confidence >= np.median(confidence[valid]))
    assert valid.mean() > 0.9
    assert error[valid].mean() < 0.06 and error[sure].mean() < 0.02
    assert ((confidence > 0) == valid).all()


@pytest.mark.parametrize("clouds", [True, False])
def test_the_sky_above_a_wall_is_no_surface(clouds: bool) -> None:
    """Clouds do not move where the camera does; a blank sky tells nothing and is brighter than the wall."""
    walked = walk(np.stack([[0.07 * (k - 5), 0.0, 0.0] for k in range(10)]))
    x, y = np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1]))
    above = walked.images[0].astype(np.float64)[..., 0] / 4 if clouds else 0 * x
    images, sky = walked.images.copy(), np.zeros(walked.depth.shape, bool)
    for k in range(len(images)):
        # the wall's upper edge, with battlements
        along = (x - SIZE[0] / 2) / FOCAL * WALL + walked.cam_from_world.centre[k, 0].item()
        sky[k] = y < 60 + 8 * (np.floor(2 * along) % 2)
        images[k][sky[k]] = np.repeat(np.minimum(190 + above, 255)[..., None], 3, 2)[sky[k]].astype(np.uint8)
    views = views_of(Walk(images, np.where(sky, 0, walked.depth), walked.cam_from_world))
    depth, confidence = sweep_piece(views, images.__getitem__, SweepConfig())
    # windows at the wall's edge see both
    assert (depth[:, 4:50, 30:-30] > 0).mean() < 0.05
    wall = np.s_[:, 80:-4, 30:-30]
    assert (depth[wall] > 0).mean() > 0.97 and (confidence[wall] > 0.5).mean() > 0.8


def test_views_agree_beyond_the_depth_that_they_can_tell(taken: Walk) -> None:
    views, sources = views_of(taken), np.array([3, 4, 6, 7])
    far = np.full_like(taken.depth, 1e3)
    far[5] = 1e4
    assert consistent_views(views, far, 5, sources)[0].max() == 0
    inner = np.s_[30:-30, 40:-40]
    assert consistent_views(views, far, 5, sources, 100.0)[0][inner].min() == 4


def test_differences_that_cannot_be_told_are_no_jumps() -> None:
    inverse = np.where(np.mgrid[:30, :60][1] < 30, 1e-6, 1e-4)
    assert away_from_jumps(inverse)[15, 28] < 0.1 and away_from_jumps(inverse, 0.1)[15, 28] > 0.99


def test_a_frame_without_points_has_no_depth(taken: Walk) -> None:
    views = views_of(taken)
    blind = SweepViews(
        views.rotation, views.translation, views.intrinsics, SIZE, (np.zeros((0, 3)),) * len(views)
    )
    depth, confidence = sweep_piece(blind, taken.read, SweepConfig())
    assert not depth.any() and not confidence.any()


@pytest.mark.parametrize("size", [(540, 360), (360, 640), (613, 185), (64, 48)])
def test_depth_maps_keep_the_shape_of_the_image(size: tuple[int, int]) -> None:
    width, height = depth_size(size, 48_600)
    assert width <= size[0] and width * height <= 1.02 * 48_600
    assert width / height == pytest.approx(size[0] / size[1], rel=0.02)


def test_larger_images_have_larger_depth_maps() -> None:
    config = SweepConfig(pixels=10_000, share=0.5)
    assert config.map_size((100, 80)) == (100, 80)
    assert config.map_size((200, 100)) == (141, 71)
    assert config.map_size((600, 400)) == (424, 283)

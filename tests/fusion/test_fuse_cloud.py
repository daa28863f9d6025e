"""Clouds of a box room: exact, clean, bounded, and the same in every unit and with any number of workers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fused_room import COLOURS, DEPTH_SIZE, HALF, SIZE, Room, off_walls, on_walls, room

from geoweaver.datatypes import ViewGraph
from geoweaver.engine import LocalEngine
from geoweaver.errors import ConfigError
from geoweaver.formats.ply import PlyCloud, read_ply, write_ply
from geoweaver.fusion import FusionConfig, fuse_cloud


@pytest.fixture(scope="module")
def exact() -> PlyCloud:
    return fuse_cloud(*room().parts())


def same(a: PlyCloud, b: PlyCloud) -> bool:
    names = ("points", "colours", "normals", "confidence")
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in names)


def test_exact_depth_gives_the_walls(exact: PlyCloud) -> None:
    assert len(exact) > 3000
    assert on_walls(exact.points)


def test_the_walls_are_covered(exact: PlyCloud) -> None:
    seen = room()
    points = torch.cat([world_points(seen, k) for k in range(3, 13)])
    nearest = torch.cdist(points[::7].float(), exact.points).amin(1)
    assert float((nearest < 0.05).double().mean()) > 0.97


def world_points(seen: Room, frame: int) -> torch.Tensor:
    from geoweaver.geometry.camera import bearing, pixel_centres

    found = seen.read(frame)
    local = bearing(pixel_centres(*DEPTH_SIZE), found.intrinsics) * found.depth.double()[..., None]
    return seen.cam_from_world[frame].inverse().act(local.reshape(-1, 3))


def test_normals_face_the_cameras_and_colours_are_the_walls(exact: PlyCloud) -> None:
    assert exact.normals is not None and exact.colours is not None and exact.confidence is not None
    gap = HALF - exact.points.double().abs()
    inner = gap.sort(-1).values[:, 1] > 0.2  # away from the room's edges
    axis = gap.argmin(-1)
    side = exact.points.gather(1, axis[:, None])[:, 0] > 0
    inward = -torch.nn.functional.one_hot(axis, 3) * torch.where(side, 1, -1)[:, None]
    cosine = (exact.normals.double() * inward).sum(-1)
    assert float(cosine[inner].min()) > 0.99
    assert torch.equal(exact.colours[inner].long(), COLOURS[axis + 3 * side][inner])
    assert float(exact.confidence.min()) > 0 and float(exact.confidence.max()) <= 1


def test_a_frame_that_the_others_contradict_leaves_nothing() -> None:
    spoilt = room()
    spoilt.depth[6] = spoilt.depth[6] * 0.5
    spoilt.depth[11] = spoilt.depth[11] * 1.6
    cloud = fuse_cloud(*spoilt.parts())
    assert len(cloud) > 3000
    assert on_walls(cloud.points)


def test_a_floating_blob_goes() -> None:
    spoilt = room()
    spoilt.depth[8][10:20, 10:25] *= 0.6
    assert on_walls(fuse_cloud(*spoilt.parts()).points)


def test_noise_of_each_map_is_averaged() -> None:
    """Each map is off by its own few percent: the cloud is nearer to the walls than the maps are."""
    spoilt = room(24)
    rng = np.random.default_rng(0)
    factors = np.exp(0.02 * rng.standard_normal(24))
    spoilt.depth = [d * float(f) for d, f in zip(spoilt.depth, factors, strict=True)]
    single = torch.cat([off_walls(world_points(spoilt, k)) for k in range(24)])
    cloud = fuse_cloud(*spoilt.parts())
    assert float(off_walls(cloud.points).median()) < 0.5 * float(single.median())


def test_blurred_edges_leave_no_streaks() -> None:
    """A pillar in the middle of the room whose depth edges are blurred, in the same way in every view."""
    spoilt = room()
    streak = torch.tensor([0.85, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.85])
    for depth in spoilt.depth:
        depth[:, 18:29] *= streak
    alone = FusionConfig(views=1, neighbours=0, lone_confidence=0.0, second_look=False)
    unfiltered = flying_share(spoilt, replace(alone, jump=1e9, least_cosine=0.0))
    assert unfiltered > 0.03
    assert flying_share(spoilt, alone) < 0.25 * unfiltered
    assert flying_share(spoilt, FusionConfig()) < 0.02 * unfiltered


def flying_share(seen: Room, config: FusionConfig) -> float:
    """Points between the pillar and the walls behind it, among all that two of the frames made."""
    cloud = fuse_cloud(*seen.parts(), config)
    ratio = torch.cat([on_ray(seen, cloud, frame) for frame in (5, 8)])
    return float(((ratio > 0.53) & (ratio < 0.93)).sum()) / max(len(ratio), 1)


def on_ray(seen: Room, cloud: PlyCloud, frame: int) -> torch.Tensor:
    """Depth of the cloud's points over that of the wall behind them, of those that this frame made."""
    only = room()
    local = seen.cam_from_world[frame].act(cloud.points.double())
    small = seen.read(frame).intrinsics
    at = (local[:, :2] / local[:, 2:] * small[:2] + small[2:]).floor().long()
    inside = (local[:, 2] > 0) & (at >= 0).all(1) & (at < torch.tensor(DEPTH_SIZE)).all(1)
    at = at[inside]
    wall = only.depth[frame][at[:, 1], at[:, 0]].double()
    own = seen.depth[frame][at[:, 1], at[:, 0]].double()
    mine = (local[inside, 2] / own - 1).abs() < 0.01
    return (local[inside, 2] / wall)[mine]


def test_low_confidence_and_very_far_depth_make_no_points() -> None:
    spoilt = room()
    for depth, confidence in zip(spoilt.depth, spoilt.confidence, strict=True):
        depth[:6] = 200.0  # a sky shell, sure of itself
        confidence[-6:] = 0.1
    cloud = fuse_cloud(*spoilt.parts())
    assert on_walls(cloud.points)
    assert float(cloud.points[:, 1].min()) > float(fuse_cloud(*room().parts()).points[:, 1].min())


def test_untrusted_frames_do_not_contribute() -> None:
    spoilt = room()
    for k in (2, 3, 4, 5):
        spoilt.depth[k] = spoilt.depth[k] * 1.3
    spoilt.trusted[2:6] = False
    assert on_walls(fuse_cloud(*spoilt.parts()).points)
    spoilt.trusted[:] = False
    assert len(fuse_cloud(*spoilt.parts())) == 0


def test_masks_are_respected() -> None:
    spoilt = room()
    hidden = np.ones(SIZE[::-1], bool)
    hidden[:, : SIZE[0] // 2] = False
    for k, depth in enumerate(spoilt.depth):
        depth[:, : DEPTH_SIZE[0] // 2] *= 0.5  # a person walks along with the camera
        spoilt.mask[k] = hidden
    cloud = fuse_cloud(*spoilt.parts())
    assert len(cloud) > 1000
    assert on_walls(cloud.points)


def test_nothing_known_gives_an_empty_cloud(tmp_path) -> None:  # type: ignore[no-untyped-def]
    spoilt = room(4)
    spoilt.depth = [torch.zeros_like(d) for d in spoilt.depth]
    spoilt.depth[2][:] = float("nan")
    cloud = fuse_cloud(*spoilt.parts())
    assert len(cloud) == 0
    write_ply(tmp_path / "points.ply", cloud)
    assert len(read_ply(tmp_path / "points.ply")) == 0


def test_one_frame_alone_keeps_what_is_sure() -> None:
    alone = room(1)
    assert len(fuse_cloud(*alone.parts())) > 1000
    alone.confidence = [c * 0.5 for c in alone.confidence]
    assert len(fuse_cloud(*alone.parts())) == 0


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**12])
def test_the_unit_of_length_is_of_no_account(exact: PlyCloud, unit: float) -> None:
    other = fuse_cloud(*room().in_unit(unit).parts())
    assert same(exact, replace(other, points=other.points / unit))


def test_a_unit_that_rounds_differently_changes_next_to_nothing(exact: PlyCloud) -> None:
    other = fuse_cloud(*room().in_unit(1000.0).parts())
    assert abs(len(other) - len(exact)) < 0.01 * len(exact)
    assert on_walls(other.points, 1000.0)


def test_any_number_of_workers_gives_the_same_bytes(exact: PlyCloud) -> None:
    assert same(exact, fuse_cloud(*room().parts(), engine=LocalEngine(2)))


def test_the_target_is_kept(exact: PlyCloud) -> None:
    cloud = fuse_cloud(*room().parts(), FusionConfig(target=1000))
    assert 800 <= len(cloud) <= 1000 < len(exact)
    assert float(off_walls(cloud.points).quantile(0.99)) < 0.05


def test_edges_of_the_view_graph_are_candidates() -> None:
    seen = room(8)
    graph = ViewGraph(torch.tensor([[0, 5], [2, 7]]), torch.tensor([2, 2]))
    assert len(fuse_cloud(*seen.parts(), graph=graph)) > 500


def test_senseless_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be made"):
        FusionConfig(target=0)

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_world import HALF, built, tiny_world

from geoweaver.geometry.camera import lift, pixel_centres, project_with_depth
from geoweaver.synth.paths import default_path
from geoweaver.synth.plan import Light
from geoweaver.synth.render import cast, render_depth
from geoweaver.synth.solids import box
from geoweaver.synth.world import PLANS, World

SIZE = (96, 54)
K = torch.tensor([70.0, 70.0, 48.0, 27.0], dtype=torch.float64)
unit = st.floats(-1, 1, allow_nan=False, width=32)


@pytest.mark.parametrize("name", PLANS)
def test_a_lifted_pixel_is_found_again_by_another_camera(name: str) -> None:
    world = built(name)
    cameras = default_path(world, 60)
    here, there = cameras[10], cameras[12]
    depth = render_depth(world, here, K, SIZE)
    seen = depth > 0
    points = here.inverse().act(lift(pixel_centres(*SIZE), depth, K)[seen])
    pixel, z = project_with_depth(there.act(points), K)
    ahead = z > 0.05
    rays = (
        there.inverse().act(torch.cat([(pixel - K[2:]) / K[:2], torch.ones_like(z)[:, None]], -1))
        - there.centre
    )
    t = cast(world, there.centre.expand_as(rays)[ahead], rays[ahead])
    ratio = t / z[ahead]
    assert (ratio < 1 + 1e-7).all(), (
        "nothing lies before the surface that a camera saw, only before the other one"
    )
    exact = (ratio - 1).abs() < 1e-9
    assert exact.double().mean() > 0.55
    off = (ratio - 1).abs()
    assert ((off > 1e-9) & (off < 1e-5)).double().mean() < 0.01, "hit or occluded, nothing in between"


@given(origin=st.tuples(unit, unit, unit), way=st.tuples(unit, unit, unit), stretch=st.floats(0.01, 100))
def test_casting_in_a_box_agrees_with_the_slab_formula(origin: tuple, way: tuple, stretch: float) -> None:
    o, d = np.array(origin) * 0.9, np.array(way)
    if np.abs(d).max() < 1e-3:
        return
    with np.errstate(divide="ignore"):
        expected = np.min(np.where(d != 0, (np.sign(d) * [1, 2, 3] - o) / np.where(d == 0, 1, d), np.inf))
    got = cast(BOX, torch.tensor(o)[None], torch.tensor(d * stretch)[None])
    assert float(got[0]) * stretch == pytest.approx(expected, rel=1e-6)


BOX = World("box", 0, box((-1, -2, -3), (1, 2, 3), "plain"), {"walk": np.zeros((4, 3))}, Light())


def test_the_distance_is_exact_to_double_precision() -> None:
    d = torch.tensor([[0.3, 1.0, 0.2], [1.0, 0.123456789, -0.77]], dtype=torch.float64)
    t = cast(BOX, torch.zeros(2, 3, dtype=torch.float64), d)
    assert torch.allclose(t, torch.tensor([2.0, 1.0], dtype=torch.float64), rtol=1e-14, atol=0)


def test_a_world_far_from_the_origin_stays_exact() -> None:
    shift = torch.tensor([700.0, -400.0, 30.0], dtype=torch.float64)
    far = World("far", 0, BOX.quads.moved(*shift.tolist()), BOX.routes, BOX.light)
    d = torch.randn(500, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near_t = cast(BOX, torch.zeros(500, 3, dtype=torch.float64), d)
    far_t = cast(far, shift.expand(500, 3), d)
    # which of two faces is hit within 0.1 mm of an edge is float32's choice; on a face the distance is exact
    assert (((far_t - near_t).abs() / near_t) < 1e-11).double().mean() > 0.99


def test_there_is_sky_above_an_open_room_and_none_below() -> None:
    world = tiny_world()
    up = torch.tensor([[0.0, 0, 1], [0, 0, -1]], dtype=torch.float64)
    t = cast(world, torch.tensor([[0.0, 0, 1.4]] * 2, dtype=torch.float64), up)
    assert torch.isinf(t[0])
    assert t[1] == pytest.approx(1.4, rel=1e-12)


def test_depth_is_z_and_sky_is_zero() -> None:
    world = tiny_world()
    camera = default_path(world, 10)[0]
    depth = render_depth(world, camera, K, SIZE)
    points = camera.inverse().act(lift(pixel_centres(*SIZE), depth, K))[depth > 0]
    assert (depth == 0).any() and (depth > 0).any()
    assert points[:, :2].abs().max() <= 40
    inside = points[(points[:, :2].abs() < HALF + 0.06).all(-1)]
    assert inside[:, 2].min() > -1e-9 and inside[:, 2].max() < 2.5 + 1e-9


@pytest.mark.parametrize("name", ["street", "apartment"])
def test_the_sky_shows_where_the_world_is_open(name: str) -> None:
    world = built(name)
    cameras = default_path(world, 12)
    share = torch.stack([(render_depth(world, cameras[i], K, SIZE) == 0).double().mean() for i in range(12)])
    assert 0.01 < share.max() < 0.7
    assert (name == "street") == bool(share.min() > 0.01)

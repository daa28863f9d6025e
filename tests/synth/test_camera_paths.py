import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_world import built, tiny_world

from geoweaver.geometry.so3 import rotation_angle
from geoweaver.synth.paths import default_path, drive, fly, looking, orbit, walk
from geoweaver.synth.world import PLANS

RING = built("corridor").routes["walk"]


@settings(max_examples=15, deadline=None)
@given(frames=st.integers(2, 400), laps=st.floats(0.3, 4), seed=st.integers(0, 5))
def test_any_number_of_frames_and_laps_gives_rigid_cameras(frames: int, laps: float, seed: int) -> None:
    cameras = walk(RING, frames, laps, seed)
    assert len(cameras) == frames
    eye = cameras.rotation @ cameras.rotation.mT
    assert torch.allclose(eye, torch.eye(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(torch.linalg.det(cameras.rotation), torch.ones((), dtype=torch.float64))


@pytest.mark.parametrize("style", [walk, drive, fly])
def test_a_lap_ends_where_it_began_and_the_next_differs_a_little(style) -> None:  # type: ignore[no-untyped-def]
    cameras = style(RING, 801, 2.0)
    first, second = cameras.centre[:400], cameras.centre[400:800]
    apart = (first - second).norm(dim=-1)
    assert 0.001 < apart.median() < 1.0
    assert apart.max() < 1.5
    turned = rotation_angle(cameras.rotation[:400] @ cameras.rotation[400:800].mT)
    assert turned.median() < 0.6


def test_steps_are_even_and_turns_smooth() -> None:
    cameras = walk(RING, 600)
    step = cameras.centre.diff(dim=0).norm(dim=-1)
    assert step.max() < 1.6 * step.median()
    turn = rotation_angle(cameras.rotation[1:] @ cameras.rotation[:-1].mT)
    assert turn.max() < np.radians(9)


def test_walkers_bob_and_look_around_and_keep_upright() -> None:
    cameras = walk(RING, 600)
    assert 0.01 < cameras.centre[:, 2].std() < 0.05
    down = cameras.rotation[:, 1]
    assert (down[:, 2] < -0.9).all(), "the image's down is the world's down"


def test_orbits_look_at_their_target() -> None:
    target = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    cameras = orbit(target.tolist(), 2.0, 0.7, 120, laps=1.5)
    seen = cameras.act(target)
    assert (seen[:, 2] > 1).all()
    assert (seen[:, :2].norm(dim=-1) / seen[:, 2]).max() < 0.15
    assert 1.5 < (cameras.centre - target).norm(dim=-1).mean() < 2.6


def test_a_camera_looks_where_it_is_told() -> None:
    yaw, pitch = torch.tensor([0.3], dtype=torch.float64), torch.tensor([0.2], dtype=torch.float64)
    camera = looking(torch.tensor([[1.0, 2, 3]], dtype=torch.float64), yaw, pitch, 0 * yaw)[0]
    ahead = camera.inverse().act(torch.tensor([0.0, 0, 1], dtype=torch.float64)) - camera.centre
    expected = [np.cos(0.3) * np.cos(0.2), np.sin(0.3) * np.cos(0.2), np.sin(0.2)]
    assert ahead.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", PLANS)
def test_every_world_has_a_path_of_any_length(name: str) -> None:
    world = built(name)
    for route in (None, *world.routes):
        assert len(default_path(world, 37, 1.3, 2, route)) == 37


def test_the_same_seed_walks_the_same_way() -> None:
    world = tiny_world()
    one, same, other = (default_path(world, 50, seed=s) for s in (4, 4, 5))
    assert torch.equal(one.translation, same.translation)
    assert not torch.equal(one.translation, other.translation)

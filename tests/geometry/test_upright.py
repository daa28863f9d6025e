"""Up, as cameras of all kinds tell it; it turns with the world."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import so3_exp
from geoweaver.geometry.upright import up_direction, z_up_from_world

UP = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
turns = st.tuples(*[st.floats(-3, 3)] * 3).map(lambda turn: so3_exp(torch.tensor(turn, dtype=torch.float64)))


def looking(yaw: Tensor, pitch: float = 0.0, roll: float = 0.0) -> SE3:
    """Cameras in a world with +z up, turned by yaw, looking down by pitch, rolled about their axes."""
    zero = torch.zeros_like(yaw)
    right = torch.stack([yaw.sin(), -yaw.cos(), zero], -1)
    ahead = torch.stack([yaw.cos(), yaw.sin(), zero], -1)
    level = torch.stack([right, -UP.expand_as(right), ahead], -2)
    own = so3_exp(torch.tensor([0.0, 0, roll], dtype=torch.float64)) @ so3_exp(
        torch.tensor([pitch, 0.0, 0], dtype=torch.float64)
    )
    return SE3(own @ level, torch.zeros(len(yaw), 3, dtype=torch.float64))


def yaws(first: float, last: float, count: int = 30) -> Tensor:
    return torch.linspace(first, last, count, dtype=torch.float64)


KINDS = {
    "a level walk": looking(yaws(0, 2)),
    "once around": looking(yaws(0, 6.2)),
    "round an object from above": looking(yaws(0, 2.5), pitch=0.6),
    "steeply from above": looking(yaws(0, 5.0), pitch=1.2),
    "straight down and turning": looking(yaws(0, 6.0), pitch=torch.pi / 2),
    "straight down, turning by half": looking(yaws(0, 3.2), pitch=torch.pi / 2),
    "straight down, to and fro": looking(torch.tensor([0.0, torch.pi] * 10).double(), pitch=torch.pi / 2),
    "never turning": looking(yaws(0, 0)),
    "rolled and turning": looking(yaws(0, 6.2), roll=0.6),
}


@pytest.mark.parametrize("kind", KINDS)
def test_up_is_up(kind: str) -> None:
    assert float(up_direction(KINDS[kind]) @ UP) > 0.99


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(turn=turns)
def test_up_turns_with_the_world(kind: str, turn: Tensor) -> None:
    cameras = KINDS[kind]
    turned = SE3(cameras.rotation @ turn.mT, cameras.translation)
    assert torch.allclose(up_direction(turned), turn @ up_direction(cameras), atol=1e-6)


@pytest.mark.parametrize("pitch", [-0.6, 0.3, 0.6])
def test_level_sides_tell_exactly(pitch: float) -> None:
    """No camera's own up is up, nor is their mean."""
    assert torch.allclose(up_direction(looking(yaws(0, 1.5), pitch)), UP, atol=1e-9)


def test_a_shaky_straight_walk_keeps_its_heads_up() -> None:
    rng = torch.Generator().manual_seed(0)
    shake = so3_exp(0.05 * torch.randn(60, 3, generator=rng, dtype=torch.float64))
    walk = looking(torch.zeros(60, dtype=torch.float64))
    assert float(up_direction(SE3(shake @ walk.rotation, walk.translation)) @ UP) > 0.99


def test_one_camera_and_none() -> None:
    own = torch.tensor([0.0, -1, 0], dtype=torch.float64)
    assert torch.equal(up_direction(SE3.identity(1)), own)
    assert torch.equal(up_direction(SE3.identity(0)), own)


def test_cameras_that_are_not_trusted_have_no_say() -> None:
    good, lost = looking(yaws(0, 2)), looking(yaws(0, 2), roll=2.0)
    both = SE3(torch.cat([good.rotation, lost.rotation]), torch.cat([good.translation, lost.translation]))
    trusted = torch.arange(60) < 30
    assert torch.allclose(up_direction(both, trusted), up_direction(good))
    nobody = torch.zeros(60, dtype=torch.bool)
    assert torch.allclose(up_direction(both, nobody), up_direction(both))


@given(turns)
def test_the_turn_to_z(turn: Tensor) -> None:
    up = turn @ UP
    rotation = z_up_from_world(2 * up)
    assert torch.allclose(rotation @ up, UP, atol=1e-9)
    assert torch.allclose(rotation @ rotation.mT, torch.eye(3, dtype=torch.float64), atol=1e-9)


def test_what_hangs_is_turned_over() -> None:
    rotation = z_up_from_world(-UP)
    assert torch.equal(rotation @ -UP, UP) and float(torch.linalg.det(rotation)) == 1

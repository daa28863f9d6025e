import numpy as np
import pytest
import torch
from tiny_world import built, tiny_world

from geoweaver.synth.effects import Effects
from geoweaver.synth.movers import place_at
from geoweaver.synth.paths import looking
from geoweaver.synth.render import render
from geoweaver.synth.world import PLANS, World

SIZE = (160, 90)
K = torch.tensor([115.0, 115.0, 80.0, 45.0], dtype=torch.float64)
TIME = 0.7


@pytest.fixture(scope="module")
def world() -> World:
    return tiny_world()


def _at_the_mover(world: World, time: float):  # type: ignore[no-untyped-def]
    _, where = place_at(world.movers[0], time)
    yaw = torch.tensor([np.arctan2(where[1], where[0])])
    pitch = torch.tensor([np.arctan2(where[2] - 1.4, np.hypot(*where[:2]))])
    return looking(torch.tensor([[0.0, 0, 1.4]], dtype=torch.float64), yaw, pitch, 0 * yaw)[0], where


def test_a_mover_is_seen_where_it_stands_and_masked(world: World) -> None:
    camera, where = _at_the_mover(world, TIME)
    shown, still = render(world, camera, K, SIZE, time=TIME), render(world, camera, K, SIZE)
    mask = shown.moving
    assert mask[45, 80] and 50 < mask.sum() < mask.numel() / 2
    assert (shown.depth[mask] < still.depth[mask]).all()
    assert torch.equal(shown.depth[~mask], still.depth[~mask])
    distance = float(np.linalg.norm(where - [0, 0, 1.4]))
    assert float(shown.depth[45, 80]) == pytest.approx(distance - 0.3, abs=0.02)
    assert np.array_equal(shown.rgb[1:-1][~_grown(mask)[1:-1]], still.rgb[1:-1][~_grown(mask)[1:-1]])
    assert not np.array_equal(shown.rgb[mask], still.rgb[mask])


def _grown(mask: torch.Tensor) -> np.ndarray:
    return torch.nn.functional.max_pool2d(mask[None].double(), 5, 1, 2)[0].numpy() > 0


def test_a_mover_s_normals_face_the_camera(world: World) -> None:
    camera, _ = _at_the_mover(world, TIME)
    shown = render(world, camera, K, SIZE, time=TIME)
    assert shown.normal[45, 80, 2] < -0.9
    assert torch.allclose(shown.normal[shown.moving].norm(dim=-1), torch.ones((), dtype=torch.float64))


def test_movers_move_and_blur(world: World) -> None:
    camera, _ = _at_the_mover(world, TIME)
    later = render(world, camera, K, SIZE, time=TIME + 1.0)
    assert not torch.equal(later.moving, render(world, camera, K, SIZE, time=TIME).moving)
    blurred = render(world, camera, K, SIZE, Effects(shutter=0.9), time=TIME, interval=0.3)
    still = render(world, camera, K, SIZE, Effects(shutter=0.9), time=TIME, interval=0.0)
    assert np.abs(blurred.rgb.astype(int) - still.rgb).max() > 20


@pytest.mark.parametrize("name", PLANS)
def test_every_world_has_something_that_moves_on_its_round(name: str) -> None:
    world = built(name)
    assert world.movers
    for mover in world.movers:
        a, b = place_at(mover, 0.0)[1], place_at(mover, 0.5)[1]
        assert np.linalg.norm(b - a) == pytest.approx(0.5 * mover.speed, rel=0.05)

import numpy as np
import pytest
import torch
from tiny_world import built, tiny_world

from geoweaver.errors import ConfigError
from geoweaver.synth.materials import CATALOGUE, paint_palette
from geoweaver.synth.paths import clearance, default_path
from geoweaver.synth.quads import Quads
from geoweaver.synth.world import PLANS, build_world, give_looks, world_looks


@pytest.mark.parametrize("name", PLANS)
def test_a_seed_makes_a_world_and_another_makes_another(name: str) -> None:
    one, same, other = built(name), build_world(name, 0), built(name, 1)
    for part in Quads.__dataclass_fields__:
        assert np.array_equal(getattr(one.quads, part), getattr(same.quads, part))
    assert one.quads.corners.shape != other.quads.corners.shape or not np.array_equal(
        one.quads.corners, other.quads.corners
    )


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("seed", [0, 1])
def test_routes_keep_clear_of_walls_and_furniture(name: str, seed: int) -> None:
    world = built(name, seed)
    for route in world.routes:
        cameras = default_path(world, 150, laps=2.0, seed=seed, route=route)
        assert clearance(world, cameras.centre).min() > 0.2, route


def test_clearance_is_the_distance_to_the_nearest_surface() -> None:
    middle = torch.tensor([[0.0, 0.0, 0.6], [-1.0, 0.0, 1.2]], dtype=torch.float64)
    got = clearance(tiny_world(), middle, rays=4000)
    assert got.tolist() == pytest.approx([0.6, 0.95], abs=0.02)


@pytest.mark.parametrize("name", PLANS)
def test_every_surface_is_flat_finite_and_of_a_known_material(name: str) -> None:
    world = built(name)
    assert np.isfinite(world.quads.corners).all() and np.isfinite(world.quads.uv).all()
    assert {material.split(":")[0] for material in np.unique(world.quads.material)} <= set(CATALOGUE)
    assert (world.quads.tint >= 0).all()


def test_textures_are_seeded_and_their_mip_levels_keep_the_mean() -> None:
    one, same, other = (paint_palette(["stain", "brick", "poster:2"], seed) for seed in (1, 1, 2))
    assert np.array_equal(one.texels, same.texels)
    assert not np.array_equal(one.texels, other.texels)
    level0 = one.texels[one.start[1, 0] :][: one.side[1] ** 2] & 255
    level4 = one.texels[one.start[1, 4] :][: (one.side[1] >> 4) ** 2] & 255
    assert np.mean((level4 / 255.0) ** 2) == pytest.approx(np.mean((level0 / 255.0) ** 2), abs=0.003)


@pytest.mark.parametrize("name", [name for name in CATALOGUE if not name.startswith("stain")])
def test_every_material_can_be_painted(name: str) -> None:
    material = CATALOGUE[name]
    picture = material.painter(np.random.default_rng(0), 128)
    assert picture.shape == (128, 128, 3)
    assert np.isfinite(picture).all()
    assert 0.03 < picture.mean() < 1.0


def test_tiles_join_without_a_seam() -> None:
    for name in ("brick", "oak", "asphalt", "carpet", "marble"):
        picture = CATALOGUE[name].painter(np.random.default_rng(3), 256)
        inner = np.abs(np.diff(picture, axis=0)).mean()
        seam = np.abs(picture[0] - picture[-1]).mean()
        assert seam < 4 * inner, name


def test_an_unknown_world_route_or_material_is_an_error_in_words() -> None:
    with pytest.raises(ConfigError, match="apartment, street"):
        build_world("moon")
    with pytest.raises(ConfigError, match="has no route 'swim'"):
        default_path(tiny_world(), 10, route="swim")
    with pytest.raises(ConfigError, match="no material"):
        paint_palette(["stain", "gold"], 0)


def test_looks_can_come_from_elsewhere() -> None:
    world, twin = tiny_world(), tiny_world()
    looks = world_looks(world)
    give_looks(twin, looks)
    assert world_looks(twin) is looks

"""A world: seeded surfaces with materials and light, and the routes that cameras take through it."""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float

from geoweaver.errors import ConfigError
from geoweaver.synth.apartment import apartment
from geoweaver.synth.casting import surfaces, triangles
from geoweaver.synth.corridor import corridor
from geoweaver.synth.lighting import bake
from geoweaver.synth.materials import paint_palette
from geoweaver.synth.plan import Light, Mover, Plan
from geoweaver.synth.quads import Array, Quads
from geoweaver.synth.shading import Coat, coat
from geoweaver.synth.street import street
from geoweaver.synth.tabletop import tabletop


@dataclass(frozen=True, eq=False)
class World:
    """A place: exact geometry in metres (z up), a material per quadrilateral, and where cameras may go."""

    name: str
    seed: int
    quads: Quads
    routes: dict[str, Float[np.ndarray, "p 3"]]
    """Closed rounds of waypoints at eye height, clear of every surface."""
    light: Light
    movers: tuple[Mover, ...] = ()

    @property
    def triangles(self) -> Float[np.ndarray, "T 3 3"]:
        """Two triangles per quadrilateral: triangle i belongs to quadrilateral i // 2."""
        return triangles(self.quads)

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner (2 3)."""
        flat = self.quads.corners.reshape(-1, 3)
        return np.stack([flat.min(0), flat.max(0)])


PLANS: dict[str, Callable[[np.random.Generator], Plan]] = {
    "apartment": apartment,
    "street": street,
    "tabletop": tabletop,
    "corridor": corridor,
}


def build_world(name: str, seed: int = 0) -> World:
    """The world of that name; the same seed gives the same world, bit for bit."""
    if name not in PLANS:
        raise ConfigError(f"no world is called {name!r}: choose one of {', '.join(PLANS)}")
    plan = PLANS[name](np.random.default_rng([seed, *name.encode()]))
    return World(name, seed, plan.quads, plan.routes, plan.light, plan.movers)


@dataclass(frozen=True, eq=False)
class Looks:
    """Textures and baked light of a world's fixed surfaces and of its movers: slow to make, easy to send."""

    fixed: Coat
    movers: tuple[Coat, ...]


_LOOKS: WeakKeyDictionary[World, Looks] = WeakKeyDictionary()


def world_looks(world: World) -> Looks:
    """How a world looks: made when first a picture is asked for."""
    if world not in _LOOKS:
        places = np.concatenate(list(world.routes.values()))
        movers = tuple(_coat(world, mover.quads, np.zeros((1, 3))) for mover in world.movers)
        _LOOKS[world] = Looks(_coat(world, world.quads, places), movers)
    return _LOOKS[world]


def give_looks(world: World, looks: Looks) -> None:
    """Spare this process the making: the looks come from another one."""
    _LOOKS.setdefault(world, looks)


def _coat(world: World, quads: Quads, seen_from: Float[np.ndarray, "n 3"]) -> Coat:
    """Textures and baked light of some surfaces in a world's light."""
    names, index = np.unique(quads.material, return_inverse=True)
    palette = paint_palette(["stain", *names], world.seed)
    lightmap = bake(quads, surfaces(quads), world.light, seen_from)
    return coat(quads, index + 1, palette, lightmap, world.light)

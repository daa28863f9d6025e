"""A world: seeded surfaces with materials, and the routes that cameras take through it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from geoweaver.errors import ConfigError
from geoweaver.synth.apartment import apartment
from geoweaver.synth.plan import Plan
from geoweaver.synth.quads import Array, Quads


@dataclass(frozen=True, eq=False)
class World:
    """A place: exact geometry in metres (z up), one material name per quadrilateral, and where cameras may go."""

    name: str
    seed: int
    quads: Quads
    routes: dict[str, Float[np.ndarray, "p 3"]] = field(default_factory=dict)
    """Closed rounds of waypoints at eye height, clear of every surface."""

    @property
    def triangles(self) -> Float[np.ndarray, "T 3 3"]:
        """Two triangles per quadrilateral: triangle i belongs to quadrilateral i // 2."""
        return self.quads.corners[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3)

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner (2 3)."""
        flat = self.quads.corners.reshape(-1, 3)
        return np.stack([flat.min(0), flat.max(0)])


PLANS: dict[str, Callable[[np.random.Generator], Plan]] = {"apartment": apartment}


def build_world(name: str, seed: int = 0) -> World:
    """The world of that name; the same seed gives the same world, bit for bit."""
    if name not in PLANS:
        raise ConfigError(f"no world is called {name!r}: choose one of {', '.join(PLANS)}")
    plan = PLANS[name](np.random.default_rng([seed, *name.encode()]))
    return World(name, seed, plan.quads, plan.routes)

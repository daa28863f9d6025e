"""Things that move: where each stands at a time; they and the fixed world as bodies that rays can meet."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geoweaver.synth.casting import Surfaces, surfaces
from geoweaver.synth.curves import closed_curve
from geoweaver.synth.plan import Mover
from geoweaver.synth.quads import Array
from geoweaver.synth.shading import Coat
from geoweaver.synth.world import World, world_looks


@dataclass(frozen=True, eq=False)
class Body:
    """Rigid surfaces with their colours; a point x of the body is at rotation @ x + position in the world."""

    meeting: Surfaces
    look: Coat
    rotation: Array
    position: Array
    radius: float
    """Of a ball about the body's origin that holds all of it; inf for the world itself."""


def bodies_at(world: World, time: float | None) -> tuple[Body, ...]:
    """The fixed world, and at a time (seconds) its movers; without a time there are none."""
    fixed = Body(surfaces(world.quads), world_looks(world).fixed, np.eye(3), np.zeros(3), np.inf)
    if time is None:
        return (fixed,)
    return (fixed, *(_body(world, k, time) for k in range(len(world.movers))))


def place_at(mover: Mover, time: float) -> tuple[Array, Array]:
    """Rotation and position of a mover: on its round, its +x ahead."""
    position, _ = _round(mover)
    s = mover.start + mover.speed * time
    here, ahead = position(np.array([s, s + 0.05]))
    yaw = np.arctan2(ahead[1] - here[1], ahead[0] - here[0])
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), here


@lru_cache(maxsize=64)
def _round(mover: Mover) -> tuple[Callable[[Array], Array], float]:
    return closed_curve(mover.waypoints)


def _body(world: World, index: int, time: float) -> Body:
    mover = world.movers[index]
    radius = float(np.linalg.norm(mover.quads.corners, axis=-1).max())
    return Body(surfaces(mover.quads), world_looks(world).movers[index], *place_at(mover, time), radius)

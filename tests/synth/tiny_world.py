"""A world of a few surfaces: a brick room of 4 m without a roof, a block on the floor, a ball that moves."""

from functools import lru_cache

import numpy as np

from geoweaver.synth.plan import Light, Mover
from geoweaver.synth.quads import join
from geoweaver.synth.solids import ball, box, sheet
from geoweaver.synth.walls import wall
from geoweaver.synth.world import World, build_world

HALF = 2.0


@lru_cache
def built(name: str, seed: int = 0) -> World:
    """One of the worlds, built once for all tests."""
    return build_world(name, seed)


def tiny_world() -> World:
    walls = [
        wall("x", y, (-HALF, HALF), 2.5, "brick", "brick", [(-0.5, 0.4, 0, 2.0)] if y > 0 else [], 0.1)
        for y in (-HALF, HALF)
    ]
    walls += [wall("y", x, (-HALF, HALF), 2.5, "brick", "plain", [], 0.1) for x in (-HALF, HALF)]
    block = box((0.6, -1.2, 0), (1.3, -0.5, 0.8), {"": "print", "+z": "poster:1"}, fit=False)
    quads = join(sheet((-HALF, -HALF), (HALF, HALF), 0, "tiles"), *walls, block)
    angle = np.arange(8) * np.pi / 4
    ring = np.stack([0.9 * np.cos(angle), 0.9 * np.sin(angle), np.full(8, 1.4)], -1)
    track = np.stack([1.5 * np.cos(angle), 1.5 * np.sin(angle), np.full(8, 0.5)], -1)
    return World(
        "tiny",
        3,
        quads,
        {"walk": ring},
        Light(reach=0.5),
        (Mover(ball((0, 0, 0), 0.3, "print", 12), track, 1.0),),
    )

"""A furnished apartment: living room, kitchen, hall, bedroom and study in a round of doors."""

import numpy as np

from geoweaver.synth.plan import Plan
from geoweaver.synth.quads import Quads, join
from geoweaver.synth.solids import box, sheet
from geoweaver.synth.walls import wall

HEIGHT = 2.6
_DOOR = 2.05


def apartment(rng: np.random.Generator) -> Plan:
    """Five rooms on 12 m x 9 m; the round leads through all of them and closes in the living room."""
    quads = join(_shell(), _furniture())
    route = [
        (1.6, 1.4), (1.9, 3.4), (2.2, 5.0), (2.4, 6.6), (3.4, 7.5), (4.5, 7.5), (5.5, 7.6), (6.5, 7.5), (7.8, 7.3),
        (9.4, 6.2), (10.0, 4.5), (9.8, 3.2), (8.4, 2.3), (6.5, 2.2), (4.6, 1.8), (2.8, 1.0),
    ]  # fmt: skip
    return Plan(quads, {"walk": np.array([(x, y, 1.5) for x, y in route])})


def _shell() -> Quads:
    """Floor, ceiling, outer and inner walls."""
    rooms = [
        sheet((0, 0), (6.5, 5), 0, "oak"), sheet((0, 5), (4.5, 9), 0, "tiles"), sheet((4.5, 5), (6.5, 9), 0, "oak"),
        sheet((6.5, 4.5), (12, 9), 0, "carpet"), sheet((6.5, 0), (12, 4.5), 0, "oak"),
    ]  # fmt: skip
    ceiling = box((-0.1, -0.1, HEIGHT), (12.1, 9.1, HEIGHT + 0.2), "ceiling")
    outer = [
        wall("x", 0, (0, 12), HEIGHT, "stucco", "plaster", [(1.5, 3.5, 0.9, 2.2), (8, 10, 0.9, 2.2)], 0.2),
        wall("x", 9, (0, 12), HEIGHT, "plaster", "stucco", [(1, 3, 1.0, 2.2), (8.5, 10.5, 0.9, 2.2)], 0.2),
        wall("y", 0, (0, 9), HEIGHT, "stucco", "plaster", [(1.5, 3.5, 0.9, 2.2)], 0.2),
        wall("y", 12, (0, 9), HEIGHT, "plaster", "stucco", [(6, 7.5, 0.9, 2.2)], 0.2),
    ]
    inner = [
        wall("x", 5, (0, 6.5), HEIGHT, "plaster", "plaster", [(1.75, 2.65, 0, _DOOR), (5.1, 6.0, 0, _DOOR)]),
        wall("y", 4.5, (5, 9), HEIGHT, "plaster", "plaster", [(7.05, 7.95, 0, _DOOR)]),
        wall(
            "y", 6.5, (0, 9), HEIGHT, "plaster", "plaster", [(1.75, 2.65, 0, _DOOR), (7.05, 7.95, 0, _DOOR)]
        ),
        wall("x", 4.5, (6.5, 12), HEIGHT, "plaster", "plaster", [(9.55, 10.45, 0, _DOOR)]),
    ]
    return join(*rooms, ceiling, *outer, *inner)


def _furniture() -> Quads:
    """Placeholders at their places."""
    return join(
        box((3.4, 2.8, 0), (5.4, 3.7, 0.8), "fabric"), box((0.1, 7, 0), (0.7, 8.9, 0.9), "wood"),
        box((10, 7, 0), (11.9, 8.8, 0.6), "fabric"), box((10.8, 0.4, 0), (11.8, 2.2, 0.75), "wood"),
    )  # fmt: skip

"""A furnished apartment: living room, kitchen, hall, bedroom and study in a round of doors."""

import numpy as np

from geoweaver.synth import clutter, furniture
from geoweaver.synth.facades import house
from geoweaver.synth.plan import Light, Mover, Plan
from geoweaver.synth.quads import Quads, join
from geoweaver.synth.solids import ball, box, lathe, panel, sheet
from geoweaver.synth.walls import door_leaf, trims, wall, window_frame

Rng = np.random.Generator
HEIGHT = 2.6
_DOOR = 2.05
_SOUTH, _NORTH = ((1.2, 2.8), (3.8, 5.4), (8.0, 10.0)), ((1.0, 3.0), (8.5, 10.5))
_EAST = (6.0, 7.5)
_ROUND = (
    (5.5, 1.7), (4.3, 0.95), (2.6, 0.9), (1.35, 1.6), (1.2, 3.1), (1.75, 4.2), (2.2, 5.0), (1.95, 6.0),
    (2.4, 7.1),
    (3.4, 7.5), (4.5, 7.5), (5.5, 7.5), (6.5, 7.5), (7.7, 7.3), (8.6, 6.6), (9.2, 5.7), (9.95, 5.1),
    (10.0, 4.4),
    (9.9, 3.3), (9.0, 2.4), (7.8, 2.2), (6.5, 2.2),
)  # fmt: skip


def apartment(rng: Rng) -> Plan:
    """Five rooms on 12 m x 9 m; the round leads through all of them and closes in the living room."""
    rooms = (_living(rng), _kitchen(rng), _hall(rng), _bedroom(rng), _study(rng))
    quads = join(_shell(), _windows(), *rooms, _outside(rng))
    lamps = ((3.2, 2.5, 1.9), (2.2, 7.0, 1.9), (5.5, 7.0, 1.9), (9.2, 6.8, 1.9), (9.2, 2.2, 1.9))
    light = Light(
        to_sun=(0.35, -0.7, 0.62), sun=(3.2, 2.9, 2.4), sky=(1.25, 1.4, 1.6), bounce=(0.42, 0.4, 0.37),
        lamps=lamps, lamp=(0.75, 0.66, 0.52), exposure=2.0,
    )  # fmt: skip
    return Plan(quads, {"walk": np.array([(x, y, 1.5) for x, y in _ROUND])}, light, (_cat(),))


def _shell() -> Quads:
    """Floors, ceiling, outer and inner walls."""
    floors = [
        sheet((0, 0), (6.5, 5), 0, "oak"), sheet((0, 5), (4.5, 9), 0, "tiles"),
        sheet((4.5, 5), (6.5, 9), 0, "checker"), sheet((6.5, 4.5), (12, 9), 0, "carpet"),
        sheet((6.5, 0), (12, 4.5), 0, "walnut_floor"),
    ]  # fmt: skip
    ceiling = box((-0.1, -0.1, HEIGHT), (12.1, 9.1, HEIGHT + 0.2), "ceiling")
    return join(*floors, ceiling, *_outer_walls(), *_inner_walls())


def _outer_walls() -> list[Quads]:
    south = [(a, b, 0.9, 2.2) for a, b in _SOUTH]
    north = [(a, b, 1.05, 2.2) for a, b in _NORTH]
    return [
        wall("x", 0, (-0.1, 6.5), HEIGHT, "stucco", "plaster", south[:2], 0.2),
        wall("x", 0, (6.5, 12.1), HEIGHT, "stucco", "plaster_green", south[2:], 0.2),
        wall("x", 9, (-0.1, 4.5), HEIGHT, "plaster", "stucco", north[:1], 0.2),
        wall("x", 9, (4.5, 6.5), HEIGHT, "plaster_rose", "stucco", [], 0.2),
        wall("x", 9, (6.5, 12.1), HEIGHT, "plaster_blue", "stucco", north[1:], 0.2),
        wall("y", 0, (0.1, 8.9), HEIGHT, "stucco", "plaster", [], 0.2),
        wall("y", 12, (0.1, 4.5), HEIGHT, "plaster_green", "stucco", [], 0.2),
        wall("y", 12, (4.5, 8.9), HEIGHT, "plaster_blue", "stucco", [(*_EAST, 0.9, 2.2)], 0.2),
    ]


def _inner_walls() -> list[Quads]:
    return [
        wall("x", 5, (0.1, 4.5), HEIGHT, "plaster", "plaster", [(1.75, 2.65, 0, _DOOR)]),
        wall("x", 5, (4.5, 6.44), HEIGHT, "plaster", "plaster_rose", [(5.1, 6.0, 0, _DOOR)]),
        wall("y", 4.5, (5.06, 8.9), HEIGHT, "plaster", "plaster_rose", [(7.05, 7.95, 0, _DOOR)]),
        wall("y", 6.5, (0.1, 4.5), HEIGHT, "plaster", "plaster_green", [(1.75, 2.65, 0, _DOOR)]),
        wall("y", 6.5, (4.5, 8.9), HEIGHT, "plaster_rose", "plaster_blue", [(7.05, 7.95, 0, _DOOR)]),
        wall("x", 4.5, (6.56, 11.9), HEIGHT, "plaster_green", "wallpaper", [(9.55, 10.45, 0, _DOOR)]),
        trims("x", 5, 1.75, 2.65, _DOOR), trims("x", 5, 5.1, 6.0, _DOOR), trims("y", 4.5, 7.05, 7.95, _DOOR),
        trims("y", 6.5, 1.75, 2.65, _DOOR), trims("y", 6.5, 7.05, 7.95, _DOOR),
        trims("x", 4.5, 9.55, 10.45, _DOOR),
        door_leaf("door:0", 0.86, 2.0).moved(2.62, 5.05, 0, 80),
        door_leaf("door:1", 0.86, 2.0).moved(6.0, 4.95, 0, -95),
        door_leaf("door:2", 0.86, 2.0).moved(6.45, 2.62, 0, 170),
        door_leaf("door:3", 0.86, 2.0).moved(6.58, 7.92, 0, 12),
        door_leaf("door:4", 0.86, 2.0).moved(10.42, 4.42, 0, -80),
    ]  # fmt: skip


def _windows() -> Quads:
    """Frames, curtains and radiators."""
    parts = []
    for a, b in _SOUTH:
        m, w = (a + b) / 2, b - a
        parts += [window_frame(w, 1.3).moved(m, 0, 0.9), clutter.radiator(w - 0.4).moved(m, 0.16, 0, 180)]
        parts += [clutter.curtain(0.5, 1.75).moved(m + s * (w / 2 + 0.1), 0.2, 2.35) for s in (-1, 1)]
    for a, b in _NORTH:
        parts.append(window_frame(b - a, 1.15).moved((a + b) / 2, 9, 1.05))
    parts += [clutter.curtain(0.5, 1.75).moved(x, 8.8, 2.35) for x in (8.4, 10.6)]
    parts.append(window_frame(1.5, 1.3).moved(12, 6.75, 0.9, 90))
    parts += [clutter.curtain(0.5, 1.75).moved(11.8, y, 2.35, 90) for y in (5.9, 7.6)]
    return join(*parts)


def _living(rng: Rng) -> Quads:
    f, c = furniture, clutter
    rug = box((1.5, 1.4, 0), (3.3, 3.7, 0.012), {"+z": "rug:0", "": "fabric"}, fit=True)
    sideboard = join(
        f.cabinet(1.6, 0.42, 0.8, 4, "palewood"),
        c.vase(rng, 0.35).moved(-0.5, 0, 0.8),
        c.books(rng, 0.5, 0.3, 0.25).moved(0.2, 0, 0.8),
    )
    return join(
        rug, f.television(rng).moved(0.4, 2.5, 0, 90), f.sofa(rng).moved(3.85, 2.5, 0, -90),
        f.table(0.6, 1.1, 0.42, "wood").moved(2.35, 2.5), c.bowl_of_fruit(rng).moved(2.35, 2.7, 0.42),
        c.papers(rng, 0.4, 0.6, 4).moved(2.35, 2.2, 0.421),
        f.sofa(rng, 0.95, "print2").moved(3.25, 4.25, 0, 20),
        f.shelf(rng, 1.7, 2.1).moved(6.25, 3.9, 0, -90), sideboard.moved(4.0, 4.7),
        c.picture("painting:11", 0.6, 0.5).moved(0.11, 0.8, 1.7, 90),
        c.picture("painting:12", 0.45, 0.6).moved(3.3, 0.11, 1.6, 180),
        c.plant(rng, 1.4).moved(0.5, 4.5), c.plant(rng, 1.0).moved(0.45, 0.5), c.floor_lamp().moved(5.9, 0.5),
        c.picture("painting:0", 1.1, 0.8).moved(4.0, 4.93, 1.6),
        c.picture("painting:1", 1.4, 0.9).moved(0.11, 2.5, 1.85, 90),
        c.picture("poster:7", 0.5, 0.7).moved(0.11, 4.0, 1.6, 90),
        c.picture("painting:2", 0.7, 0.9).moved(6.43, 1.0, 1.6, -90),
        c.picture("painting:3", 0.5, 0.6).moved(1.2, 4.93, 1.55), c.ceiling_lamp(HEIGHT).moved(3.2, 2.5),
    )  # fmt: skip


def _kitchen(rng: Rng) -> Quads:
    f, c = furniture, clutter
    seats = [
        f.chair("palewood").moved(x, y, 0, a)
        for x, y, a in ((3.1, 5.5, 190), (3.8, 5.55, 170), (3.1, 6.75, 8), (3.85, 6.7, -15))
    ]
    upper = f.cabinet(1.5, 0.35, 0.7, 3, "lacquer")
    return join(
        f.counter(2.6, 5).moved(2.05, 8.58), f.stove().moved(3.66, 8.58),
        f.counter(1.5, 3).moved(0.42, 7.55, 0, 90),
        f.fridge(rng).moved(0.42, 6.3, 0, 90), upper.moved(0.3, 7.55, 1.5, 90),
        f.table(1.4, 0.85, 0.74).moved(3.45, 6.1),
        *seats, c.bowl_of_fruit(rng).moved(3.5, 6.2, 0.74), c.mug(rng).moved(3.1, 6.0, 0.74),
        c.mug(rng).moved(3.9, 6.25, 0.74),
        c.papers(rng, 0.3, 0.3, 2).moved(3.2, 6.15, 0.741), c.vase(rng, 0.28).moved(0.4, 7.2, 0.9),
        c.mug(rng).moved(0.45, 7.7, 0.9),
        panel((0.105, 7.55, 1.2), 1.5, 0.6, 0, "wall_tiles", fit=False),
        panel((3.7, 8.895, 1.35), 1.4, 0.9, -90, "wall_tiles", fit=False),
        c.picture("poster:8", 0.6, 0.85).moved(3.6, 5.07, 1.6, 180),
        c.picture("board:0", 0.8, 0.6).moved(4.43, 6.2, 1.55, -90),
        c.picture("painting:8", 0.5, 0.4).moved(0.11, 5.6, 1.6, 90), c.ceiling_lamp(HEIGHT).moved(2.2, 7.0),
        c.mug(rng).moved(2.7, 8.5, 0.9), c.vase(rng, 0.2).moved(1.2, 8.6, 0.9),
        c.books(rng, 0.4, 0.26, 0.2).moved(0.35, 8.55, 0.9),
    )  # fmt: skip


def _hall(rng: Rng) -> Quads:
    f, c = furniture, clutter
    coats = [
        box((-0.16, -0.08, 0.9), (0.16, 0.06, 1.65), m).moved(x, 8.75)
        for x, m in ((5.0, "fabric"), (5.4, "print"))
    ]
    return join(
        f.cabinet(1.0, 0.32, 0.9, 2, "wood").moved(4.74, 6.1, 0, 90), c.vase(rng, 0.3).moved(4.72, 5.9, 0.9),
        panel((6.0, 8.894, 1.02), 0.9, 2.04, -90, "door:5"), *coats,
        box((4.8, 8.84, 1.62), (5.65, 8.9, 1.68), "darkwood"),
        c.picture("painting:4", 0.7, 0.9).moved(4.57, 6.1, 1.65, 90),
        c.picture("poster:9", 0.6, 0.85).moved(6.43, 6.1, 1.6, -90),
        c.picture("poster:13", 0.5, 0.7).moved(4.57, 8.4, 1.6, 90),
        c.picture("painting:13", 0.4, 0.5).moved(5.9, 8.89, 2.3),
        c.picture("painting:9", 0.5, 0.5).moved(6.43, 8.5, 1.6, -90), c.ceiling_lamp(HEIGHT).moved(5.5, 7.0),
        box((5.0, 5.9, 0), (6.1, 7.0, 0.01), {"+z": "rug:2", "": "fabric"}, fit=True),
    )  # fmt: skip


def _bedroom(rng: Rng) -> Quads:
    f, c = furniture, clutter
    nightstand = join(
        f.cabinet(0.45, 0.4, 0.5, 2, "wood", drawers=True), c.books(rng, 0.2, 0.25, 0.2).moved(0.05, 0, 0.5)
    )
    return join(
        f.bed(rng).moved(10.82, 6.75, 0, -90), nightstand.moved(11.6, 5.6, 0, -90),
        nightstand.moved(11.6, 7.95, 0, -90),
        f.cabinet(2.2, 0.6, 2.2, 4, "palewood").moved(7.75, 4.9, 0, 180),
        f.cabinet(1.2, 0.45, 0.95, 4, "wood", drawers=True).moved(7.6, 8.62),
        c.vase(rng, 0.3).moved(7.3, 8.6, 0.95), c.picture("painting:5", 0.9, 0.6).moved(7.6, 8.89, 1.65),
        c.picture("painting:6", 0.6, 0.8).moved(11.89, 5.2, 1.6, -90), c.plant(rng, 1.3).moved(11.4, 8.5),
        box((8.0, 5.7, 0), (9.9, 7.8, 0.012), {"+z": "rug:1", "": "fabric"}, fit=True),
        c.ceiling_lamp(HEIGHT).moved(9.2, 6.8),
        c.picture("poster:14", 0.6, 0.8).moved(6.57, 6.2, 1.6, 90),
        c.picture("painting:14", 0.7, 0.5).moved(11.2, 8.89, 1.7),
        f.chair("darkwood").moved(11.2, 4.85, 0, 200),
    )  # fmt: skip


def _study(rng: Rng) -> Quads:
    f, c = furniture, clutter
    return join(
        f.desk(rng).moved(11.5, 1.6, 0, -90), f.chair("darkwood").moved(10.8, 1.7, 0, 75),
        f.shelf(rng, 1.4, 2.0).moved(11.73, 3.5, 0, -90),
        f.shelf(rng, 2.4, 2.2, material="palewood").moved(8.0, 4.27),
        f.table(1.6, 0.7, 0.74, "darkwood").moved(8.9, 0.65),
        c.papers(rng, 1.2, 0.4, 7).moved(8.9, 0.65, 0.741),
        c.books(rng, 0.5, 0.3, 0.25).moved(8.5, 0.6, 0.74), c.mug(rng).moved(9.4, 0.6, 0.74),
        c.picture("board:1", 1.1, 0.8).moved(6.57, 3.5, 1.6, 90),
        c.picture("poster:10", 0.6, 0.85).moved(6.57, 1.0, 1.6, 90),
        c.picture("painting:7", 0.8, 0.6).moved(11.89, 1.6, 1.75, -90),
        c.picture("poster:11", 0.5, 0.7).moved(10.95, 0.11, 1.6, 180),
        c.picture("painting:10", 0.6, 0.45).moved(7.4, 0.11, 1.6, 180),
        c.picture("poster:12", 0.5, 0.7).moved(9.2, 4.43, 1.6),
        c.plant(rng, 1.1).moved(6.95, 0.5), c.floor_lamp().moved(11.4, 0.4),
        c.ceiling_lamp(HEIGHT).moved(9.2, 2.2),
    )  # fmt: skip


def _outside(rng: Rng) -> Quads:
    """What the windows show: a lawn one storey down, houses across, trees."""
    across = [house(rng, 11, 8, 3).moved(-16 + 11.2 * k, 34, -3.2) for k in range(4)]
    south = [house(rng, 12, 8, 4).moved(32 - 12.2 * k, -26, -3.2, 180) for k in range(5)]
    east = [house(rng, 12, 8, 3).moved(34, 22 - 12.2 * k, -3.2, -90) for k in range(3)]
    crowns = [
        ball((x, y, 0.6), 1.8, "crown", 14) for x, y in ((3, -11), (10, -14), (2, 19), (11, 21), (24, 8))
    ]
    trunks = [
        box((x - 0.15, y - 0.15, -3.2), (x + 0.15, y + 0.15, 0), "bark")
        for x, y in ((3, -11), (10, -14), (2, 19), (11, 21), (24, 8))
    ]
    return join(sheet((-60, -60), (80, 80), -3.2, "grass"), *across, *south, *east, *crowns, *trunks)


def _cat() -> Mover:
    """Something that moves through the living room: a robot vacuum."""
    profile = np.array([[0, 0.02], [0.17, 0.02], [0.17, 0.09], [0.05, 0.1], [0.05, 0.12], [0, 0.12]])
    path = np.array(
        [
            (4.8, 0.9, 0),
            (2.0, 0.8, 0),
            (1.3, 2.0, 0),
            (1.4, 3.9, 0),
            (2.3, 4.3, 0),
            (5.2, 4.2, 0),
            (5.5, 2.4, 0),
        ],
        float,
    )
    return Mover(lathe(profile, "print", 20), path, 0.5)

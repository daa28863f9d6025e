"""An office corridor around a core that closes on itself: doors alike, plain walls, a few posters."""

import numpy as np

from geoweaver.synth import clutter, furniture
from geoweaver.synth.plan import Light, Mover, Plan
from geoweaver.synth.quads import Quads, join
from geoweaver.synth.solids import ball, box, panel, sheet, tube
from geoweaver.synth.walls import wall

Rng = np.random.Generator
HEIGHT = 2.7
_X, _Y, _WIDE = 22.0, 14.0, 2.2
"""Outer size of the ring and the corridor's width."""


def corridor(rng: Rng) -> Plan:
    """A ring of 22 m x 14 m; each side has its own wall colour, but its doors look alike."""
    quads = join(_shell(), _sides(rng), _lamps(), *_things(rng))
    light = Light(
        sun=(0, 0, 0), sky=(0.9, 1.0, 1.1), bounce=(0.3, 0.3, 0.3), lamps=tuple(_lamp_places()),
        lamp=(0.62, 0.62, 0.58), exposure=1.7,
    )  # fmt: skip
    m = _WIDE / 2
    x, y = _X - m, _Y - m
    corners = [
        (m + 2, m - 0.1), (6, m + 0.25), (11, m - 0.2), (16, m + 0.1), (x - 1.4, m), (x - 0.2, m + 0.3),
        (x + 0.1, m + 1.6),
        (x - 0.2, 5), (x + 0.2, 9), (x, y - 1.5), (x - 0.3, y - 0.2), (x - 1.6, y + 0.1), (16, y - 0.2),
        (11, y + 0.2),
        (6, y - 0.15), (m + 1.5, y), (m + 0.2, y - 0.3), (m - 0.1, y - 1.6), (m + 0.2, 9), (m - 0.2, 5),
        (m, m + 1.5), (m + 0.4, m + 0.2),
    ]  # fmt: skip
    return Plan(quads, {"walk": np.array([(a, b, 1.55) for a, b in corners])}, light, (_trolley(),))


def _shell() -> Quads:
    inner = (_WIDE, _X - _WIDE, _WIDE, _Y - _WIDE)
    gap = [(9.5, 12.5, 0.9, 2.3)]
    wide = [(3, 6, 0.9, 2.3), *gap, (16, 19, 0.9, 2.3)]
    return join(
        sheet((0, 0), (_X, _Y), 0, "carpet_tiles"),
        box((0, 0, HEIGHT), (_X, _Y, HEIGHT + 0.2), "ceiling_tiles"),
        wall("x", -0.1, (-0.2, _X + 0.2), HEIGHT, "concrete", "plaster", wide, 0.2),
        wall("x", _Y + 0.1, (-0.2, _X + 0.2), HEIGHT, "plaster_blue", "concrete", gap, 0.2),
        wall("y", -0.1, (0, _Y), HEIGHT, "concrete", "plaster_rose", [], 0.2),
        wall("y", _X + 0.1, (0, _Y), HEIGHT, "plaster", "concrete", [(5.5, 8.5, 0.9, 2.3)], 0.2),
        wall("x", inner[2] + 0.06, inner[:2], HEIGHT, "plaster", "plain"),
        wall("x", inner[3] - 0.06, inner[:2], HEIGHT, "plain", "brick_pale"),
        wall("y", inner[0] + 0.06, inner[2:], HEIGHT, "plaster_green", "plain"),
        wall("y", inner[1] - 0.06, inner[2:], HEIGHT, "plain", "plaster"),
        sheet((-60, -60), (_X + 60, _Y + 60), -3.0, "grass"),
    )  # fmt: skip


def _sides(rng: Rng) -> Quads:
    """Doors, skirting and pictures of the outer and inner walls, laid out along x and turned into place."""
    outer = [(_X, 0.0, 0.0, 180), (_Y, _X, 0.0, -90), (_X, _X, _Y, 0), (_Y, 0.0, _Y, 90)]
    starts = [(0.0, 0.0), (_X, 0.0), (_X, _Y), (0.0, _Y)]
    parts = [_outer_side(rng, k, outer[k][0]).moved(*starts[k], 0, 90 * k) for k in range(4)]
    w = _WIDE
    inner_starts = [(w, w), (_X - w, w), (_X - w, _Y - w), (w, _Y - w)]
    lengths = [_X - 2 * w, _Y - 2 * w, _X - 2 * w, _Y - 2 * w]
    parts += [_inner_side(rng, k, lengths[k]).moved(*inner_starts[k], 0, 90 * k) for k in range(4)]
    return join(*parts)


def _outer_side(rng: Rng, side: int, length: float) -> Quads:
    """Seen from the corridor, the wall runs along x at y = 0 and faces +y."""
    parts = [box((0, 0, 0), (length, 0.015, 0.09), "darkwood", without="-y")]
    at = {0: (2, 8, 14, 20), 1: (3, 11), 2: (2.5, 6, 15, 19), 3: (3, 7, 11)}[side]
    for x in at:
        parts += [_door(f"door:{side % 2}").moved(x, 0, 0, 180), _plate(rng).moved(x + 0.75, 0.01, 1.55, 180)]
    pictures = {0: (7, 13.2), 1: (4.5, 9.5), 2: (4.2, 7.8, 13.2, 17), 3: (5, 9)}[side]
    for x in {0: (), 1: (1.9, 12.2), 2: (1.1, 20.5), 3: (1.9, 12.3)}[side]:
        parts.append(_pinned(rng).moved(x, 0, 1.5, 180))
    for x in pictures:
        kind = f"{rng.choice(['poster', 'painting'])}:{rng.integers(20)}"
        parts.append(clutter.picture(kind, 0.8, float(rng.uniform(0.7, 1.1))).moved(x, 0.001, 1.55, 180))
    return join(*parts)


def _inner_side(rng: Rng, side: int, length: float) -> Quads:
    """Seen from the corridor, the core's wall runs along x at y = 0 and faces -y."""
    parts = [box((0, -0.015, 0), (length, 0, 0.09), "darkwood", without="+y")]
    for x in np.arange(1.5, length - 1, 4.0):
        parts += [_door("door:2").moved(float(x)), _plate(rng).moved(float(x) + 0.75, -0.01, 1.55)]
    for x in np.arange(3.5, length - 1.2, 4.0):
        kind = str(rng.choice(["board", "poster", "painting", "none"]))
        if kind == "none":
            parts.append(_pinned(rng).moved(float(x), 0, 1.5))
        else:
            size = 1.2 if kind == "board" else 0.75
            parts.append(
                clutter.picture(f"{kind}:{rng.integers(20)}", size, 0.9).moved(float(x), -0.031, 1.55)
            )
    return join(*parts)


def _pinned(rng: Rng) -> Quads:
    """Sheets of paper on a wall at y = 0 that faces south."""
    places = [
        (x + rng.uniform(-0.04, 0.04), z + rng.uniform(-0.05, 0.05))
        for x in (-0.5, -0.2, 0.15, 0.5)
        for z in (-0.2, 0.2)
    ]
    chosen = [places[k] for k in rng.permutation(8)[:6]]
    return join(
        *(
            panel((float(x), -0.006, float(z)), 0.21, 0.297, -90, f"page:{rng.integers(16)}")
            for x, z in chosen
        )
    )


def _door(picture: str) -> Quads:
    """A closed door with its casing, standing out from a wall at y = 0 that faces south."""
    casing = [
        box((-0.53, -0.05, 0), (-0.46, 0, 2.1), "metal"), box((0.46, -0.05, 0), (0.53, 0, 2.1), "metal"),
        box((-0.53, -0.05, 2.05), (0.53, 0, 2.12), "metal"),
    ]  # fmt: skip
    return join(panel((0, -0.02, 1.03), 0.92, 2.05, -90, picture), *casing)


def _plate(rng: Rng) -> Quads:
    """A room's number plate."""
    return panel((0, -0.01, 0), 0.16, 0.12, -90, f"page:{rng.integers(12)}")


def _lamp_places() -> list[tuple[float, float, float]]:
    m = _WIDE / 2
    xs, ys = np.arange(2.5, _X, 4.25), np.arange(4.5, _Y - 3, 4.9)
    places = [(float(x), y, HEIGHT - 0.35) for x in xs for y in (m, _Y - m)]
    return places + [(x, float(y), HEIGHT - 0.35) for y in ys for x in (m, _X - m)]


def _lamps() -> Quads:
    """Glowing panels in the ceiling."""
    return join(
        *(
            box(
                (x - 0.3, y - 0.3, HEIGHT - 0.03), (x + 0.3, y + 0.3, HEIGHT), "lacquer", without="+z"
            ).tinted(5, 5, 4.8)
            for x, y, _ in _lamp_places()
        )
    )


def _things(rng: Rng) -> list[Quads]:
    """What stands about: plants, a copier, shelves, chairs, an extinguisher, boxes."""
    f, c = furniture, clutter
    x, y = _X, _Y
    extinguisher = join(
        tube((0, 0, 0.5), 0.08, 0.5, "metal", 14).tinted(1.2, 0.15, 0.12),
        tube((0, 0, 1.0), 0.03, 0.08, "dark", 8),
    )
    copier = join(
        f.cabinet(0.6, 0.5, 0.8, 3, "lacquer", drawers=True),
        box((-0.32, -0.27, 0.8), (0.32, 0.27, 1.05), "dark"),
        c.papers(rng, 0.2, 0.1, 3).moved(0, 0, 1.051),
    )
    boxes = join(
        box((-0.2, -0.2, 0), (0.2, 0.2, 0.35), "palewood"),
        box((-0.15, -0.18, 0.35), (0.2, 0.14, 0.6), "palewood").moved(0.02, 0, 0, 12),
    )
    bench = join(f.table(1.4, 0.4, 0.45, "wood"), box((-0.5, -0.15, 0.45), (-0.2, 0.12, 0.7), "print2"))
    return [
        c.plant(rng, 1.3).moved(0.4, 0.4), c.plant(rng, 1.1).moved(x - 0.4, y - 0.4),
        c.plant(rng, 1.4).moved(x - 0.45, 0.45),
        c.plant(rng, 1.0).moved(11, y - 0.35), copier.moved(x - 0.35, 3.9, 0, -90),
        f.shelf(rng, 1.4, 1.8).moved(0.2, 9.0, 0, 90),
        bench.moved(11, 0.3, 0, 180), f.chair("metal").moved(9.2, y - 0.35),
        f.chair("metal").moved(9.9, y - 0.4, 0, 8),
        extinguisher.moved(_WIDE - 0.12, 6), extinguisher.moved(17.5, 0.12),
        boxes.moved(x - 0.35, 10, 0, 30), boxes.moved(0.35, 4.8, 0, -20),
        f.cabinet(1.2, 0.35, 1.1, 2, "metal").moved(5.2, _Y - 0.2),
        c.vase(rng, 0.3).moved(5.0, _Y - 0.2, 1.1), f.shelf(rng, 1.2, 1.2, boards=3).moved(13, _WIDE - 0.18),
        *(ball((7 + 9 * k, -9 - 3 * k, -0.2), 2.0, "crown", 14) for k in range(2)),
    ]  # fmt: skip


def _trolley() -> Mover:
    """A cart that is pushed around the ring the other way."""
    body = join(
        furniture.table(0.8, 0.45, 0.85, "metal"), box((-0.36, -0.2, 0.3), (0.36, 0.2, 0.33), "metal"),
        box((-0.3, -0.17, 0.85), (0.1, 0.17, 1.15), "palewood"),
        box((0.12, -0.12, 0.85), (0.34, 0.14, 1.0), "print"),
    )  # fmt: skip
    m, x, y = 0.55, _X - 0.55, _Y - 0.55
    path = [
        (x, m + 2),
        (x, y - 2),
        (x - 0.6, y - 0.5),
        (x - 2, y),
        (m + 2, y),
        (m + 0.5, y - 0.5),
        (m, y - 2),
        (m, m + 2),
        (m + 0.5, m + 0.5),
        (m + 2, m),
        (x - 2, m),
        (x - 0.5, m + 0.5),
    ]
    return Mover(body, np.array([(a, b, 0) for a, b in reversed(path)], float), 0.9, 6.0)

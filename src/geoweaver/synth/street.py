"""A street around a block: houses on both sides, kerbs, trees, parked cars, side streets, far hills."""

import numpy as np

from geoweaver.synth import street_things as things
from geoweaver.synth.facades import house
from geoweaver.synth.noise import clouds
from geoweaver.synth.plan import Light, Mover, Plan
from geoweaver.synth.quads import Array, Quads, from_corners, join
from geoweaver.synth.solids import box, sheet, tube

Rng = np.random.Generator
_BLOCK = (30.0, 20.0)
"""Half sizes of the block that the street runs around."""
_PAVED, _ROAD = 2.5, 8.0
_KERB = 0.14


def street(rng: Rng) -> Plan:
    """A round of about 240 m; the corners open on side streets, hills and towers."""
    x, y = _BLOCK[0] + _PAVED + _ROAD / 2, _BLOCK[1] + _PAVED + _ROAD / 2
    quads = join(_ground(), _markings(), _block(rng), _outer_rows(rng), _furnished(rng), _far(rng))
    routes = {
        "drive": _ring(x + 1.4, y + 1.4, 1.6, 9.0),
        "walk": _ring(x + _ROAD / 2 + 2.0, y + _ROAD / 2 + 2.0, 1.65 + _KERB, 2.5),
        "fly": _ring(x, y, 9.0, 7.0) + np.array([0, 0, 4.0]) * np.sin(np.arange(24) * np.pi / 6)[:, None],
    }
    light = Light(
        to_sun=(-0.45, -0.6, 0.75), sun=(2.3, 2.1, 1.75), sky=(0.6, 0.76, 1.05), bounce=(0.3, 0.28, 0.26),
        reach=1.5, haze=1600.0, exposure=1.35,
    )  # fmt: skip
    lane = _ring(x - 1.6, y - 1.6, 0.0, 5.0)[::-1].copy()
    walk = _ring(_BLOCK[0] + 1.3, _BLOCK[1] + 1.3, _KERB, 1.0)
    movers = (
        Mover(things.car(rng), lane, 6.0, 30),
        Mover(things.car(rng), lane, 6.0, 120),
        Mover(things.person(rng), walk, 1.3, 40),
        Mover(things.person(rng), walk, 1.2, 130),
    )
    return Plan(quads, routes, light, movers)


def _ring(x: float, y: float, z: float, radius: float) -> Array:
    """24 waypoints of a rectangle with round corners, anticlockwise."""
    arcs = []
    for k, (sx, sy) in enumerate(((1, -1), (1, 1), (-1, 1), (-1, -1))):
        a = np.radians(90 * k - 90 + np.array([0, 30, 60, 90]))
        centre = (sx * (x - radius), sy * (y - radius))
        arcs.append(centre + radius * np.stack([np.cos(a), np.sin(a)], -1))
    out = []
    for arc, after in zip(arcs, arcs[1:] + arcs[:1], strict=True):
        out += [arc, (2 * arc[-1:] + after[:1]) / 3, (arc[-1:] + 2 * after[:1]) / 3]
    flat = np.concatenate(out)
    return np.concatenate([flat, np.full((len(flat), 1), z)], -1)


def _ground() -> Quads:
    """Road, two kerbed pavements, land beyond."""
    bx, by = _BLOCK
    inner = box(
        (-bx - _PAVED, -by - _PAVED, -0.2), (bx + _PAVED, by + _PAVED, _KERB), {"+z": "paving", "": "granite"}
    )
    gx, gy = bx + _PAVED + _ROAD, by + _PAVED + _ROAD
    rows = [
        ((-gx + 4, gy), (gx - 4, gy + 14)), ((-gx + 4, -gy - 14), (gx - 4, -gy)),
        ((gx, -gy + 4), (gx + 14, gy - 4)), ((-gx - 14, -gy + 4), (-gx, gy - 4)),
    ]  # fmt: skip
    outer = [box((*a, -0.2), (*b, _KERB), {"+z": "paving", "": "granite"}) for a, b in rows]
    green = {"+z": "grass", "": "granite"}
    plots = [
        box((0, 0, -0.2), (40, 40, _KERB), green).moved(sx * (gx + 1), sy * (gy + 1), 0, a)
        for sx, sy, a in ((1, 1, 0), (-1, 1, 90), (-1, -1, 180), (1, -1, 270))
    ]
    return join(
        sheet((-90, -90), (90, 90), 0, "asphalt"),
        inner,
        *outer,
        *plots,
        sheet((-900, -900), (900, 900), -0.3, "grass"),
    )


def _stripe(x0: float, y0: float, x1: float, y1: float) -> Quads:
    return box(
        (min(x0, x1), min(y0, y1), -0.01), (max(x0, x1), max(y0, y1), 0.006), "stucco_white", without="-z"
    )


def _markings() -> Quads:
    """Dashed middle line, crossings, manholes."""
    x, y = _BLOCK[0] + _PAVED + _ROAD / 2, _BLOCK[1] + _PAVED + _ROAD / 2
    parts = []
    for s in np.arange(-x + 8, x - 8, 5.0):
        parts += [_stripe(s, side * y - 0.07, s + 2.2, side * y + 0.07) for side in (-1, 1)]
    for s in np.arange(-y + 8, y - 8, 5.0):
        parts += [_stripe(side * x - 0.07, s, side * x + 0.07, s + 2.2) for side in (-1, 1)]
    for k in np.arange(-_ROAD / 2 + 0.3, _ROAD / 2 - 0.4, 1.0):
        parts += [
            _stripe(sx * (x - 7) - 1.3, sy * y + k, sx * (x - 7) + 1.3, sy * y + k + 0.5)
            for sx, sy in ((1, 1), (-1, -1), (1, -1))
        ]
    holes = [(12, y - 1), (-20, -y + 0.8), (x - 1, 5), (-x + 1.2, -9), (-3, y + 1.5)]
    return join(
        *parts, *(tube((a, b, -0.01), 0.34, 0.02, "metal", 18).tinted(0.5, 0.5, 0.5) for a, b in holes)
    )


def _row(rng: Rng, length: float, depth: float, low: int, high: int) -> Quads:
    """Houses side by side along x, facing south."""
    parts, at = [], 0.0
    while length - at > 6:
        width = min(float(rng.uniform(8, 14)), length - at)
        width = length - at if length - at - width < 7 else width
        parts.append(
            house(rng, width, depth, int(rng.integers(low, high))).moved(at, float(rng.uniform(-0.15, 0.15)))
        )
        at += width
    return join(*parts)


def _block(rng: Rng) -> Quads:
    bx, by = _BLOCK
    deep = 9.0
    return join(
        _row(rng, 2 * bx, deep, 3, 6).moved(-bx, -by, _KERB),
        _row(rng, 2 * bx, deep, 3, 6).moved(bx, by, _KERB, 180),
        _row(rng, 2 * (by - deep), deep, 2, 5).moved(bx, -by + deep, _KERB, 90),
        _row(rng, 2 * (by - deep), deep, 2, 5).moved(-bx, by - deep, _KERB, -90),
    )  # fmt: skip


def _outer_rows(rng: Rng) -> Quads:
    gx, gy = _BLOCK[0] + _PAVED + _ROAD + 3.2, _BLOCK[1] + _PAVED + _ROAD + 3.2
    return join(
        _row(rng, 2 * gx - 22, 10, 2, 6).moved(-gx + 11, gy, _KERB),
        _row(rng, 2 * gx - 22, 10, 2, 6).moved(gx - 11, -gy, _KERB, 180),
        _row(rng, 2 * gy - 22, 10, 2, 5).moved(gx, gy - 11, _KERB, -90),
        _row(rng, 2 * gy - 22, 10, 2, 5).moved(-gx, -gy + 11, _KERB, 90),
    )  # fmt: skip


def _furnished(rng: Rng) -> Quads:
    """Everything that stands on the pavements and at the kerbs, side by side along the four sides."""
    bx, by = _BLOCK[0] + _PAVED, _BLOCK[1] + _PAVED
    gx, gy = bx + _ROAD, by + _ROAD
    corners = ((1, 1, 0), (-1, 1, 90), (-1, -1, 180), (1, -1, 270))
    parts = [
        _side(rng, 2 * bx - 10).moved(-bx + 5, -by, 0), _side(rng, 2 * by - 10).moved(bx, -by + 5, 0, 90),
        _side(rng, 2 * bx - 10).moved(bx - 5, by, 0, 180), _side(rng, 2 * by - 10).moved(-bx, by - 5, 0, -90),
        *(_corner_plot(rng).moved(sx * (gx + 1), sy * (gy + 1), _KERB, a) for sx, sy, a in corners),
        _far_side(rng, 2 * gx - 16).moved(gx - 8, -gy, 0, 180),
        _far_side(rng, 2 * gy - 16).moved(gx, gy - 8, 0, -90),
        _far_side(rng, 2 * gx - 16).moved(-gx + 8, gy, 0),
        _far_side(rng, 2 * gy - 16).moved(-gx, -gy + 8, 0, 90),
    ]  # fmt: skip
    return join(*parts)


def _side(rng: Rng, length: float) -> Quads:
    """Inner kerb along x at y = 0; the road lies to the south, the block to the north."""
    parts = [things.lamp_post().moved(float(x), 0.35, _KERB) for x in np.arange(3, length, 14.0)]
    for x in np.arange(6.5, length - 5, 7.0):
        pick = rng.uniform()
        if pick < 0.45:
            parts.append(things.car(rng).moved(float(x), -1.05, 0, 180 * int(rng.integers(2))))
        elif pick < 0.8:
            parts.append(
                things.tree(rng, float(rng.uniform(4.5, 6.5))).moved(
                    float(x), 0.7, _KERB, float(rng.uniform(0, 360))
                )
            )
    for x in rng.uniform(2, length - 2, 3):
        thing = [
            things.bench().moved(0, 1.9),
            things.bin_().moved(0, 0.5),
            things.road_sign(rng).moved(0, 0.4),
        ][int(rng.integers(3))]
        parts.append(thing.moved(float(x), 0, _KERB))
    return join(*parts)


def _far_side(rng: Rng, length: float) -> Quads:
    """Outer kerb along x at y = 0; the road lies to the south, houses to the north; the path stays free."""
    parts = [things.lamp_post().moved(float(x), 0.3, _KERB) for x in np.arange(8, length, 16.0)]
    for x in np.arange(5, length - 4, 9.0):
        pick = rng.uniform()
        small = [
            things.bin_().moved(0, 0.4),
            things.road_sign(rng).moved(0, 0.3),
            tube((0, 0.4, 0), 0.09, 0.9, "concrete", 12),
            things.poster_column(rng).moved(0, 0.62),
        ]
        if pick < 0.85:
            parts.append(small[int(4 * pick / 0.85)].moved(float(x), 0, _KERB))
    return join(*parts)


def _corner_plot(rng: Rng) -> Quads:
    """A small green in the quadrant x, y > 0: trees, benches, a column, a hedge."""
    trees = [
        things.tree(rng, float(rng.uniform(4, 7))).moved(float(x), float(y))
        for x, y in rng.uniform(3, 18, (5, 2))
    ]
    hedge = box((0.6, 5, 0), (1.2, 16, 0.8), "leaves").tinted(1.6, 1.6, 1.4)
    return join(
        *trees,
        hedge,
        things.bench().moved(6, 1.2, 0, 180),
        things.poster_column(rng).moved(2.2, 2.2),
        things.road_sign(rng).moved(0.5, 1.5, 0, 45),
        things.bus_stop(rng).moved(11, 2, 0, 0),
    )


def _far(rng: Rng) -> Quads:
    """Hills in a ring, towers and woods between."""
    n, rings = 72, 7
    angle = np.linspace(0, 2 * np.pi, n + 1)
    radius = np.linspace(180, 850, rings)
    height = (
        np.clip(30 + 38 * clouds(rng, n, 1.3, 2)[:rings], 4, None) * np.linspace(0.02, 1.7, rings)[:, None]
    )
    height = np.concatenate([height, height[:, :1]], 1)
    points = np.stack([radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle), height - 0.4], -1)
    land = np.stack([points[1:, 1:], points[1:, :-1], points[:-1, :-1], points[:-1, 1:]], 2).reshape(-1, 4, 3)
    towers = []
    for a, r in zip(rng.uniform(0, 2 * np.pi, 16), rng.uniform(95, 170, 16), strict=True):
        towers.append(
            house(rng, float(rng.uniform(12, 22)), 12, int(rng.integers(4, 11))).moved(
                r * np.cos(a), r * np.sin(a), -0.3, float(np.degrees(a)) - 90
            )
        )
    woods = [
        things.tree(rng, float(rng.uniform(7, 11)), 4).moved(float(r * np.cos(a)), float(r * np.sin(a)), -0.3)
        for a, r in zip(rng.uniform(0, 2 * np.pi, 24), rng.uniform(75, 110, 24), strict=True)
    ]
    hills = from_corners(land, "hill")
    hills.uv[:, 0] = land[:, 0, :2]
    hills.uv[:, 1], hills.uv[:, 2] = land[:, 1, :2] - land[:, 0, :2], land[:, 3, :2] - land[:, 0, :2]
    return join(hills, *towers, *woods)

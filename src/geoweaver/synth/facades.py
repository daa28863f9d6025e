"""House fronts along x that face south: walls with recessed windows, shops, doors, cornices, roofs."""

import numpy as np

from geoweaver.synth.quads import Quads, from_corners, join
from geoweaver.synth.solids import box

Rng = np.random.Generator
WALLS = ("brick", "brick_pale", "brick_dark", "stucco", "stucco_white", "stucco_red", "blocks", "concrete")


def rectangle(
    x0: float, x1: float, z0: float, z1: float, material: str, y: float = 0, fit: bool = False
) -> Quads:
    """A piece of wall in the plane y, its texture continuing from piece to piece."""
    corners = np.array([[(x0, y, z1), (x1, y, z1), (x1, y, z0), (x0, y, z0)]], float)
    return from_corners(corners, material, fit, (0, 0) if fit else (x0, -z1))


def window(
    cell: tuple[float, float, float, float],
    hole: tuple[float, float, float, float],
    wall: str,
    pane: str,
    deep: float = 0.18,
) -> Quads:
    """A cell of wall (x0, x1, z0, z1) around a recessed window."""
    x0, x1, z0, z1 = cell
    a, b, c, d = hole
    around = [
        rectangle(x0, a, z0, z1, wall), rectangle(b, x1, z0, z1, wall),
        rectangle(a, b, z0, c, wall), rectangle(a, b, d, z1, wall),
    ]  # fmt: skip
    reveal = [
        [(a, 0, d), (a, deep, d), (a, deep, c), (a, 0, c)],
        [(b, deep, d), (b, 0, d), (b, 0, c), (b, deep, c)],
        [(a, deep, c), (b, deep, c), (b, 0, c), (a, 0, c)],
        [(a, 0, d), (b, 0, d), (b, deep, d), (a, deep, d)],
    ]  # fmt: skip
    sill = box((a - 0.08, -0.1, c - 0.08), (b + 0.08, 0, c), "stucco_white", without="+y")
    glass = rectangle(a, b, c, d, pane, deep, fit=True)
    return join(*around, from_corners(np.array(reveal, float), "stucco_white"), sill, glass)


def storey(rng: Rng, width: float, low: float, high: float, wall: str, bays: int, tall: float) -> Quads:
    """A row of windows over the whole width."""
    step, wide = width / bays, float(rng.uniform(0.38, 0.55)) * width / bays
    bottom = low + 0.28 * (high - low)
    top = bottom + tall * (high - low)
    return join(
        *(
            window(
                (k * step, (k + 1) * step, low, high),
                ((k + 0.5) * step - wide / 2, (k + 0.5) * step + wide / 2, bottom, top),
                wall, f"pane:{rng.integers(14)}",
            )
            for k in range(bays)
        )
    )  # fmt: skip


def shop(rng: Rng, width: float, high: float, wall: str) -> Quads:
    """A ground floor with a show window, a door, a name and perhaps an awning."""
    door = 1.1
    parts = [
        window(
            (0, width - door - 0.8, 0, high),
            (0.5, width - door - 1.1, 0.6, high - 0.9),
            wall,
            f"poster:{rng.integers(6)}",
            0.35,
        ),
        window(
            (width - door - 0.8, width, 0, high),
            (width - door - 0.4, width - 0.4, 0.05, 2.3),
            wall,
            f"door:{rng.integers(6)}",
            0.3,
        ),
        box(
            (0.3, -0.12, high - 0.75),
            (width - 0.3, 0, high - 0.15),
            {"-y": f"sign:{rng.integers(10)}", "": "darkwood"},
            fit=True,
            without="+y",
        ),
    ]
    if rng.uniform() < 0.6:
        y, z = -1.3, high - 1.45
        cloth = np.array(
            [[(0.4, -0.02, high - 0.85), (width - 0.4, -0.02, high - 0.85), (width - 0.4, y, z), (0.4, y, z)]]
        )
        parts.append(from_corners(cloth, "curtain").tinted(*rng.uniform(0.5, 1.4, 3)))
    return join(*parts)


def entrance(rng: Rng, width: float, high: float, wall: str) -> Quads:
    """A ground floor with a house door between windows."""
    middle = width / 2
    return join(
        storey(rng, middle - 1.0, 0, high, wall, max(1, int(middle / 2.6)), 0.5),
        window(
            (middle - 1.0, middle + 1.0, 0, high),
            (middle - 0.55, middle + 0.55, 0.15, 2.5),
            wall,
            f"door:{rng.integers(6)}",
            0.25,
        ),
        box((middle - 0.8, -0.5, 0), (middle + 0.8, 0, 0.15), "blocks", without="+y"),
        storey(rng, middle - 1.0, 0, high, wall, max(1, int(middle / 2.6)), 0.5).moved(middle + 1.0),
    )


def house(rng: Rng, width: float, depth: float, floors: int) -> Quads:
    """A house whose front runs from (0, 0) to (width, 0); plain sides and back, a flat or pitched roof."""
    wall = str(rng.choice(WALLS))
    high, up = float(rng.uniform(3.3, 3.9)), float(rng.uniform(2.8, 3.3))
    bays, tall = max(2, round(width / float(rng.uniform(2.4, 3.4)))), float(rng.uniform(0.5, 0.6))
    tint = rng.uniform(0.75, 1.15) * rng.uniform(0.92, 1.08, 3)
    ground = (shop if rng.uniform() < 0.5 else entrance)(rng, width, high, wall)
    upper = [
        storey(rng, width, high + k * up, high + (k + 1) * up, wall, bays, tall) for k in range(floors - 1)
    ]
    top = high + (floors - 1) * up
    body = box((0, 0, 0), (width, depth, top), wall, without="-y -z +z")
    ledge = [
        box((-0.08, -0.15, z - 0.12), (width + 0.08, 0, z + 0.12), "stucco_white", without="+y")
        for z in (high, top)
    ]
    front = join(ground, *upper, body)
    colour = np.where(np.isin(front.material, WALLS)[:, None], tint, 1)
    return join(
        Quads(front.corners, front.uv, front.material, front.tint * colour),
        *ledge,
        _roof(rng, width, depth, top),
    )


def _roof(rng: Rng, width: float, depth: float, top: float) -> Quads:
    if rng.uniform() < 0.45:
        chimney = box(
            (width * 0.6, depth * 0.5, top), (width * 0.6 + 0.8, depth * 0.5 + 0.6, top + 1.6), "brick"
        )
        return join(box((0, 0, top), (width, depth, top + 0.1), "concrete"), chimney)
    ridge, y = top + float(rng.uniform(1.5, 3)), depth / 2
    slopes = [
        [(0, y, ridge), (width, y, ridge), (width, -0.3, top), (0, -0.3, top)],
        [(width, y, ridge), (0, y, ridge), (0, depth + 0.3, top), (width, depth + 0.3, top)],
    ]
    gables = [
        [(0, y, ridge), (0, y, ridge), (0, 0, top), (0, depth, top)],
        [(width, y, ridge), (width, y, ridge), (width, depth, top), (width, 0, top)],
    ]
    return join(
        from_corners(np.array(slopes, float), "roof"), from_corners(np.array(gables, float), "stucco")
    )

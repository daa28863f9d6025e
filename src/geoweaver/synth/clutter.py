"""Small things that make a place lived in: books, papers, lamps, plants, pots, pictures, curtains."""

import numpy as np

from geoweaver.synth.quads import Quads, from_corners, join
from geoweaver.synth.solids import ball, box, lathe, panel, tube

Rng = np.random.Generator


def books(rng: Rng, width: float, room: float, depth: float) -> Quads:
    """A row of books with gaps and a few things between them, left to right."""
    parts, x = [], -width / 2 + 0.01
    while x < width / 2 - 0.06:
        kind = rng.uniform()
        if kind < 0.12:
            x += float(rng.uniform(0.05, 0.2))
        elif kind < 0.17 and x < width / 2 - 0.2:
            parts.append(vase(rng, min(0.8 * room, 0.25)).moved(x + 0.09, 0))
            x += 0.18
        else:
            thick, tall = float(rng.uniform(0.018, 0.055)), float(rng.uniform(0.6, 0.93)) * min(room, 0.34)
            back = float(rng.uniform(0.0, 0.05))
            cover = box(
                (x, -depth / 2 + 0.02 + back, 0), (x + thick, depth / 2 - 0.05, tall),
                {"-y": f"spine:{rng.integers(24)}", "+z": "linen", "": "lacquer"}, fit=True, without="-z +y",
            )  # fmt: skip
            parts.append(cover.tinted(*rng.uniform(0.5, 1.1, 3)))
            x += thick + 0.002
    return join(*parts) if parts else box((0, 0, 0), (0.1, 0.1, 0.1), "wood")


def papers(rng: Rng, width: float, depth: float, count: int) -> Quads:
    """Sheets lying about on a table."""
    parts = []
    for k in range(count):
        sheet = box(
            (-0.105, -0.15, 0),
            (0.105, 0.15, 0.004),
            {"+z": f"page:{rng.integers(8)}", "": "lacquer"},
            fit=True,
        )
        x, y = rng.uniform(-0.5, 0.5, 2) * (width, depth)
        parts.append(sheet.moved(float(x), float(y), 0.005 * k, float(rng.uniform(-40, 40))))
    return join(*parts)


def monitor(rng: Rng) -> Quads:
    """A screen on a foot."""
    return join(
        box((-0.3, 0.0, 0.12), (0.3, 0.04, 0.5), "dark"),
        panel((0, -0.002, 0.31), 0.57, 0.34, -90, f"screen:{rng.integers(4)}"),
        box((-0.03, 0.01, 0), (0.03, 0.05, 0.12), "dark"),
        box((-0.12, -0.06, 0), (0.12, 0.12, 0.012), "dark"),
    )


def keyboard() -> Quads:
    """Rows of keys."""
    keys = [
        box((x, y, 0.012), (x + 0.024, y + 0.024, 0.02), "lacquer", without="-z")
        for x in np.arange(-0.2, 0.19, 0.03)
        for y in np.arange(-0.06, 0.05, 0.03)
    ]
    return join(box((-0.22, -0.075, 0), (0.22, 0.075, 0.012), "dark"), *keys)


def mug(rng: Rng) -> Quads:
    """A mug without its handle."""
    profile = np.array([[0, 0], [0.038, 0], [0.04, 0.09], [0.034, 0.09], [0.032, 0.02], [0, 0.02]])
    return lathe(profile, f"glaze:{rng.integers(3)}", 16, fit=True).tinted(*rng.uniform(0.5, 1, 3))


def vase(rng: Rng, height: float) -> Quads:
    """A turned vessel with painted bands."""
    h = np.linspace(0, 1, 9)
    radius = (
        0.25
        + 0.14 * np.sin(np.pi * (h + rng.uniform(0, 0.3)))
        + 0.06 * np.sin(2 * np.pi * h * rng.uniform(0.5, 1.3))
    )
    profile = np.stack([radius * height, h * height], -1)
    inner = np.stack([radius[::-4] * 0.85 * height, h[::-4] * height], -1)
    closed = np.concatenate([[[0, 0]], profile, inner, [[0, 0.05 * height]]])
    return lathe(closed, f"glaze:{rng.integers(6)}", 20, fit=True)


def plant(rng: Rng, height: float = 1.2, blades: int = 42) -> Quads:
    """A pot and long bent leaves."""
    pot = np.array([[0, 0], [0.13, 0], [0.18, 0.3], [0.16, 0.3], [0.15, 0.26], [0, 0.26]])
    leaves = []
    for angle, lean, size in zip(
        rng.uniform(0, 2 * np.pi, blades),
        rng.uniform(0.2, 1.0, blades),
        rng.uniform(0.6, 1, blades),
        strict=True,
    ):
        out = np.array([np.cos(angle), np.sin(angle), 0])
        side = np.array([-np.sin(angle), np.cos(angle), 0]) * 0.045
        t = np.linspace(0, 1, 4)[:, None]
        spine = out * (0.03 + 0.5 * lean * t**1.5) * size * height / 1.2 + [0, 0, 1] * (
            0.26 + (height - 0.3) * size * (t - 0.35 * lean * t**3)
        )
        half = side * (np.sin(np.pi * (0.12 + 0.85 * t)))
        left, right = spine - half, spine + half
        leaves.append(np.stack([left[1:], right[1:], right[:-1], left[:-1]], 1))
    return join(
        lathe(pot, f"glaze:{rng.integers(6)}", 20, fit=True),
        from_corners(np.concatenate(leaves), "leaves").tinted(1.4, 1.4, 1.2),
    )


def floor_lamp() -> Quads:
    """Foot, pole and a linen shade."""
    shade = np.array([[0.2, 1.35], [0.13, 1.65]])
    inside = shade[::-1] - [0.004, 0]
    return join(
        tube((0, 0, 0), 0.14, 0.03, "metal"),
        tube((0, 0, 0.03), 0.012, 1.5, "metal", 8),
        lathe(np.concatenate([shade, inside]), "linen", 20).tinted(1.6, 1.45, 1.1),
    )


def ceiling_lamp(height: float) -> Quads:
    """A globe on a cord."""
    cord = box((-0.005, -0.005, height - 0.4), (0.005, 0.005, height), "dark")
    return join(cord, ball((0, 0, height - 0.5), 0.14, "lacquer", 16).tinted(4, 3.7, 3))


def picture(kind: str, width: float, height: float) -> Quads:
    """A framed picture at the origin, facing south, its middle at z = 0."""
    w, h = width / 2, height / 2
    return box((-w, 0, -h), (w, 0.03, h), {"-y": kind, "": "darkwood"}, fit=True, without="+y")


def curtain(width: float, height: float) -> Quads:
    """Hanging cloth in folds, its top at z = 0, facing south."""
    n = max(4, int(width / 0.06))
    x = np.linspace(-width / 2, width / 2, n + 1)
    y = 0.035 * np.where(np.arange(n + 1) % 2, 1.0, -1.0)
    top = np.stack([x, y, np.zeros(n + 1)], -1)
    low = top - [0, 0, height]
    cloth = from_corners(np.stack([top[:-1], top[1:], low[1:], low[:-1]], 1), "curtain")
    cloth.uv[:, 0, 0] = x[:-1]
    return cloth


def bowl_of_fruit(rng: Rng) -> Quads:
    """A bowl with apples and oranges."""
    bowl = np.array([[0, 0], [0.07, 0], [0.15, 0.08], [0.14, 0.08], [0.07, 0.015], [0, 0.015]])
    fruit = [
        ball((0.075 * np.cos(a), 0.075 * np.sin(a), 0.075), 0.042, "granite", 14).tinted(*c)
        for a, c in zip(
            np.arange(5) * 1.26,
            ((2.2, 0.5, 0.3), (2.4, 1.3, 0.2), (1.1, 1.9, 0.4), (2.2, 0.6, 0.4), (2.4, 1.4, 0.3)),
            strict=True,
        )
    ]
    return join(lathe(bowl, f"glaze:{rng.integers(6)}", 24, fit=True), *fruit)


def radiator(width: float) -> Quads:
    """Ribs along a wall, facing south."""
    ribs = [
        box((x, -0.05, 0.12), (x + 0.05, 0.04, 0.7), "lacquer", without="+y")
        for x in np.arange(-width / 2, width / 2 - 0.05, 0.08)
    ]
    return join(*ribs)

"""An object on a table in a room: a painted pot among books, fruit and papers; cameras go around it."""

import numpy as np

from geoweaver.synth import clutter, furniture
from geoweaver.synth.plan import Light, Mover, Plan
from geoweaver.synth.quads import Array, Quads, from_corners, join
from geoweaver.synth.solids import ball, box, lathe, sheet
from geoweaver.synth.walls import wall, window_frame

Rng = np.random.Generator
TOP = 0.76
"""Height of the table."""


def tabletop(rng: Rng) -> Plan:
    """A round of 1.1 m about a table in the middle of a room of 5 m x 5 m."""
    quads = join(_room(rng), _table(rng), _teapot().moved(0, 0, TOP + 0.004, 25))
    light = Light(
        to_sun=(-0.6, -0.55, 0.6), sun=(2.2, 2.0, 1.7), sky=(1.2, 1.35, 1.55), bounce=(0.42, 0.4, 0.38),
        lamps=((0.0, 0.3, 2.1),), lamp=(1.3, 1.15, 0.95), exposure=1.6, reach=0.3,
    )  # fmt: skip
    a = np.arange(12) * np.pi / 6
    ring = np.stack([1.15 * np.cos(a), 1.15 * np.sin(a), TOP + 0.55 + 0.18 * np.sin(2 * a)], -1)
    toy = lathe(np.array([[0, 0], [0.04, 0], [0.05, 0.05], [0.02, 0.09], [0, 0.1]]), "print", 14)
    track = np.stack([0.46 * np.cos(a), 0.34 * np.sin(a), np.full(12, TOP + 0.004)], -1)
    return Plan(quads, {"orbit": ring}, light, (Mover(toy, track, 0.12),))


def _teapot() -> Quads:
    """A bellied pot with lid, spout and handle."""
    body = np.array([
        [0, 0], [0.085, 0], [0.09, 0.012], [0.12, 0.04], [0.145, 0.085], [0.148, 0.12], [0.13, 0.165],
        [0.1, 0.195], [0.085, 0.203],
        [0.08, 0.21], [0.06, 0.23], [0.025, 0.243], [0.014, 0.25], [0.024, 0.262], [0.026, 0.275],
        [0.015, 0.288], [0, 0.29],
    ])  # fmt: skip
    t = np.linspace(0, 1, 12)
    spout = np.stack([0.12 + 0.14 * t, 0 * t, 0.07 + 0.06 * t + 0.08 * t**3], -1)
    a = np.linspace(-1.35, 1.35, 16)
    handle = np.stack([-0.125 - 0.1 * np.cos(a), 0 * a, 0.115 + 0.075 * np.sin(a)], -1)
    return join(
        lathe(body, "glaze:10", 40, fit=True),
        _pipe(spout, 0.032 - 0.016 * t, "glaze:11"),
        _pipe(handle, 0 * a + 0.013, "glaze:12"),
    )


def _pipe(spine: Array, radius: Array, material: str, sides: int = 14) -> Quads:
    """A round pipe along a curve in the plane y = 0."""
    ahead = np.gradient(spine, axis=0)
    ahead /= np.linalg.norm(ahead, axis=-1, keepdims=True)
    across = np.stack([-ahead[:, 2], 0 * ahead[:, 0], ahead[:, 0]], -1)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    ring = np.cos(angle)[:, None] * across[:, None] + np.sin(angle)[:, None] * np.array([0, 1.0, 0])
    points = spine[:, None] + radius[:, None, None] * ring
    corners = np.stack([points[1:, :-1], points[1:, 1:], points[:-1, 1:], points[:-1, :-1]], 2).reshape(
        -1, 4, 3
    )
    quads = from_corners(corners, material)
    place = np.stack(np.meshgrid(np.arange(len(spine) - 1), np.arange(sides), indexing="ij"), -1).reshape(
        -1, 2
    )
    uv = np.zeros((len(corners), 3, 2))
    uv[:, 0] = place[:, ::-1] / (sides, len(spine) - 1)
    uv[:, 1, 0], uv[:, 2, 1] = 1 / sides, -1 / (len(spine) - 1)
    return Quads(corners, uv, quads.material, quads.tint)


def _table(rng: Rng) -> Quads:
    """A wooden table, a printed cloth, and things around its middle."""
    c = clutter
    cloth = box((-0.4, -0.3, TOP), (0.4, 0.3, TOP + 0.004), {"+z": "rug:3", "": "linen"}, fit=True).moved(
        0, 0, 0, 8
    )
    stack, z = [], TOP
    for k in range(4):
        w, d, h = 0.2 - 0.01 * k, 0.15, float(rng.uniform(0.02, 0.04))
        cover = box(
            (-w / 2, -d / 2, 0),
            (w / 2, d / 2, h),
            {"+z": f"poster:{k}", "-y": "spine:1", "": "linen"},
            fit=True,
        )
        stack.append(cover.moved(-0.36, 0.27, z, float(rng.uniform(-25, 25))))
        z += h
    return join(
        furniture.table(1.5, 1.0, TOP, "wood"), cloth, *stack, c.bowl_of_fruit(rng).moved(0.45, 0.22, TOP),
        c.mug(rng).moved(0.3, -0.3, TOP), c.mug(rng).moved(-0.5, -0.1, TOP),
        c.papers(rng, 0.25, 0.1, 3).moved(-0.3, -0.33, TOP + 0.001),
        c.vase(rng, 0.26).moved(-0.58, 0.33, TOP), box((0.5, -0.38, TOP), (0.62, -0.3, TOP + 0.09), "print"),
        ball((0.15, 0.37, TOP + 0.035), 0.035, "granite", 16).tinted(2.2, 0.5, 0.3),
    )  # fmt: skip


def _room(rng: Rng) -> Quads:
    f, c = furniture, clutter
    s = 2.5
    walls = [
        wall("x", -s, (-s, s), 2.6, "stucco", "plaster", [(-1.2, 0.6, 0.8, 2.2)], 0.2),
        wall("x", s, (-s, s), 2.6, "plaster_green", "stucco", [], 0.2),
        wall("y", -s, (-s, s), 2.6, "stucco", "plaster", [(-1.5, 0.0, 0.8, 2.2)], 0.2),
        wall("y", s, (-s, s), 2.6, "wallpaper", "stucco", [], 0.2),
    ]
    frames = [window_frame(1.8, 1.4).moved(-0.3, -s, 0.8), window_frame(1.5, 1.4).moved(-s, -0.75, 0.8, 90)]
    seats = [
        f.chair("palewood").moved(x, y, 0, a)
        for x, y, a in ((-0.3, 0.85, 5), (0.4, -0.9, 185), (1.1, 0.1, -80))
    ]
    return join(
        sheet((-s, -s), (s, s), 0, "oak"), box((-s, -s, 2.6), (s, s, 2.8), "ceiling"), *walls, *frames,
        *seats,
        sheet((-60, -60), (60, 60), -3.0, "grass"), ball((-3, -12, 0), 2.2, "crown", 16),
        ball((-13, 1, 0), 2.5, "crown", 16),
        f.shelf(rng, 1.8, 2.0).moved(-0.9, s - 0.26),
        f.cabinet(1.2, 0.4, 0.85, 3, "darkwood").moved(s - 0.31, -1.2, 0, -90),
        c.vase(rng, 0.4).moved(s - 0.3, -1.4, 0.85),
        c.picture("painting:20", 1.2, 0.8).moved(s - 0.11, -1.2, 1.6, -90),
        c.picture("poster:21", 0.6, 0.85).moved(s - 0.11, 0.4, 1.5, -90),
        c.picture("painting:22", 0.8, 0.9).moved(1.3, s - 0.11, 1.5),
        c.plant(rng, 1.3).moved(2.0, 2.0), c.plant(rng, 1.1).moved(-2.0, -2.0),
        c.floor_lamp().moved(2.0, -2.1),
        *(c.curtain(0.5, 1.9).moved(x, -s + 0.2, 2.4) for x in (-1.35, 0.75)),
        c.ceiling_lamp(2.6).moved(0, 0.3),
        box((-1.2, -1.0, 0), (1.2, 1.0, 0.012), {"+z": "rug:4", "": "fabric"}, fit=True),
        c.picture("board:2", 0.9, 0.7).moved(-s + 0.11, 1.2, 1.5, 90),
        c.radiator(1.4).moved(-0.3, -s + 0.16, 0, 180),
    )  # fmt: skip

"""What stands in streets, at the origin: cars, people, trees, lamp posts, signs, benches, bins."""

import numpy as np

from geoweaver.synth.furniture import legs
from geoweaver.synth.quads import Quads, from_corners, join
from geoweaver.synth.solids import ball, box, lathe, panel, tube

Rng = np.random.Generator


def _prism(outline: list[tuple[float, float]], half: float, material: str) -> Quads:
    """A side view (x, z), counter-clockwise, drawn out across y."""
    p = np.array(outline, float)
    q = np.roll(p, -1, 0)
    shell = [
        [(a[0], half, a[1]), (b[0], half, b[1]), (b[0], -half, b[1]), (a[0], -half, a[1])]
        for a, b in zip(p, q, strict=True)
    ]
    middle = p.mean(0)
    sides = [
        [(middle[0], y, middle[1])] * 2 + [(a[0], y, a[1]), (b[0], y, b[1])]
        for a, b in zip(p, q, strict=True)
        for y in (-half, half)
    ]
    return from_corners(np.array(shell + sides, float), material)


def car(rng: Rng) -> Quads:
    """A small car, its front towards +x."""
    colour = rng.uniform(0.15, 1.2) * (1 + 0.5 * rng.uniform(-1, 1, 3))
    body = [(-2.0, 0.3), (2.0, 0.3), (2.05, 0.6), (1.9, 0.78), (0.95, 0.9), (-1.7, 0.95), (-2.02, 0.85)]
    cabin = [(-1.65, 0.93), (0.95, 0.9), (0.3, 1.42), (-1.2, 1.45)]
    glass = [(-1.5, 0.96), (0.75, 0.93), (0.22, 1.36), (-1.12, 1.38)]
    ring = np.array([[0.05, -0.09], [0.31, -0.09], [0.31, 0.09], [0.05, 0.09]])
    flat = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    hubs = [lathe(np.array([[0, s], [0.18, s]]), "metal", 12) for s in (-0.085, 0.085)]
    wheels = [
        join(lathe(ring, "dark", 18), *hubs).turned(flat).moved(x, y, 0.31)
        for x in (-1.3, 1.3)
        for y in (-0.78, 0.78)
    ]
    plates = [
        panel((x, 0, 0.5), 0.5, 0.12, f, f"sign:{rng.integers(10)}") for x, f in ((2.06, 0), (-2.03, 180))
    ]
    lights = [box((1.9, y - 0.15, 0.6), (2.06, y + 0.15, 0.72), "lacquer") for y in (-0.55, 0.55)]
    return join(
        _prism(body, 0.85, "metal").tinted(*colour * 2), _prism(cabin, 0.72, "metal").tinted(*colour * 2),
        _prism(glass, 0.725, "dark"), *wheels, *plates, *lights,
    )  # fmt: skip


def person(rng: Rng) -> Quads:
    """Someone walking towards +x."""
    coat = rng.uniform(0.3, 1.5, 3)
    leg = box((-0.08, -0.08, 0), (0.08, 0.08, 0.85), "fabric").tinted(0.5, 0.5, 0.6)
    arm = box((-0.05, -0.05, 0.85), (0.05, 0.05, 1.42), "print").tinted(*coat)
    trunk = np.array([[0, 0.8], [0.2, 0.82], [0.19, 1.1], [0.23, 1.4], [0.08, 1.5], [0, 1.5]])
    return join(
        leg.moved(0.15, -0.1), leg.moved(-0.15, 0.1), arm.moved(-0.12, -0.26), arm.moved(0.12, 0.26),
        lathe(trunk, "print", 16).tinted(*coat),
        ball((0, 0, 1.64), 0.12, "linen", 14, 1.2).tinted(0.9, 0.65, 0.5),
        ball((-0.02, 0, 1.7), 0.125, "carpet", 14).tinted(0.4, 0.3, 0.25),
    )  # fmt: skip


def tree(rng: Rng, height: float = 6.0, lumps: int = 5) -> Quads:
    """A trunk and a crown of several lumps, each pitted by a random field so that it is no sphere."""
    crown = []
    for _ in range(lumps):
        a, r = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.22) * height
        lump = ball((0, 0, 0), float(rng.uniform(0.17, 0.27)) * height, "crown", 10)
        corners = lump.corners
        rough = 1 + 0.1 * np.sin(corners @ rng.uniform(2, 5, 3) + rng.uniform(0, 6)) * np.cos(
            corners @ rng.uniform(-5, 5, 3)
        )
        lump = Quads(corners * rough[..., None], lump.uv, lump.material, lump.tint)
        crown.append(lump.moved(r * np.cos(a), r * np.sin(a), float(rng.uniform(0.55, 0.85)) * height))
    trunk = lathe(
        np.array([[0.04 * height, 0], [0.025 * height, 0.15 * height], [0.02 * height, 0.7 * height]]),
        "bark",
        12,
    )
    return join(trunk, *crown).tinted(*rng.uniform(1.2, 1.7, 3))


def lamp_post() -> Quads:
    """A post with an arm towards -y."""
    post = lathe(np.array([[0.12, 0], [0.12, 0.5], [0.07, 0.6], [0.05, 6.0], [0, 6.0]]), "metal", 12).tinted(
        0.4, 0.45, 0.4
    )
    return join(
        post,
        box((-0.04, -1.5, 5.9), (0.04, 0, 5.98), "metal"),
        box((-0.14, -1.9, 5.84), (0.14, -1.3, 5.96), "lacquer"),
    )


def road_sign(rng: Rng) -> Quads:
    """A plate on a pole, facing -y."""
    return join(
        tube((0, 0, 0), 0.035, 2.7, "metal", 10),
        panel((0, -0.05, 2.4), 0.65, 0.65, -90, f"poster:{rng.integers(6)}"),
        panel((0, -0.05, 1.9), 0.6, 0.22, -90, f"sign:{rng.integers(10)}"),
    )


def bench() -> Quads:
    """Slats on legs; its back towards +y."""
    slats = [box((-0.8, y, 0.42), (0.8, y + 0.1, 0.46), "wood") for y in (-0.22, -0.08, 0.06)]
    back = [box((-0.8, 0.2, z), (0.8, 0.24, z + 0.12), "wood") for z in (0.58, 0.76)]
    return join(
        legs(1.5, 0.5, 0.42, "dark", 0.07),
        *slats,
        *back,
        *(box((x, 0.22, 0.4), (x + 0.05, 0.26, 0.9), "dark") for x in (-0.7, 0.65)),
    )


def bin_() -> Quads:
    """A litter bin."""
    return tube((0, 0, 0.05), 0.24, 0.85, "metal", 16).tinted(0.35, 0.55, 0.4)


def poster_column(rng: Rng) -> Quads:
    """An advertising column."""
    k = rng.integers(6)
    shaft = lathe(np.array([[0.55, 0.3], [0.55, 2.6]]), f"board:{k}", 24, fit=True)
    cap = lathe(np.array([[0.55, 2.6], [0.7, 2.65], [0.7, 2.75], [0.4, 3.0], [0, 3.15]]), "metal", 24).tinted(
        0.4, 0.5, 0.4
    )
    return join(shaft, cap, tube((0, 0, 0), 0.6, 0.3, "concrete", 24))


def bus_stop(rng: Rng) -> Quads:
    """A shelter that opens towards -y."""
    posts = [tube((x, y, 0), 0.04, 2.3, "metal", 8) for x in (-1.6, 1.6) for y in (-0.6, 0.6)]
    return join(
        *posts,
        box((-1.75, -0.75, 2.3), (1.75, 0.75, 2.4), "metal"),
        panel((0.8, 0.58, 1.2), 1.4, 1.8, -90, f"poster:{rng.integers(6)}"),
        panel((-1.58, 0, 1.2), 1.1, 1.8, 0, f"poster:{rng.integers(6)}"),
        bench().moved(0.6, 0.3),
    )

"""Furniture on the floor around the origin; its back is to the north (+y), its front to the south."""

import numpy as np

from geoweaver.synth.clutter import books, keyboard, monitor, mug, papers
from geoweaver.synth.quads import Quads, join
from geoweaver.synth.solids import box, panel

Rng = np.random.Generator


def legs(width: float, depth: float, height: float, material: str, thick: float = 0.05) -> Quads:
    """Four posts inset under a top."""
    x, y = width / 2 - thick, depth / 2 - thick
    corners = [(a * x, b * y) for a in (-1, 1) for b in (-1, 1)]
    h = thick / 2
    return join(
        *(box((a - h, b - h, 0), (a + h, b + h, height), material, without="-z +z") for a, b in corners)
    )


def table(width: float, depth: float, height: float, material: str = "wood") -> Quads:
    """A top on four legs."""
    top = box((-width / 2, -depth / 2, height - 0.04), (width / 2, depth / 2, height), material)
    return join(top, legs(width, depth, height - 0.04, material))


def chair(material: str = "wood") -> Quads:
    """A kitchen chair with a slatted back."""
    seat = box((-0.22, -0.22, 0.43), (0.22, 0.22, 0.47), material)
    posts = [box((x, 0.18, 0.47), (x + 0.04, 0.22, 0.95), material) for x in (-0.22, 0.18)]
    slats = [box((-0.18, 0.19, z), (0.18, 0.21, z + 0.08), material) for z in (0.6, 0.72, 0.84)]
    return join(seat, legs(0.46, 0.46, 0.43, material, 0.04), *posts, *slats)


def sofa(rng: Rng, width: float = 2.0, material: str = "fabric") -> Quads:
    """Base, back, arms, seat cushions and thrown pillows."""
    w, arm = width / 2, 0.18
    parts = [
        box((-w, -0.42, 0.08), (w, 0.42, 0.36), material),
        box((-w, 0.22, 0.36), (w, 0.44, 0.86), material),
        box((-w, -0.44, 0.36), (-w + arm, 0.22, 0.62), material),
        box((w - arm, -0.44, 0.36), (w, 0.22, 0.62), material),
        legs(width, 0.84, 0.08, "darkwood", 0.08),
    ]
    seats = max(1, round((width - 2 * arm) / 0.6))
    step = (width - 2 * arm) / seats
    for k in range(seats):
        left = -w + arm + k * step
        parts.append(
            box((left + 0.01, -0.43, 0.36), (left + step - 0.01, 0.22, 0.5), material).tinted(
                1.15, 1.15, 1.15
            )
        )
        pillow = box((-0.2, -0.06, 0), (0.2, 0.06, 0.36), str(rng.choice(["print", "print2", "linen"])))
        if rng.uniform() < 0.75:
            parts.append(pillow.moved(left + step / 2, 0.12, 0.5, float(rng.uniform(-25, 25))))
    return join(*parts)


def shelf(
    rng: Rng, width: float, height: float, depth: float = 0.3, material: str = "wood", boards: int = 5
) -> Quads:
    """A bookcase full of books and things."""
    w, t = width / 2, 0.025
    parts = [
        box((-w, -depth / 2, 0), (-w + t, depth / 2, height), material),
        box((w - t, -depth / 2, 0), (w, depth / 2, height), material),
        box((-w, depth / 2 - 0.02, 0), (w, depth / 2, height), material),
    ]
    for k in range(boards + 1):
        z = k * (height - t) / boards
        parts.append(box((-w + t, -depth / 2, z), (w - t, depth / 2 - 0.02, z + t), material))
        if k < boards:
            room = (height - t) / boards - t
            parts.append(books(rng, width - 2 * t, room, depth).moved(0, 0, z + t))
    return join(*parts)


def cabinet(
    width: float, depth: float, height: float, doors: int, material: str = "palewood", drawers: bool = False
) -> Quads:
    """A closed piece with fronts, gaps and handles."""
    parts = [box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, height), material)]
    rows, columns = (doors, 1) if drawers else (1, doors)
    step_x, step_z, y = width / columns, (height - 0.1) / rows, -depth / 2
    for i in range(columns):
        for k in range(rows):
            x, z = -width / 2 + i * step_x, 0.08 + k * step_z
            parts.append(
                box(
                    (x + 0.01, y - 0.02, z),
                    (x + step_x - 0.01, y, z + step_z - 0.015),
                    material,
                    without="+y",
                )
            )
            handle = (
                (x + step_x / 2, z + step_z - 0.08)
                if drawers
                else (x + step_x * (0.85 if i % 2 else 0.15), z + step_z / 2)
            )
            parts.append(
                box(
                    (handle[0] - 0.05, y - 0.045, handle[1] - 0.01),
                    (handle[0] + 0.05, y - 0.02, handle[1] + 0.01),
                    "metal",
                )
            )
    return join(*parts)


def bed(rng: Rng, width: float = 1.6) -> Quads:
    """Head to the north: frame, mattress, a printed cover, pillows."""
    w = width / 2
    parts = [
        box((-w, -1.05, 0.12), (w, 1.0, 0.3), "wood"),
        box((-w, 0.96, 0), (w, 1.03, 1.05), "wood"),
        box((-w + 0.03, -1.0, 0.3), (w - 0.03, 0.95, 0.52), "linen"),
        box((-w + 0.01, -1.02, 0.42), (w - 0.01, 0.35, 0.55), "print"),
        legs(width, 2.05, 0.12, "wood", 0.08),
    ]
    pillow = box((-0.3, -0.2, 0), (0.3, 0.2, 0.12), "linen")
    parts += [pillow.moved(x, 0.65, 0.52, float(rng.uniform(-8, 8))) for x in (-w / 2, w / 2)]
    return join(*parts)


def desk(rng: Rng, width: float = 1.6) -> Quads:
    """A work place: screen, keyboard, papers, a mug, a drawer block."""
    return join(
        table(width, 0.75, 0.74, "palewood"),
        cabinet(0.4, 0.6, 0.65, 3, "lacquer", drawers=True).moved(width / 2 - 0.28),
        monitor(rng).moved(-0.1, 0.15, 0.74),
        keyboard().moved(-0.1, -0.15, 0.74),
        papers(rng, 0.6, 0.4, 5).moved(0.45, -0.1, 0.741),
        mug(rng).moved(-0.6, -0.1, 0.74),
    )


def television(rng: Rng, width: float = 1.2) -> Quads:
    """A low board with a screen on it."""
    screen = join(
        box((-width / 2, 0.05, 0.55), (width / 2, 0.1, 0.55 + 0.56 * width), "dark"),
        panel((0, 0.048, 0.55 + 0.28 * width), width * 0.97, 0.54 * width, -90, "screen:0"),
        box((-0.2, -0.05, 0.45), (0.2, 0.18, 0.56), "dark"),
    )
    return join(
        cabinet(1.7, 0.42, 0.45, 4, "darkwood"), screen, books(rng, 0.3, 0.22, 0.3).moved(-0.65, 0, 0.45)
    )


def counter(width: float, doors: int) -> Quads:
    """Kitchen base units under a stone top."""
    return join(
        cabinet(width, 0.56, 0.86, doors, "lacquer"),
        box((-width / 2, -0.32, 0.86), (width / 2, 0.28, 0.9), "granite"),
    )


def stove() -> Quads:
    """Oven with a glass front, plates and knobs."""
    knobs = [box((x - 0.02, -0.33, 0.78), (x + 0.02, -0.3, 0.82), "dark") for x in (-0.2, -0.1, 0.1, 0.2)]
    plates = [
        box((x - 0.09, y - 0.09, 0.9), (x + 0.09, y + 0.09, 0.905), "dark")
        for x in (-0.15, 0.15)
        for y in (-0.13, 0.13)
    ]
    return join(
        box((-0.3, -0.3, 0), (0.3, 0.28, 0.9), "metal"),
        panel((0, -0.304, 0.42), 0.44, 0.4, -90, "dark", fit=False),
        box((-0.22, -0.34, 0.66), (0.22, -0.32, 0.68), "metal"),
        *knobs,
        *plates,
    )


def fridge(rng: Rng) -> Quads:
    """Tall, plain, with notes on its door."""
    notes = [
        panel((float(x), -0.322, float(z)), 0.12, 0.16, -90, f"page:{k}")
        for k, (x, z) in enumerate(zip(rng.uniform(-0.2, 0.2, 5), rng.uniform(1.0, 1.6, 5), strict=True))
    ]
    handle = box((0.22, -0.36, 1.0), (0.25, -0.32, 1.5), "metal")
    return join(box((-0.3, -0.32, 0), (0.3, 0.3, 1.85), "lacquer"), handle, *notes)

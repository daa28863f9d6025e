"""Tileable textures as n x n x 3 display values in [0, 1]: what floors, walls and furniture are made of."""

import numpy as np

from geoweaver.synth.noise import cells, clouds, grid_cells, mixed, soft
from geoweaver.synth.quads import Array

Rng = np.random.Generator
Colour = tuple[float, float, float]


def paint(
    rng: Rng, n: int, colour: Colour = (0.86, 0.84, 0.8), grain: float = 0.008, marks: float = 0.0
) -> Array:
    """Nearly nothing: a painted wall; `marks` gives it scuffs and spots."""
    spots = marks * np.clip(clouds(rng, n, 0.9, 12) - 2.3, 0, 1) + marks * np.clip(
        clouds(rng, n, 1.1, 5, 3.0) - 2.2, 0, 1
    )
    return np.asarray(colour) * (1 + grain * clouds(rng, n, 0.7, 4) - spots)[..., None]


def stucco(rng: Rng, n: int, colour: Colour = (0.8, 0.74, 0.62), grain: float = 0.07) -> Array:
    """Rough render with stains that run down."""
    bumps, runs = clouds(rng, n, 0.6, 12), clouds(rng, n, 1.4, 2, 4.0)
    return np.asarray(colour) * (1 + grain * bumps + 0.05 * runs)[..., None]


def bricks(
    rng: Rng,
    n: int,
    colour: Colour = (0.62, 0.33, 0.25),
    rows: int = 24,
    columns: int = 8,
    spread: float = 0.13,
) -> Array:
    """Running bond with mortar, each brick a shade of its own."""
    index, border = grid_cells(n, rows, columns, 0.5)
    shade = 1 + spread * rng.standard_normal(rows * columns)[index] + 0.1 * clouds(rng, n, 0.7, 8)
    hue = 1 + 0.06 * rng.standard_normal((rows * columns, 3))[index]
    wobble = border + 0.0012 * clouds(rng, n, 1, 16)
    mortar = np.array([0.68, 0.65, 0.6]) * (1 + 0.08 * clouds(rng, n, 0.5, 16))[..., None]
    joint = np.clip(wobble * n / 1.2 - 2.2, 0, 1)[..., None]
    return mortar * (1 - joint) + np.asarray(colour) * shade[..., None] * hue * joint


def planks(
    rng: Rng, n: int, colour: Colour = (0.66, 0.47, 0.3), rows: int = 12, spread: float = 0.12
) -> Array:
    """Floor boards along the rows with random ends, grain and knots."""
    v, u = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n, indexing="ij")
    row = np.floor(v * rows).astype(int)
    x = (u + rng.uniform(0, 1, rows)[row]) * 2
    board = (row * 2 + np.floor(x).astype(int) % 2) % (2 * rows)
    grain = clouds(rng, n, 1.0, 6, 0.06)
    ring = np.sin(14 * (v * rows + 0.35 * clouds(rng, n, 1.6, 2, 0.12) + rng.uniform(0, 9, 2 * rows)[board]))
    shade = 1 + spread * rng.standard_normal(2 * rows)[board] + 0.07 * grain + 0.05 * ring
    edge = np.minimum(np.minimum(v * rows % 1, 1 - v * rows % 1) / rows, np.minimum(x % 1, 1 - x % 1) / 2)
    gap = np.clip(edge * n / 1.5, 0.25, 1)
    return np.asarray(np.asarray(colour) * (shade * gap)[..., None])


def wood(rng: Rng, n: int, colour: Colour = (0.55, 0.36, 0.21)) -> Array:
    """Solid board with grain along the rows."""
    v = ((np.arange(n) + 0.5) / n)[:, None]
    flow = v * 6 * np.pi + 0.9 * clouds(rng, n, 1.8, 1, 0.15)
    lines = 0.1 * np.sin(5 * flow) + 0.09 * clouds(rng, n, 0.9, 10, 0.05)
    return np.asarray(colour) * (1 + lines + 0.05 * clouds(rng, n, 1.5))[..., None]


def tiles(
    rng: Rng,
    n: int,
    colour: Colour = (0.74, 0.7, 0.64),
    count: int = 6,
    spread: float = 0.06,
    speckle: float = 0.05,
) -> Array:
    """Square tiles with grout; spread and speckle 0 make them all alike."""
    index, border = grid_cells(n, count, count)
    shade = 1 + spread * rng.standard_normal(count * count)[index] + speckle * clouds(rng, n, 0.8, 6)
    vein = 1 - 1.6 * speckle * np.exp(-((clouds(rng, n, 1.5, 3) / 0.12) ** 2))
    joint = np.clip(border * n / 1.5 - 0.8, 0, 1)[..., None]
    return 0.42 * (1 - joint) * np.ones(3) + np.asarray(colour) * (shade * vein)[..., None] * joint


def checker(rng: Rng, n: int, count: int = 8) -> Array:
    """Two kinds of tiles in turn, worn."""
    index, border = grid_cells(n, count, count)
    dark = ((index // count + index % count) % 2)[..., None]
    base = np.where(dark, [0.32, 0.2, 0.17], [0.83, 0.78, 0.68])
    wear = 1 + 0.08 * clouds(rng, n, 0.9, 4) + 0.07 * rng.standard_normal(count * count)[index]
    return base * (wear * np.clip(border * n / 1.5, 0.5, 1))[..., None]


def carpet(rng: Rng, n: int, colour: Colour = (0.5, 0.47, 0.45)) -> Array:
    """Pile: fine grain and trodden paths."""
    flecks = 0.3 * (clouds(rng, n, 0.8, 20) > 2.1)
    return (
        np.asarray(colour)
        * (1 + 0.12 * clouds(rng, n, 0.25, 20) + 0.07 * clouds(rng, n, 1.5) - flecks)[..., None]
    )


def carpet_tiles(rng: Rng, n: int, colour: Colour = (0.33, 0.38, 0.45), count: int = 4) -> Array:
    """Office carpet: squares with the grain turned by a quarter."""
    index, border = grid_cells(n, count, count)
    turn = (index // count + index % count) % 2
    grain = clouds(rng, n, 0.5, 16, 0.3)
    flecks = 0.35 * (clouds(rng, n, 0.7, 24) > 2.0) - 0.3 * (clouds(rng, n, 0.8, 16) > 2.2)
    shade = (
        1
        + 0.14 * np.where(turn, grain, grain.T)
        + 0.08 * (turn - 0.5)
        + 0.05 * clouds(rng, n, 1.2, 2)
        + flecks
    )
    return np.asarray(np.asarray(colour) * (shade * np.clip(0.75 + border * n / 6, 0, 1))[..., None])


def fabric(rng: Rng, n: int, colour: Colour = (0.4, 0.46, 0.55), weave: int = 64) -> Array:
    """Woven cloth: threads over and under, uneven."""
    a = np.arange(n) * 2 * np.pi * weave / n
    threads = 0.07 * np.sin(a)[:, None] * np.sin(a)[None, :]
    uneven = 0.06 * clouds(rng, n, 0.8, 6, 0.15) + 0.06 * clouds(rng, n, 0.8, 6, 0.15).T
    return np.asarray(colour) * (1 + threads + uneven + 0.04 * clouds(rng, n, 1.5))[..., None]


def print_cloth(rng: Rng, n: int, colours: int = 4, motifs: int = 40) -> Array:
    """Printed cloth: scattered soft motifs over a plain ground."""
    palette = rng.uniform(0.2, 0.9, (colours, 3))
    index, border = cells(rng, n, motifs)
    share = soft(border - rng.uniform(4, 18, motifs)[index], 0.5) * (rng.uniform(0, 1, motifs)[index] < 0.7)
    ground = rng.uniform(0.6, 0.9, 3)
    picture = mixed(ground, palette[rng.integers(0, colours, motifs)[index]], share)
    return picture * (1 + 0.05 * clouds(rng, n, 0.5, 20))[..., None]


def wallpaper(rng: Rng, n: int, colour: Colour = (0.72, 0.75, 0.68), repeat: int = 4) -> Array:
    """The same ornament over and over: deliberately repetitive."""
    m = n // repeat
    field = clouds(rng, m, 1.5, 2)
    ornament = soft(np.cos(3 * (field + field[:, ::-1])), 4)
    motif = mixed(np.asarray(colour) * 0.82, colour, ornament)
    return np.tile(motif, (repeat, repeat, 1))


def stripes(rng: Rng, n: int, colour: Colour = (0.75, 0.7, 0.6), count: int = 10) -> Array:
    """Hanging cloth: folds and woven stripes."""
    u = (np.arange(n) + 0.5) / n
    fold = 0.16 * np.sin(2 * np.pi * (count * u + 0.4 * clouds(rng, n, 1.6, 1, 4)))
    band = 0.1 * (np.sin(2 * np.pi * u * count * 3)[None, :] > 0.5)
    return np.asarray(colour) * (0.9 + fold - band + 0.04 * clouds(rng, n, 0.5, 16))[..., None]


def granite(rng: Rng, n: int, colour: Colour = (0.42, 0.41, 0.42)) -> Array:
    """Speckled stone."""
    index, _ = cells(rng, n, n * 4)
    speck = rng.standard_normal(n * 4)[index]
    return np.asarray(colour) * (1 + 0.16 * speck + 0.1 * clouds(rng, n, 0.8, 4))[..., None]


def marble(rng: Rng, n: int, colour: Colour = (0.84, 0.82, 0.79)) -> Array:
    """Veined stone."""
    veins = np.exp(-((clouds(rng, n, 1.7, 1) / 0.07) ** 2)) + 0.6 * np.exp(
        -((clouds(rng, n, 1.5, 2) / 0.05) ** 2)
    )
    return np.asarray(colour) * (1 - 0.35 * veins + 0.04 * clouds(rng, n, 1.2))[..., None]


def metal(rng: Rng, n: int, colour: Colour = (0.6, 0.61, 0.63)) -> Array:
    """Brushed, slightly scratched."""
    return (
        np.asarray(colour) * (1 + 0.03 * clouds(rng, n, 0.6, 8, 0.03) + 0.02 * clouds(rng, n, 1.2))[..., None]
    )


def leaves(rng: Rng, n: int, colour: Colour = (0.3, 0.45, 0.2)) -> Array:
    """Foliage: overlapping patches of light and dark green."""
    index, border = cells(rng, n, n * 2)
    shade = rng.uniform(0.45, 1.35, n * 2)[index] * np.clip(0.6 + border / 6, 0, 1)
    hue = 1 + 0.1 * rng.standard_normal((n * 2, 3))[index]
    return np.asarray(colour) * shade[..., None] * hue * (1 + 0.15 * clouds(rng, n, 1.2, 2))[..., None]


def stains(rng: Rng, n: int) -> Array:
    """A grey field about one half: what uneven wear and light do to every surface."""
    return (0.5 + 0.06 * clouds(rng, n, 1.25, 2))[..., None] * np.ones(3)

"""Tileable textures of the street: asphalt, paving, stone, grass, bark, roofs, hills."""

import numpy as np

from geoweaver.synth.noise import cells, clouds, grid_cells, mixed, soft
from geoweaver.synth.quads import Array
from geoweaver.synth.textures import Colour, Rng


def asphalt(rng: Rng, n: int, colour: Colour = (0.34, 0.34, 0.35)) -> Array:
    """Road: grains, oil stains, cracks and mended patches."""
    _, crack = cells(rng, n, 14)
    crack = crack + 2.5 * clouds(rng, n, 1.2, 6)
    line = 1 - 0.55 * np.exp(-((crack / 1.1) ** 2)) * soft(clouds(rng, n, 1.5), 3)
    patch = np.ones((n, n))
    for _ in range(4):
        y, x, h, w = (rng.uniform((0, 0, 0.08, 0.06), (0.8, 0.8, 0.2, 0.2)) * n).astype(int)
        patch[y : y + h, x : x + w] = rng.uniform(0.78, 1.1)
    shade = 1 + 0.13 * clouds(rng, n, 0.35, 24) + 0.1 * clouds(rng, n, 1.4, 2)
    return np.asarray(colour) * (shade * line * patch)[..., None]


def paving(rng: Rng, n: int, colour: Colour = (0.56, 0.54, 0.5), rows: int = 8) -> Array:
    """Slabs in running bond, each a little different, with spots."""
    index, border = grid_cells(n, rows, rows // 2, 0.5)
    shade = 1 + 0.09 * rng.standard_normal(rows * rows)[index] + 0.09 * clouds(rng, n, 0.6, 10)
    spots = 1 - 0.3 * (clouds(rng, n, 1.2, 14) > 2.2)
    return np.asarray(np.asarray(colour) * (shade * spots * np.clip(0.45 + border * n / 4, 0, 1))[..., None])


def blocks(rng: Rng, n: int, colour: Colour = (0.66, 0.6, 0.5), rows: int = 6) -> Array:
    """Hewn stone blocks."""
    index, border = grid_cells(n, rows, rows // 2, 0.5)
    shade = 1 + 0.1 * rng.standard_normal(rows * rows)[index] + 0.12 * clouds(rng, n, 0.9, 8)
    edge = np.clip(0.5 + (border * n + clouds(rng, n, 1, 12)) / 7, 0, 1)
    return np.asarray(colour) * (shade * edge)[..., None]


def concrete(rng: Rng, n: int, colour: Colour = (0.6, 0.59, 0.57)) -> Array:
    """Cast concrete with pores and water marks."""
    pores = 1 - 0.35 * (clouds(rng, n, 0.6, 30) > 2.6)
    shade = 1 + 0.05 * clouds(rng, n, 0.7, 8) + 0.07 * clouds(rng, n, 1.5, 1, 3.0)
    return np.asarray(colour) * (shade * pores)[..., None]


def grass(rng: Rng, n: int) -> Array:
    """Lawn with worn and dry spots."""
    blade = clouds(rng, n, 0.4, 20, 0.5)
    base = mixed((0.28, 0.4, 0.16), (0.5, 0.5, 0.28), soft(clouds(rng, n, 1.4, 2)))
    return base * (1 + 0.2 * blade)[..., None]


def bark(rng: Rng, n: int) -> Array:
    """Furrowed bark."""
    ridge = np.abs(clouds(rng, n, 1.0, 8, 0.35).T)
    return np.array([0.42, 0.34, 0.27]) * (0.55 + 0.5 * np.tanh(ridge))[..., None]


def roof(rng: Rng, n: int, colour: Colour = (0.58, 0.3, 0.22)) -> Array:
    """Rows of roof tiles."""
    v, u = np.meshgrid(np.arange(n) / n, np.arange(n) / n, indexing="ij")
    index, _ = grid_cells(n, 12, 16, 0.5)
    wave = 0.75 + 0.25 * np.abs(np.sin(np.pi * u * 16)) - 0.3 * (v * 12 % 1 > 0.85)
    return np.asarray(colour) * (wave * (1 + 0.12 * rng.standard_normal(192)[index]))[..., None]


def hill(rng: Rng, n: int) -> Array:
    """Fields and woods from afar, hazy."""
    index, border = cells(rng, n, 60)
    field = mixed((0.36, 0.46, 0.36), (0.62, 0.62, 0.48), rng.uniform(0, 1, 60)[index])
    woods = soft(clouds(rng, n, 1.3, 2) - 0.4, 5)
    land = mixed(field, (0.26, 0.37, 0.31), woods) * (1 + 0.1 * clouds(rng, n, 0.5, 10))[..., None]
    return land * np.clip(0.75 + border / 8, 0, 1)[..., None] * 0.75 + 0.2 * np.array([0.7, 0.8, 0.95])

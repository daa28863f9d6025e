"""Materials by name: which texture, how many metres it spans; packed with all mip levels into one buffer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np

from geoweaver.errors import ConfigError
from geoweaver.synth import outdoors, pictures, textures
from geoweaver.synth.quads import Array

Painter = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Material:
    """A texture's painter, its size in texels and metres, and how much of the world's stains it takes."""

    painter: Painter
    texels: int = 512
    metres: float = 1.0
    stain: float = 0.0


def _tile(
    painter: Callable[..., Array], metres: float, texels: int = 512, stain: float = 0.5, **looks: object
) -> Material:
    return Material(partial(painter, **looks), texels, metres, stain)


def _picture(painter: Painter, texels: int = 256) -> Material:
    return Material(painter, texels)


t, o, p = textures, outdoors, pictures
CATALOGUE: dict[str, Material] = {
    "stain": _tile(t.stains, 7.31, 512, 0.0),
    "plain": _tile(t.paint, 2, 128, 0.1),
    "ceiling": _tile(t.paint, 2, 128, 0.1, colour=(0.92, 0.91, 0.89)),
    "trim": _tile(t.paint, 2, 128, 0.1, colour=(0.9, 0.89, 0.86)),
    "dark": _tile(t.paint, 1, 128, 0.2, colour=(0.12, 0.12, 0.13), grain=0.05),
    "lacquer": _tile(t.paint, 1, 128, 0.1, colour=(0.93, 0.93, 0.93)),
    "plaster": _tile(t.paint, 3, 512, 0.25, colour=(0.86, 0.83, 0.77), grain=0.014, marks=0.22),
    "plaster_blue": _tile(t.paint, 3, 512, 0.3, colour=(0.62, 0.71, 0.76), grain=0.014, marks=0.22),
    "plaster_green": _tile(t.paint, 3, 512, 0.3, colour=(0.68, 0.74, 0.62), grain=0.014, marks=0.22),
    "plaster_rose": _tile(t.paint, 3, 512, 0.3, colour=(0.8, 0.68, 0.62), grain=0.014, marks=0.22),
    "wallpaper": _tile(t.wallpaper, 1.6, 512, 0.1),
    "oak": _tile(t.planks, 2.2, 512),
    "walnut_floor": _tile(t.planks, 1.8, 512, colour=(0.45, 0.3, 0.2), rows=16),
    "tiles": _tile(t.tiles, 1.8, 512),
    "checker": _tile(t.checker, 2.4, 512),
    "wall_tiles": _tile(t.tiles, 1.2, 512, 0.0, colour=(0.86, 0.88, 0.88), count=8, spread=0.0, speckle=0.0),
    "carpet": _tile(t.carpet, 1.5, 512),
    "carpet_tiles": _tile(t.carpet_tiles, 2.0, 512, 0.6),
    "ceiling_tiles": _tile(
        t.tiles, 2.4, 512, 0.0, colour=(0.88, 0.88, 0.86), count=4, spread=0.0, speckle=0.09
    ),
    "fabric": _tile(t.fabric, 0.6, 512),
    "linen": _tile(t.fabric, 0.6, 512, colour=(0.82, 0.79, 0.73)),
    "print": _tile(t.print_cloth, 1.0),
    "print2": _tile(t.print_cloth, 0.8, motifs=90),
    "curtain": _tile(t.stripes, 1.0),
    "wood": _tile(t.wood, 1.0),
    "darkwood": _tile(t.wood, 1.0, colour=(0.36, 0.23, 0.15)),
    "palewood": _tile(t.wood, 1.0, colour=(0.76, 0.62, 0.44)),
    "granite": _tile(t.granite, 0.8),
    "marble": _tile(t.marble, 1.6),
    "metal": _tile(t.metal, 1.0, 256),
    "leaves": _tile(t.leaves, 0.8),
    "crown": _tile(t.leaves, 4.0),
    "brick": _tile(t.bricks, 2.0, 512),
    "brick_pale": _tile(t.bricks, 2.0, 512, colour=(0.72, 0.6, 0.45)),
    "brick_dark": _tile(t.bricks, 2.0, 512, colour=(0.42, 0.27, 0.24), spread=0.2),
    "stucco": _tile(t.stucco, 3.0, 512),
    "stucco_white": _tile(t.stucco, 3.0, 512, colour=(0.84, 0.83, 0.8)),
    "stucco_red": _tile(t.stucco, 3.0, 512, colour=(0.7, 0.45, 0.36)),
    "blocks": _tile(o.blocks, 3.0, 512),
    "concrete": _tile(o.concrete, 3.0, 512),
    "asphalt": _tile(o.asphalt, 6.0, 1024, 0.8),
    "paving": _tile(o.paving, 4.0, 1024, 0.8),
    "grass": _tile(o.grass, 3.0, 512, 0.8),
    "bark": _tile(o.bark, 1.0),
    "roof": _tile(o.roof, 3.0),
    "hill": _tile(o.hill, 400.0, 512, 0.3),
    "painting": _picture(p.painting, 512),
    "poster": _picture(p.poster, 512),
    "sign": _picture(p.sign, 512),
    "spine": _picture(p.spine, 128),
    "page": _picture(p.page),
    "board": _picture(p.board, 512),
    "rug": _picture(p.rug, 512),
    "screen": _picture(p.screen),
    "pane": _picture(p.pane),
    "door": _picture(p.door, 512),
    "glaze": _picture(p.glaze, 512),
}
"""Named tiles span metres and repeat; pictures (used with `fit`) take a variant: 'poster:3'."""


@dataclass(frozen=True, eq=False)
class Palette:
    """Every texture of a world in one buffer; values are square roots of linear colour."""

    texels: Array
    """uint32 (B): a byte each of red, green and blue; level after level, texture after texture."""
    start: Array
    """int64 (M L): where each level of each texture begins."""
    side: Array
    """int64 (M): texels along a side of level 0."""
    metres: Array
    stain: Array


def paint_palette(names: Sequence[str], seed: int) -> Palette:
    """Paint the named materials ('sign:4' is variant 4 of 'sign'), each from its own seeded generator."""
    materials = [_material(name) for name in names]
    levels = [
        _mip_levels(m.painter(np.random.default_rng([seed, *name.encode()]), m.texels))
        for m, name in zip(materials, names, strict=True)
    ]
    start = np.zeros((len(names), max(map(len, levels))), np.int64)
    flat, at = [], 0
    for i, pyramid in enumerate(levels):
        for k, level in enumerate(pyramid):
            start[i, k:] = at
            at += len(level) ** 2
            red, green, blue = level.reshape(-1, 3).T.astype(np.uint32)
            flat.append(red | green << 8 | blue << 16)
    return Palette(
        np.concatenate(flat), start, np.array([m.texels for m in materials]),
        np.array([m.metres for m in materials]), np.array([m.stain for m in materials]),
    )  # fmt: skip


def _material(name: str) -> Material:
    base = name.split(":")[0]
    if base not in CATALOGUE:
        raise ConfigError(f"no material is called {base!r}: choose one of {', '.join(CATALOGUE)}")
    return CATALOGUE[base]


def _mip_levels(image: Array) -> list[Array]:
    """The picture at full size, half, quarter, ... down to one texel, averaged in linear colour."""
    linear = np.clip(image, 0, 1).astype(np.float32) ** 2
    levels = []
    while True:
        levels.append(np.round(255 * np.sqrt(linear)).astype(np.uint8).reshape(len(linear), len(linear), 3))
        if len(linear) == 1:
            return levels
        linear = cv2.resize(linear, (len(linear) // 2,) * 2, interpolation=cv2.INTER_AREA).reshape(
            len(linear) // 2, len(linear) // 2, 3
        )

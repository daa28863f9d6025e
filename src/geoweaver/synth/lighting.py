"""Light baked once per world: sun, sky, lamps and contact shadows on a coarse grid over every surface."""

from dataclasses import dataclass

import numpy as np

from geoweaver.synth.casting import Surfaces, blocked_at
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import Array, Quads

_RAYS = 24
_SOFT = 6
"""Shadow rays per light and texel."""
_LAMP_REACH = 7.0
_LIFT = 0.004
"""Metres off the surface at which light is gathered."""


@dataclass(frozen=True, eq=False)
class Lightmap:
    """Linear light per surface on a grid of nu x nv texels, corner texels on the corners."""

    texels: Array
    """float32 (L 3)."""
    chart: Array
    """int64 (Q 3): first texel, nu, nv."""


def bake(quads: Quads, surfaces: Surfaces, light: Light, seen_from: Array) -> Lightmap:
    """Gather light on a grid that is the coarser the farther a surface lies from where cameras go (n 3)."""
    chart = _charts(quads, _spacing(quads, seen_from))
    points, normals = _places(quads, chart)
    ambient, covered = _ambient(surfaces, points, normals, light)
    gathered = _uncovered(ambient + _direct(surfaces, points, normals, light), covered, chart)
    return Lightmap(_smoothed(gathered, points, normals, chart).astype(np.float32), chart)


def _spacing(quads: Quads, seen_from: Array) -> Array:
    """Metres between texels of each surface."""
    c = quads.corners
    nearest = [np.linalg.norm(np.clip(p, c.min(1), c.max(1)) - p, axis=-1) for p in seen_from]
    return np.asarray(np.clip(0.2 * np.min(nearest, 0), 0.2, 8.0))


def _charts(quads: Quads, spacing: Array) -> Array:
    c = quads.corners
    across, down = np.linalg.norm(c[:, 1] - c[:, 0], axis=-1), np.linalg.norm(c[:, 3] - c[:, 0], axis=-1)
    nu = np.clip(np.ceil(across / spacing), 1, 40).astype(np.int64) + 1
    nv = np.clip(np.ceil(down / spacing), 1, 40).astype(np.int64) + 1
    return np.stack([np.cumsum(nu * nv) - nu * nv, nu, nv], -1)


def _places(quads: Quads, chart: Array) -> tuple[Array, Array]:
    """Where light is gathered (on the grid, off border and surface by a little), and the normals."""
    total = int((chart[:, 1] * chart[:, 2]).sum())
    quad = np.repeat(np.arange(len(chart)), chart[:, 1] * chart[:, 2])
    inside = np.arange(total) - chart[quad, 0]
    nu, nv = chart[quad, 1], chart[quad, 2]
    c = quads.corners[quad]
    s = _inset((inside % nu) / (nu - 1), nu, c[:, 1] - c[:, 0])
    t = _inset((inside // nu) / (nv - 1), nv, c[:, 3] - c[:, 0])
    points = (1 - t) * ((1 - s) * c[:, 0] + s * c[:, 1]) + t * ((1 - s) * c[:, 3] + s * c[:, 2])
    normal = np.cross(c[:, 3] - c[:, 1], c[:, 2] - c[:, 0])
    normal = normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-12)
    return points + _LIFT * normal, normal


def _inset(share: Array, texels: Array, side: Array) -> Array:
    """Away from the border, where neighbours touch: far on large surfaces with corner texels only."""
    far = np.clip((np.linalg.norm(side, axis=-1) - 0.3) / 2, 0.04, 0.25)
    margin = np.where(texels == 2, far, 0.04)
    return np.asarray(np.clip(share, margin, 1 - margin))[:, None]


def _frame(normals: Array) -> tuple[Array, Array]:
    """Two directions across each normal."""
    helper = np.where(np.abs(normals[:, 2:]) < 0.9, [0.0, 0, 1], [1.0, 0, 0])
    x = np.cross(helper, normals)
    x /= np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)
    return x, np.cross(normals, x)


def _hemisphere(count: int) -> Array:
    """Directions of equal cosine weight about z, on a golden spiral."""
    k = np.arange(count)
    r, a = np.sqrt((k + 0.5) / count), k * np.pi * (3 - np.sqrt(5))
    return np.stack([r * np.cos(a), r * np.sin(a), np.sqrt(1 - r * r)], -1)


def _ambient(surfaces: Surfaces, points: Array, normals: Array, light: Light) -> tuple[Array, Array]:
    """Sky where it is seen, light thrown back by what is not near; and the share of rays that end near by."""
    x, y = _frame(normals)
    total, near = np.zeros_like(points), np.zeros(len(points))
    for h in _hemisphere(_RAYS):
        direction = h[0] * x + h[1] * y + h[2] * normals
        distance = blocked_at(surfaces, points, direction)[:, None]
        thrown_back = np.asarray(light.bounce) * (1 - np.exp(-distance / light.reach))
        open_sky = np.asarray(light.sky) * np.where(direction[:, 2:] > -0.05, 1.0, 0.35)
        total += np.where(np.isinf(distance), open_sky, thrown_back)
        near += distance[:, 0] < 0.04
    return total / _RAYS, near / _RAYS


def _uncovered(light: Array, covered: Array, chart: Array) -> Array:
    """Texels that something lies upon take their neighbours' light: small things must not blacken them."""
    out = light.copy()
    bad = covered > 0.5
    size = chart[:, 1] * chart[:, 2]
    for q in np.flatnonzero(np.add.reduceat(bad, chart[:, 0]) * (size > 4)):
        here = slice(chart[q, 0], chart[q, 0] + size[q])
        good = np.flatnonzero(~bad[here])
        grid = np.stack(np.divmod(np.arange(size[q]), chart[q, 1]), -1)
        for k in np.flatnonzero(bad[here]) if len(good) else ():
            weight = 1 / (1e-9 + ((grid[good] - grid[k]) ** 2).sum(-1)) ** 2
            out[chart[q, 0] + k] = weight @ light[here][good] / weight.sum()
    return out


def _direct(surfaces: Surfaces, points: Array, normals: Array, light: Light) -> Array:
    """Sun and lamps, with soft shadows."""
    total = np.zeros_like(points)
    spread = np.random.default_rng(0).standard_normal((_SOFT, 3))
    to_sun = np.asarray(light.to_sun) / np.linalg.norm(light.to_sun)
    for jitter in spread if max(light.sun) > 0 else ():
        way = np.broadcast_to(to_sun + 0.015 * jitter, points.shape)
        facing = np.maximum((normals * way).sum(-1), 0) * np.isinf(blocked_at(surfaces, points, way))
        total += facing[:, None] * np.asarray(light.sun) / _SOFT
    for lamp in light.lamps:
        way = np.asarray(lamp) - points
        near = np.flatnonzero(((way**2).sum(-1) < _LAMP_REACH**2) & ((way * normals).sum(-1) > 0))
        for jitter in spread:
            total[near] += _lamp(surfaces, points[near], normals[near], lamp + 0.12 * jitter, light) / _SOFT
    return total


def _lamp(surfaces: Surfaces, points: Array, normals: Array, lamp: Array, light: Light) -> Array:
    """Light of one point where nothing stands in the way; it fades to nothing at the lamp's reach."""
    way = lamp - points
    square = (way**2).sum(-1)
    fade = np.maximum(1 - square / _LAMP_REACH**2, 0)
    facing = np.maximum((normals * way).sum(-1), 0) / np.sqrt(square) / (0.5 + square) * fade
    return np.asarray((facing * (blocked_at(surfaces, points, way) > 1))[:, None] * np.asarray(light.lamp))


def _smoothed(light: Array, points: Array, normals: Array, chart: Array) -> Array:
    """Small facets that meet at a flat angle share their corners' light, so that turned bodies look round."""
    from scipy.spatial import cKDTree

    small = np.repeat((chart[:, 1] == 2) & (chart[:, 2] == 2), chart[:, 1] * chart[:, 2])
    out, where = light.copy(), np.flatnonzero(small)
    pairs = cKDTree(points[where]).query_pairs(0.02, output_type="ndarray")
    pairs = pairs[(normals[where[pairs[:, 0]]] * normals[where[pairs[:, 1]]]).sum(-1) > 0.75]
    count = np.ones(len(light))
    for a, b in ((0, 1), (1, 0)):
        np.add.at(out, where[pairs[:, a]], light[where[pairs[:, b]]])
        np.add.at(count, where[pairs[:, a]], 1)
    return out / count[:, None]

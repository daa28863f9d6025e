"""Colour of a hit: texture over the pixel's footprint, stains, baked light, haze; and the sky's where there is none."""

from dataclasses import dataclass

import numba
import numpy as np

from geoweaver.synth.casting import triangles
from geoweaver.synth.lighting import Lightmap
from geoweaver.synth.materials import Palette
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import Array, Quads

_STAIN = 0
"""The palette's first texture: a grey field that stains surfaces and makes clouds."""
_MOST = 8
"""Texture samples along a stretched footprint."""


@dataclass(frozen=True, eq=False)
class Coat:
    """All that colours a heap of quadrilaterals, as flat arrays."""

    corner: Array
    """(T 3) the corner that both triangles of a quadrilateral share."""
    gradient: Array
    """(T 2 3) how its coordinates (s, t) in [0, 1]^2 change in space."""
    uv: Array
    """(Q 3 2) texture coordinates in whole textures: at the corner, along s, along t."""
    material: Array
    tint: Array
    lightmap: Lightmap
    palette: Palette
    air: Array
    """Haze distance, sky colour, horizon colour, exposure (8)."""


def coat(quads: Quads, material: Array, palette: Palette, lightmap: Lightmap, light: Light) -> Coat:
    """Flat arrays for the kernel; `material` indexes the palette."""
    sky = np.asarray(light.sky)
    air = np.array([light.haze, *sky, *(0.55 * sky + 0.6 * sky.max()), light.exposure])
    return Coat(
        quads.corners[np.arange(2 * len(quads)) // 2, 0], _gradients(quads),
        quads.uv / palette.metres[material][:, None, None], material.astype(np.int64),
        quads.tint.astype(np.float32), lightmap, palette, air,
    )  # fmt: skip


def _gradients(quads: Quads) -> Array:
    corners = triangles(quads)
    e, f = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    n = np.cross(e, f)
    square = np.maximum((n * n).sum(-1, keepdims=True), 1e-30)
    b, c = np.cross(f, n) / square, np.cross(n, e) / square
    first = (np.arange(len(corners)) % 2 == 0)[:, None]
    return np.stack([np.where(first, b + c, b), np.where(first, c, b + c)], 1)


def shade(
    look: Coat,
    plane: Array,
    origins: Array,
    directions: Array,
    step_x: Array,
    step_y: Array,
    t: Array,
    triangle: Array,
) -> Array:
    """Linear colour (n 3) of each ray; step_x and step_y are the directions' changes from pixel to pixel."""
    p, m = look.palette, look.lightmap
    return _shade(
        look.corner, look.gradient, plane, look.uv, look.material, look.tint, m.texels, m.chart, p.texels, p.start,
        p.side, p.metres, p.stain, look.air, origins, directions, step_x, step_y, t, triangle,
    )  # fmt: skip


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _shade(
    corner, gradient, plane, uv, material, tint, light, chart, texels, start, side, metres, stain, air,
    origins, directions, step_x, step_y, t, triangle,
):  # type: ignore[no-untyped-def]  # fmt: skip
    out = np.zeros((len(t), 3), np.float32)
    colour = np.zeros(3)
    for i in range(len(t)):
        d = directions[i]
        if triangle[i] < 0:
            _sky(texels, start, side, air, d, out[i])
            continue
        k, q = triangle[i], triangle[i] // 2
        g = gradient[k]
        s, r, sx, rx, sy, ry = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        across = plane[k, 0] * d[0] + plane[k, 1] * d[1] + plane[k, 2] * d[2]
        x = (plane[k, 0] * step_x[0] + plane[k, 1] * step_x[1] + plane[k, 2] * step_x[2]) / across
        y = (plane[k, 0] * step_y[0] + plane[k, 1] * step_y[1] + plane[k, 2] * step_y[2]) / across
        for c in range(3):
            at = origins[i, c] + t[i] * d[c] - corner[k, c]
            dx, dy = t[i] * (step_x[c] - d[c] * x), t[i] * (step_y[c] - d[c] * y)
            s, sx, sy = s + g[0, c] * at, sx + g[0, c] * dx, sy + g[0, c] * dy
            r, rx, ry = r + g[1, c] * at, rx + g[1, c] * dx, ry + g[1, c] * dy
        w, m = uv[q], material[q]
        u, v = w[0, 0] + s * w[1, 0] + r * w[2, 0], w[0, 1] + s * w[1, 1] + r * w[2, 1]
        ux, vx = sx * w[1, 0] + rx * w[2, 0], sx * w[1, 1] + rx * w[2, 1]
        uy, vy = sy * w[1, 0] + ry * w[2, 0], sy * w[1, 1] + ry * w[2, 1]
        _footprint(texels, start[m], side[m], u, v, ux, vx, uy, vy, colour)
        gain = 1.0
        if stain[m] > 0:
            gain += stain[m] * _stained(texels, start, side, metres, m, u, v, ux, vx, uy, vy)
        _lit(light, chart[q], s, r, gain, colour, tint[q], out[i])
        distance = t[i] * np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
        seen = np.exp(-distance / air[0])
        for c in range(3):
            out[i, c] = seen * out[i, c] + (1 - seen) * air[4 + c]
    return out


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _footprint(texels, start, side, u, v, ux, vx, uy, vy, colour):  # type: ignore[no-untyped-def]
    """Mean texture over a pixel's footprint: samples along its longer side at the mip level of the shorter."""
    lx, ly = side * np.sqrt(ux * ux + vx * vx), side * np.sqrt(uy * uy + vy * vy)
    if lx < ly:
        lx, ly, ux, vx = ly, lx, uy, vy
    count = min(_MOST, max(1, int(np.ceil(lx / max(ly, 1.0)))))
    level = np.log2(max(lx / count, ly, 1.0))
    r, g, b = 0.0, 0.0, 0.0
    for k in range(count):
        a = (k + 0.5) / count - 0.5
        x, y, z = _trilinear(texels, start, side, u + a * ux, v + a * vx, level)
        r, g, b = r + x, g + y, b + z
    norm = 1 / (255.0 * count)
    colour[0], colour[1], colour[2] = (r * norm) ** 2, (g * norm) ** 2, (b * norm) ** 2


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _trilinear(texels, start, side, u, v, level):  # type: ignore[no-untyped-def]
    low = min(int(level), len(start) - 1)
    r, g, b = _bilinear(texels, start[low], max(side >> low, 1), u, v)
    share = level - low
    if share < 0.02 or (side >> low) <= 1:
        return r, g, b
    x, y, z = _bilinear(texels, start[low + 1], max(side >> (low + 1), 1), u, v)
    return r + share * (x - r), g + share * (y - g), b + share * (z - b)


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _bilinear(texels, start, side, u, v):  # type: ignore[no-untyped-def]
    x, y = (u - np.floor(u)) * side - 0.5, (v - np.floor(v)) * side - 0.5
    fx, fy = np.floor(x), np.floor(y)
    a, b = x - fx, y - fy
    mask = side - 1
    x0, y0 = int(fx) & mask, int(fy) & mask
    x1, y1 = (x0 + 1) & mask, (y0 + 1) & mask
    p, q = texels[start + y0 * side + x0], texels[start + y0 * side + x1]
    r, s = texels[start + y1 * side + x0], texels[start + y1 * side + x1]
    wp, wq, wr, ws = (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b
    return (
        wp * p[0] + wq * q[0] + wr * r[0] + ws * s[0],
        wp * p[1] + wq * q[1] + wr * r[1] + ws * s[1],
        wp * p[2] + wq * q[2] + wr * r[2] + ws * s[2],
    )


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _stained(texels, start, side, metres, m, u, v, ux, vx, uy, vy):  # type: ignore[no-untyped-def]
    """Relative change by the stain texture, whose period fits no tile."""
    scale = metres[m] / 7.31
    size = scale * max(np.sqrt(ux * ux + vx * vx), np.sqrt(uy * uy + vy * vy)) * side[_STAIN]
    value = _trilinear(texels, start[_STAIN], side[_STAIN], u * scale, v * scale, np.log2(max(size, 1.0)))[0]
    return 2.0 * (value / 255.0 - 0.5)


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _lit(light, chart, s, r, gain, colour, tint, out):  # type: ignore[no-untyped-def]
    """Baked light at (s, r) on the surface, times its colour."""
    nu, nv = chart[1], chart[2]
    x, y = min(max(s, 0.0), 0.999999) * (nu - 1), min(max(r, 0.0), 0.999999) * (nv - 1)
    i, j = int(x), int(y)
    a, b = x - i, y - j
    at = chart[0] + j * nu + i
    for c in range(3):
        top = (1 - a) * light[at, c] + a * light[at + 1, c]
        bottom = (1 - a) * light[at + nu, c] + a * light[at + nu + 1, c]
        out[c] = ((1 - b) * top + b * bottom) * colour[c] * tint[c] * gain


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _sky(texels, start, side, air, d, out):  # type: ignore[no-untyped-def]
    """From horizon to zenith, with clouds."""
    up = d[2] / np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    share = np.sqrt(min(max(up, 0.0), 1.0))
    reach = 0.35 / (max(up, 0.0) + 0.12)
    scale = reach / max(np.sqrt(d[0] * d[0] + d[1] * d[1]), 1e-9) * np.sqrt(1 - up * up)
    cloud = _trilinear(texels, start[_STAIN], side[_STAIN], d[0] * scale, d[1] * scale, 0.0)[0] / 255.0
    cover = min(max(4.0 * (cloud - 0.5), 0.0), 1.0) * min(1.0, 4.0 * share)
    for c in range(3):
        clear = (1 - share) * air[4 + c] + share * air[1 + c]
        out[c] = (1 - cover) * clear + cover * 1.15 * air[3]

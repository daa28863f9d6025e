"""Colour of a hit: texture over the pixel's footprint, stains, baked light, haze; else the sky's."""

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
    """Haze distance, sky colour, horizon colour (7)."""


def coat(quads: Quads, material: Array, palette: Palette, lightmap: Lightmap, light: Light) -> Coat:
    """Flat arrays for the kernel; `material` indexes the palette."""
    sky = np.asarray(light.sky)
    air = np.array([light.haze, *sky, *(0.55 * sky + 0.45 * sky.max())])
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
    out: Array = _shade(
        look.corner, look.gradient, plane, look.uv, look.material, look.tint, m.texels, m.chart, p.texels,
        p.start,
        p.side, p.metres, p.stain, look.air, origins, directions, step_x, step_y, t, triangle,
    )  # fmt: skip
    return out


@numba.njit(cache=True, fastmath=True)
def _shade(  # type: ignore[no-untyped-def]
    corner, gradient, plane, uv, material, tint, light, chart, texels, start, side, metres, stain, air,
    origins, directions, step_x, step_y, t, triangle,
):  # fmt: skip
    out = np.zeros((len(t), 3), np.float32)
    for i in range(len(t)):
        k = triangle[i]
        d0, d1, d2, far = directions[i, 0], directions[i, 1], directions[i, 2], t[i]
        if k < 0:
            out[i, 0], out[i, 1], out[i, 2] = _sky(texels, start, side, air, d0, d1, d2)
            continue
        q = k // 2
        n0, n1, n2 = plane[k, 0], plane[k, 1], plane[k, 2]
        across = 1 / (n0 * d0 + n1 * d1 + n2 * d2)
        x = (n0 * step_x[0] + n1 * step_x[1] + n2 * step_x[2]) * across
        y = (n0 * step_y[0] + n1 * step_y[1] + n2 * step_y[2]) * across
        s, r, sx, rx, sy, ry = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for c in range(3):
            at = origins[i, c] + far * directions[i, c] - corner[k, c]
            dx = far * (step_x[c] - directions[i, c] * x)
            dy = far * (step_y[c] - directions[i, c] * y)
            gs, gr = gradient[k, 0, c], gradient[k, 1, c]
            s, sx, sy = s + gs * at, sx + gs * dx, sy + gs * dy
            r, rx, ry = r + gr * at, rx + gr * dx, ry + gr * dy
        m = material[q]
        us, vs, ur, vr = uv[q, 1, 0], uv[q, 1, 1], uv[q, 2, 0], uv[q, 2, 1]
        u, v = uv[q, 0, 0] + s * us + r * ur, uv[q, 0, 1] + s * vs + r * vr
        ux, vx, uy, vy = sx * us + rx * ur, sx * vs + rx * vr, sy * us + ry * ur, sy * vs + ry * vr
        a, b, c2 = _footprint(texels, start, side, m, u, v, ux, vx, uy, vy)
        gain = 1.0
        if stain[m] > 0:
            gain += stain[m] * _stained(texels, start, side, metres[m] / 7.31, u, v, ux, vx, uy, vy)
        l0, l1, l2 = _lit(light, chart[q, 0], chart[q, 1], chart[q, 2], s, r)
        seen = np.exp(-far * np.sqrt(d0 * d0 + d1 * d1 + d2 * d2) / air[0]) if air[0] < 1e6 else 1.0
        out[i, 0] = seen * l0 * a * tint[q, 0] * gain + (1 - seen) * air[4]
        out[i, 1] = seen * l1 * b * tint[q, 1] * gain + (1 - seen) * air[5]
        out[i, 2] = seen * l2 * c2 * tint[q, 2] * gain + (1 - seen) * air[6]
    return out


@numba.njit(cache=True, fastmath=True, inline="always")
def _footprint(texels, start, side, m, u, v, ux, vx, uy, vy):  # type: ignore[no-untyped-def]
    """Mean texture over a pixel's footprint: samples along its longer side, mip level by the shorter."""
    n = side[m]
    lx, ly = n * np.sqrt(ux * ux + vx * vx), n * np.sqrt(uy * uy + vy * vy)
    if lx < ly:
        lx, ly, ux, vx = ly, lx, uy, vy
    count = min(_MOST, max(1, int(lx / max(ly, 1.0) + 0.6)))
    level = np.log2(max(lx / count, ly, 1.0))
    r, g, b = 0.0, 0.0, 0.0
    for k in range(count):
        a = (k + 0.5) / count - 0.5
        x, y, z = _trilinear(texels, start, n, m, u + a * ux, v + a * vx, level)
        r, g, b = r + x, g + y, b + z
    norm = 1 / (255.0 * count)
    return (r * norm) ** 2, (g * norm) ** 2, (b * norm) ** 2


@numba.njit(cache=True, fastmath=True, inline="always")
def _trilinear(texels, start, side, m, u, v, level):  # type: ignore[no-untyped-def]
    low = int(level)
    while (side >> low) < 1:
        low -= 1
    r, g, b = _bilinear(texels, start[m, low], side >> low, u, v)
    share = 2.0 * (level - low) - 0.5  # two levels are blended only half way between them: half the cost
    if share <= 0 or (side >> low) <= 1:
        return r, g, b
    share = min(share, 1.0)
    x, y, z = _bilinear(texels, start[m, low + 1], side >> (low + 1), u, v)
    return r + share * (x - r), g + share * (y - g), b + share * (z - b)


@numba.njit(cache=True, fastmath=True, inline="always")
def _bilinear(texels, start, side, u, v):  # type: ignore[no-untyped-def]
    x, y = u * side - 0.5, v * side - 0.5
    fx, fy = np.floor(x), np.floor(y)
    a, b = x - fx, y - fy
    mask = side - 1
    x0, y0 = int(fx) & mask, int(fy) & mask
    x1, y1 = (x0 + 1) & mask, (y0 + 1) & mask
    above, below = start + y0 * side, start + y1 * side
    p, q, r, s = texels[above + x0], texels[above + x1], texels[below + x0], texels[below + x1]
    wp, wq, wr, ws = (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b
    return (
        wp * (p & 255) + wq * (q & 255) + wr * (r & 255) + ws * (s & 255),
        wp * (p >> 8 & 255) + wq * (q >> 8 & 255) + wr * (r >> 8 & 255) + ws * (s >> 8 & 255),
        wp * (p >> 16) + wq * (q >> 16) + wr * (r >> 16) + ws * (s >> 16),
    )


@numba.njit(cache=True, fastmath=True, inline="always")
def _stained(texels, start, side, scale, u, v, ux, vx, uy, vy):  # type: ignore[no-untyped-def]
    """Relative change by the stain texture, whose period fits no tile."""
    n = side[_STAIN]
    size = scale * n * np.sqrt(max(ux * ux + vx * vx, uy * uy + vy * vy))
    low = 0
    while size > 1.5 and low < 8:
        low, size = low + 1, size / 2
    value = _bilinear(texels, start[_STAIN, low], n >> low, u * scale, v * scale)[0]
    return value / 127.5 - 1.0


@numba.njit(cache=True, fastmath=True, inline="always")
def _lit(light, first, nu, nv, s, r):  # type: ignore[no-untyped-def]
    """Baked light at (s, r) on the surface."""
    x, y = min(max(s, 0.0), 0.999999) * (nu - 1), min(max(r, 0.0), 0.999999) * (nv - 1)
    i, j = int(x), int(y)
    a, b = x - i, y - j
    p = first + j * nu + i
    q = p + nu
    wp, wq, wr, ws = (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b
    return (
        wp * light[p, 0] + wq * light[p + 1, 0] + wr * light[q, 0] + ws * light[q + 1, 0],
        wp * light[p, 1] + wq * light[p + 1, 1] + wr * light[q, 1] + ws * light[q + 1, 1],
        wp * light[p, 2] + wq * light[p + 1, 2] + wr * light[q, 2] + ws * light[q + 1, 2],
    )


@numba.njit(cache=True, fastmath=True, inline="always")
def _sky(texels, start, side, air, d0, d1, d2):  # type: ignore[no-untyped-def]
    """From horizon to zenith, with clouds."""
    flat = np.sqrt(d0 * d0 + d1 * d1)
    up = max(d2, 0.0) / np.sqrt(flat * flat + d2 * d2)
    share = np.sqrt(up)
    reach = 0.35 / (up + 0.12) * np.sqrt(1 - up * up) / max(flat, 1e-9)
    cloud = _bilinear(texels, start[_STAIN, 0], side[_STAIN], d0 * reach, d1 * reach)[0] / 255.0
    cover = min(max(5.0 * (cloud - 0.49), 0.0), 1.0) * min(1.0, 4.0 * share)
    clear = (1 - cover) * (1 - share)
    blue, white = (1 - cover) * share, cover * 1.15 * air[3]
    clear, blue, white = (
        0.7 * clear,
        0.7 * blue,
        0.7 * white,
    )  # the eye's sky is dimmer than the light it sheds
    return (
        clear * air[4] + blue * air[1] + white,
        clear * air[5] + blue * air[2] + white,
        clear * air[6] + blue * air[3] + white,
    )

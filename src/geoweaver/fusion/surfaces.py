"""Which pixels lie on a surface, and which way it faces: on a plane inverse depth is linear."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numba import njit

from geoweaver.fusion.config import FusionConfig

_RADIUS = 2
"""Pixels around the middle that a plane is fitted to."""
_SAME = 0.15
"""Relative difference of inverse depth up to which a pixel of the window may lie on the same surface."""
_NOISE = 5.0
"""Bends below so many typical bends of the map are noise, not edges."""


def surface_of(
    depth: Float[np.ndarray, "H W"], intrinsics: Float[np.ndarray, "4"], config: FusionConfig
) -> tuple[Bool[np.ndarray, "H W"], Float[np.ndarray, "H W 3"]]:
    """Pixels away from edges and not seen too much from the side, and normals towards the camera."""
    inverse = np.zeros(depth.shape, np.float32)
    np.divide(1, depth, out=inverse, where=depth > 0)
    bend = np.full(depth.shape, np.inf, np.float32)
    _bends(inverse, bend)
    typical = np.median(bend[np.isfinite(bend)]) if np.isfinite(bend).any() else 0.0
    normal, cosine = np.zeros((*depth.shape, 3), np.float32), np.zeros(depth.shape, np.float32)
    _fit_planes(inverse, intrinsics.astype(np.float64), normal, cosine)
    smooth = bend < max(config.jump, _NOISE * float(typical))
    return smooth & (cosine > config.least_cosine), normal


@njit(cache=True)
def _bends(inverse: Any, bend: Any) -> None:
    """Largest relative second difference through each pixel; infinite beside unknown depth."""
    height, width = inverse.shape
    for y in range(height):
        for x in range(width):
            q = inverse[y, x]
            if q <= 0:
                continue
            worst = np.float32(0)
            for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if y - dy < 0 or y + dy >= height or min(x - dx, x + dx) < 0 or max(x - dx, x + dx) >= width:
                    continue
                a, b = inverse[y - dy, x - dx], inverse[y + dy, x + dx]
                if a <= 0 or b <= 0:
                    worst = np.float32(np.inf)
                    break
                worst = max(worst, abs(a + b - 2 * q) / q)
            bend[y, x] = worst


@njit(cache=True)
def _fit_planes(inverse: Any, intrinsics: Any, normal: Any, cosine: Any) -> None:
    """Least squares q = a + b dx + c dy over the window; n / h = (b fx, c fy, rest) on the plane n X = h."""
    fx, fy, cx, cy = intrinsics
    height, width = inverse.shape
    for y in range(height):
        for x in range(width):
            q = inverse[y, x]
            if q <= 0:
                continue
            b, c, known = _slopes(inverse, y, x)
            if not known:
                continue
            rx, ry = (x + 0.5 - cx) / fx, (y + 0.5 - cy) / fy
            nx, ny = b * fx, c * fy
            nz = q - nx * rx - ny * ry
            length = np.sqrt(nx * nx + ny * ny + nz * nz)
            # n . ray = q > 0 looks away from the camera
            normal[y, x, 0], normal[y, x, 1], normal[y, x, 2] = -nx / length, -ny / length, -nz / length
            cosine[y, x] = q / (length * np.sqrt(rx * rx + ry * ry + 1))


@njit(cache=True)
def _slopes(inverse: Any, y: int, x: int) -> Any:
    """Slopes of inverse depth around a pixel, and whether enough of the window is one surface."""
    height, width = inverse.shape
    q = inverse[y, x]
    n, sx, sy, sxx, sxy, syy, sq, sqx, sqy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for v in range(max(y - _RADIUS, 0), min(y + _RADIUS + 1, height)):
        for u in range(max(x - _RADIUS, 0), min(x + _RADIUS + 1, width)):
            p = inverse[v, u]
            if p <= 0 or abs(p - q) > _SAME * q:
                continue
            dx, dy, dq = float(u - x), float(v - y), float(p) - float(q)
            n += 1
            sx, sy, sq = sx + dx, sy + dy, sq + dq
            sxx, sxy, syy = sxx + dx * dx, sxy + dx * dy, syy + dy * dy
            sqx, sqy = sqx + dq * dx, sqy + dq * dy
    if n < 6:
        return 0.0, 0.0, False
    sxx, sxy, syy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
    sqx, sqy = sqx - sq * sx / n, sqy - sq * sy / n
    determinant = sxx * syy - sxy * sxy
    if determinant <= 1e-9 * sxx * syy:
        return 0.0, 0.0, False
    return (sqx * syy - sqy * sxy) / determinant, (sqy * sxx - sqx * sxy) / determinant, True

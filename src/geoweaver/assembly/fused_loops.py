"""Loops over pairs under numba, pairs in parallel: sums, random errors' forces, residuals."""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from geoweaver.assembly.fused_match import (
    add_products,
    add_pulls,
    carry,
    carry_back,
    columns_of,
    lift_ray,
    match_rows,
    pair_constants,
    scaled,
)
from geoweaver.assembly.residuals import NEAR

COLUMNS = 224
"""Residual rows gathered before their products are added: 32 matches, 28 KB, what the fastest cache holds."""


@njit(parallel=True, cache=True, error_model="numpy")
def sum_pairs(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, c3: Any, k2: Any, k3: Any, both: bool, n: int, losses: Any, gradient: Any, normal: Any,
) -> None:  # fmt: skip
    for p in prange(len(start) - 1):
        J, H, cols = np.empty((n + 1, COLUMNS)), np.zeros((n + 1, n + 1)), 0
        s, R, t, A, B, f = pair_constants(zs, zR, zt, Ki, Kj, aff, p)
        for m in range(start[p], start[p + 1]):
            if w[m] > 0.0:
                here, there = (ui[m, 0], ui[m, 1]), (uj[m, 0], uj[m, 1])
                loss2, loss3, roots = match_rows(
                    here, there, di[m], dj[m], w[m] * c2[p], w[m] * c3[p],
                    s, R, t, A, B, f, k2, k3, both, n, J, cols,
                )  # fmt: skip
                losses[p, 0] += loss2
                losses[p, 1] += loss3
                cols += columns_of(roots)
            if cols > COLUMNS - 7 or m + 1 == start[p + 1]:
                if n > 0 and len(normal):
                    add_products(J, cols, H)
                elif n > 0:
                    add_pulls(J, cols, H)
                cols = 0
        for r in range(n):
            gradient[p, r] = H[r, n]
        if len(normal):
            for r in range(n):
                for c in range(n):
                    normal[p, r, c] = H[min(r, c), max(r, c)]


@njit(cache=True, error_model="numpy")
def hash_cell(frame: int, x: int, y: int) -> Any:
    """Well mixed bits of a cell of a frame (splitmix64)."""
    h = np.uint64(frame) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(x) * np.uint64(0xBF58476D1CE4E5B9)
    h += np.uint64(y) * np.uint64(0x94D049BB133111EB) + np.uint64(0x2545F4914F6CDD1D)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, error_model="numpy")
def put_signs(bits: Any, out: Any) -> None:
    for draw in range(len(out)):
        out[draw] = 1.0 if (bits >> np.uint64(draw)) & np.uint64(1) else -1.0


@njit(parallel=True, cache=True, error_model="numpy")
def sum_error_forces(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, c3: Any, k2: Any, k3: Any, both: bool, n: int,
    region_i: Any, region_j: Any, wide: float, cell: float, deep: float, off: float, out: Any,
) -> None:  # fmt: skip
    """J^T W (change of the residuals) for random errors: of depth by regions, of matches by cells."""
    for p in prange(len(start) - 1):
        J, weighed, sign = np.zeros((n + 1, 7)), np.zeros((n, 4)), np.zeros((4, out.shape[2]))
        s, R, t, A, B, f = pair_constants(zs, zR, zt, Ki, Kj, aff, p)
        for m in range(start[p], start[p + 1]):
            if w[m] <= 0.0:
                continue
            here, there = (ui[m, 0], ui[m, 1]), (uj[m, 0], uj[m, 1])
            _, _, roots = match_rows(
                here, there, di[m], dj[m], w[m] * c2[p], w[m] * c3[p],
                s, R, t, A, B, f, k2, k3, both, n, J, 0,
            )  # fmt: skip
            _weigh_errors(J, roots, deep * f[0], deep * f[2], off, weighed)
            put_signs(hash_cell(region_i[p], int(here[0] / wide), int(here[1] / wide)), sign[0])
            put_signs(hash_cell(region_j[p], int(there[0] / wide), int(there[1] / wide)), sign[1])
            put_signs(hash_cell(-1 - 2 * p, int(here[0] / cell), int(here[1] / cell)), sign[2])
            put_signs(hash_cell(-2 - 2 * p, int(here[0] / cell), int(here[1] / cell)), sign[3])
            for r in range(n):
                a, b, x, y = weighed[r, 0], weighed[r, 1], weighed[r, 2], weighed[r, 3]
                for d in range(out.shape[2]):
                    out[p, r, d] += a * sign[0, d] + b * sign[1, d] + x * sign[2, d] + y * sign[3, d]


@njit(cache=True, error_model="numpy")
def _weigh_errors(J: Any, roots: Any, deep_i: float, deep_j: float, off: float, out: Any) -> None:
    """J^T W dr for each error of a match: the two depths (relative), and the matched pixel in x and y."""
    cols, back = columns_of(roots), 2 if roots[0] > 0.0 else 0
    for r in range(len(out)):
        out[r] = 0.0
        for k in range(cols):
            out[r, 0] += J[r, k] * J[7, k] * deep_i
            out[r, 1] += J[r, k] * J[9, k] * deep_j
        for axis in range(2):
            # what is seen further right in j lands further right from j in i, and further left from i in j
            if roots[0] > 0.0:
                out[r, 2 + axis] -= off * roots[0] * J[r, axis]
            if roots[1] > 0.0:
                out[r, 2 + axis] += off * roots[1] * J[r, back + axis]


@njit(parallel=True, cache=True, error_model="numpy")
def measure_rows(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    both: bool, step: int, pixels: Any, points: Any,
) -> None:  # fmt: skip
    for p in prange(len(start) - 1):
        s, R, t, A, B, f = pair_constants(zs, zR, zt, Ki, Kj, aff, p)
        first = (start[p] + step - 1) // step * step
        for m in range(first, start[p + 1], step):
            here, there = (ui[m, 0], ui[m, 1]), (uj[m, 0], uj[m, 1])
            a, b = f[0] * di[m] + f[1], f[2] * dj[m] + f[3]
            X, Y = scaled(a, lift_ray(here, A)), scaled(b, lift_ray(there, B))
            if di[m] > 0.0:
                q = carry(s, R, t, X)
                pixels[m, 0] = _miss(q, B, there) if a > 0.0 and q[2] > NEAR * s * a else np.inf
                if len(points) and dj[m] > 0.0:
                    gap = math.sqrt((q[0] - Y[0]) ** 2 + (q[1] - Y[1]) ** 2 + (q[2] - Y[2]) ** 2)
                    points[m] = gap / math.sqrt(s * a * b) if a > 0.0 and b > 0.0 else np.inf
            if both and dj[m] > 0.0:
                q = carry_back(s, R, t, Y)
                pixels[m, 1] = _miss(q, A, here) if b > 0.0 and q[2] > NEAR * b / s else np.inf


@njit(cache=True, error_model="numpy")
def _miss(q: Any, K: Any, u: Any) -> float:
    return math.hypot(K[0] * q[0] / q[2] + K[2] - u[0], K[1] * q[1] / q[2] + K[3] - u[1])

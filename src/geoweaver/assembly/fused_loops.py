"""Loops over pairs under numba, pairs in parallel: sums, random errors' forces, residuals."""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from geoweaver.assembly.fused_match import LANES, add_match, carry, carry_back, lift_ray, match_rows
from geoweaver.assembly.residuals import NEAR


@njit(parallel=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def sum_pairs(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, c3: Any, k2: Any, k3: Any, both: bool, n: int, losses: Any, gradient: Any, normal: Any,
) -> None:  # fmt: skip
    for p in prange(len(start) - 1):
        scratch, J = np.zeros((6, 3)), np.zeros((7, LANES))
        D, Dj, DY = np.zeros((3, LANES)), np.zeros((3, LANES)), np.zeros((3, LANES))
        H, g = np.zeros((LANES, LANES)), np.zeros(LANES)
        e, pull, bend = np.zeros(7), np.zeros(7), np.zeros(7)
        total2, total3 = 0.0, 0.0
        for m in range(start[p], start[p + 1]):
            if w[m] <= 0.0:
                continue
            loss2, loss3 = match_rows(
                ui[m], uj[m], di[m], dj[m], w[m] * c2[p], w[m] * c3[p],
                zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p],
                k2, k3, both, n, scratch, D, Dj, DY, J, e, pull, bend,
            )  # fmt: skip
            total2 += loss2
            total3 += loss3
            if n > 7:
                add_match(J, e, pull, bend, H, g, 15 if len(normal) else 0, 16)
            elif n > 0:
                add_match(J, e, pull, bend, H, g, 7 if len(normal) else 0, 8)
        losses[p, 0], losses[p, 1] = total2, total3
        for r in range(n):
            gradient[p, r] = g[r]
        if len(normal):
            for r in range(n):
                for c in range(n):
                    normal[p, r, c] = H[r, c]


@njit(cache=True)
def hash_cell(frame: int, x: int, y: int) -> Any:
    """Well mixed bits of a cell of a frame (splitmix64)."""
    h = np.uint64(frame) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(x) * np.uint64(0xBF58476D1CE4E5B9)
    h += np.uint64(y) * np.uint64(0x94D049BB133111EB) + np.uint64(0x2545F4914F6CDD1D)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True)
def sign_of(bits: Any, draw: int) -> float:
    return 1.0 if (bits >> np.uint64(draw)) & np.uint64(1) else -1.0


@njit(parallel=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def sum_error_forces(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, c3: Any, k2: Any, k3: Any, both: bool, n: int,
    region_i: Any, region_j: Any, wide: float, cell: float, deep: float, off: float, out: Any,
) -> None:  # fmt: skip
    """J^T W (change of the residuals) for random errors: of depth by regions, of matches by cells."""
    draws = out.shape[2]
    for p in prange(len(start) - 1):
        scratch, J = np.zeros((6, 3)), np.zeros((7, LANES))
        D, Dj, DY = np.zeros((3, LANES)), np.zeros((3, LANES)), np.zeros((3, LANES))
        e, pull, bend, weighed = np.zeros(7), np.zeros(7), np.zeros(7), np.zeros((4, n))
        for m in range(start[p], start[p + 1]):
            if w[m] <= 0.0:
                continue
            match_rows(
                ui[m], uj[m], di[m], dj[m], w[m] * c2[p], w[m] * c3[p],
                zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p],
                k2, k3, both, n, scratch, D, Dj, DY, J, e, pull, bend,
            )  # fmt: skip
            _weigh_errors(J, bend, deep * aff[p, 0], deep * aff[p, 2], off, weighed)
            from_i = hash_cell(region_i[p], int(ui[m, 0] / wide), int(ui[m, 1] / wide))
            from_j = hash_cell(region_j[p], int(uj[m, 0] / wide), int(uj[m, 1] / wide))
            along = hash_cell(-1 - 2 * p, int(ui[m, 0] / cell), int(ui[m, 1] / cell))
            across = hash_cell(-2 - 2 * p, int(ui[m, 0] / cell), int(ui[m, 1] / cell))
            for d in range(draws):
                a, b, x, y = sign_of(from_i, d), sign_of(from_j, d), sign_of(along, d), sign_of(across, d)
                for r in range(n):
                    out[p, r, d] += (
                        a * weighed[0, r] + b * weighed[1, r] + x * weighed[2, r] + y * weighed[3, r]
                    )


@njit(cache=True)
def _weigh_errors(J: Any, bend: Any, deep_i: float, deep_j: float, off: float, out: Any) -> None:
    """J^T W dr for each error of a match: the two depths (relative), and the matched pixel in x and y."""
    for r in range(out.shape[1]):
        out[0, r], out[1, r] = 0.0, 0.0
        for k in range(7):
            stiff = bend[k] * J[k, r]
            out[0, r] += stiff * J[k, 7] * deep_i
            out[1, r] += stiff * J[k, 9] * deep_j
        # what is seen further right in j lands further right from j in i, and further left from i in j
        out[2, r] = off * (bend[2] * J[2, r] - bend[0] * J[0, r])
        out[3, r] = off * (bend[3] * J[3, r] - bend[1] * J[1, r])


@njit(parallel=True, cache=True)
def measure_rows(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    both: bool, step: int, pixels: Any, points: Any,
) -> None:  # fmt: skip
    for p in prange(len(start) - 1):
        s, R, t, A, B, f = zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p]
        X, Y, q = np.empty(3), np.empty(3), np.empty(3)
        first = (start[p] + step - 1) // step * step
        for m in range(first, start[p + 1], step):
            a, b = f[0] * di[m] + f[1], f[2] * dj[m] + f[3]
            if dj[m] > 0.0:
                lift_ray(uj[m], B, Y)
                for r in range(3):
                    Y[r] *= b
            if di[m] > 0.0:
                lift_ray(ui[m], A, X)
                for r in range(3):
                    X[r] *= a
                carry(s, R, t, X, q)
                if a > 0.0 and q[2] > NEAR * s * a:
                    x = B[0] * q[0] / q[2] + B[2] - uj[m, 0]
                    y = B[1] * q[1] / q[2] + B[3] - uj[m, 1]
                    pixels[m, 0] = math.sqrt(x * x + y * y)
                else:
                    pixels[m, 0] = np.inf
                if len(points) and dj[m] > 0.0:
                    gap = math.sqrt((q[0] - Y[0]) ** 2 + (q[1] - Y[1]) ** 2 + (q[2] - Y[2]) ** 2)
                    points[m] = gap / math.sqrt(s * a * b) if a > 0.0 and b > 0.0 else np.inf
            if both and dj[m] > 0.0:
                carry_back(s, R, t, Y, q)
                if b > 0.0 and q[2] > NEAR * b / s:
                    x = A[0] * q[0] / q[2] + A[2] - ui[m, 0]
                    y = A[1] * q[1] / q[2] + A[3] - ui[m, 1]
                    pixels[m, 1] = math.sqrt(x * x + y * y)
                else:
                    pixels[m, 1] = np.inf

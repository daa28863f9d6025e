"""What matches say about the bend of depth inside each frame, under numba, frames in parallel."""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from geoweaver.assembly.fused_loops import hash_cell, put_signs
from geoweaver.assembly.fused_match import (
    backward_rows,
    carry,
    carry_back,
    forward_rows,
    lift_ray,
    pair_constants,
    scaled,
)


@njit(cache=True, error_model="numpy")
def _nodes(u: Any, size: Any, rows: int, columns: int, node: Any, share: Any) -> None:
    """The four nodes around a pixel and what each counts, as geometry.grid has it."""
    x = min(max(u[0] / size[0], 0.0), 1.0) * (columns - 1)
    y = min(max(u[1] / size[1], 0.0), 1.0) * (rows - 1)
    left, top = min(int(x), columns - 2), min(int(y), rows - 2)
    x -= left
    y -= top
    node[0] = top * columns + left
    node[1], node[2], node[3] = node[0] + 1, node[0] + columns, node[0] + columns + 1
    share[0], share[1], share[2], share[3] = (1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y


@njit(parallel=True, cache=True, error_model="numpy")
def bend_depths(
    start: Any, u: Any, d: Any, frame: Any, bend: Any, size: Any, rows: int, columns: int, out: Any
) -> None:
    """Depth times the exponential of its frame's bend (F K) at the pixel."""
    for p in prange(len(start) - 1):
        node, share, own = np.zeros(4, np.int64), np.zeros(4), bend[frame[p]]
        for m in range(start[p], start[p + 1]):
            _nodes(u[m], size, rows, columns, node, share)
            value = 0.0
            for k in range(4):
                value += share[k] * own[node[k]]
            out[m] = d[m] * math.exp(value)


@njit(parallel=True, cache=True, error_model="numpy")
def sum_bends(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, k2: Any, both: bool, n: int,
    first: Any, ends: Any, size: Any, rows: int, columns: int, gradient: Any, normal: Any, mixed: Any,
) -> None:  # fmt: skip
    """Gradient (f K), normal matrix (f K K) and coupling to the local parameters of each end's pair (e K n).

    `ends` lists the ends of pairs frame by frame, 2 p for the first frame of pair p and 2 p + 1 for the
    second; frame f owns first[f] to first[f + 1] of them.
    """
    for o in prange(len(first) - 1):
        J, node, share = np.zeros((n + 1, 2)), np.zeros(4, np.int64), np.zeros(4)
        across = np.zeros(n)
        for place in range(first[o], first[o + 1]):
            p, second = ends[place] // 2, ends[place] % 2
            s, R, t, A, B, f = pair_constants(zs, zR, zt, Ki, Kj, aff, p)
            deeper, steep = 7 + 2 * second, f[2 * second]
            for m in range(start[p], start[p + 1]):
                if w[m] <= 0.0 or (second and not both):
                    continue
                here, there = (ui[m, 0], ui[m, 1]), (uj[m, 0], uj[m, 1])
                u = there if second else here
                root = _end_rows(second, here, there, di[m], dj[m], w[m] * c2[p], s, R, t, A, B, f, k2, n, J)
                if root == 0.0:
                    continue
                x, y = steep * J[deeper, 0], steep * J[deeper, 1]
                for c in range(n):
                    across[c] = x * J[c, 0] + y * J[c, 1]
                _nodes(u, size, rows, columns, node, share)
                for k in range(4):
                    gradient[o, node[k]] += share[k] * (x * J[n, 0] + y * J[n, 1])
                    for q in range(4):
                        normal[o, node[k], node[q]] += share[k] * share[q] * (x * x + y * y)
                    for c in range(n):
                        mixed[place, node[k], c] += share[k] * across[c]


@njit(cache=True, error_model="numpy")
def _end_rows(
    second: int, here: Any, there: Any, di: float, dj: float, share: float,
    s: float, R: Any, t: Any, A: Any, B: Any, f: Any, k: Any, n: int, J: Any,
) -> float:  # fmt: skip
    """The two columns of a match that know the depth of one end, and the root of their curvature."""
    root = 0.0
    if second and dj > 0.0:
        b, ray = f[2] * dj + f[3], lift_ray(there, B)
        q = carry_back(s, R, t, scaled(b, ray))
        _, root = backward_rows(dj, b, ray, q, here, share, s, R, A, B, k, n, J, 0)
    elif not second and di > 0.0:
        a, ray = f[0] * di + f[1], lift_ray(here, A)
        p = carry(s, R, t, scaled(a, ray))
        _, root = forward_rows(di, a, ray, p, there, share, s, R, A, B, k, n, J, 0)
    return root


@njit(parallel=True, cache=True, error_model="numpy")
def sum_bend_forces(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, k2: Any, both: bool, n: int,
    region_i: Any, region_j: Any, wide: float, cell: float, deep: float, off: float,
    first: Any, ends: Any, size: Any, rows: int, columns: int, out: Any,
) -> None:  # fmt: skip
    """How the random errors of fused_loops.sum_error_forces pull at the nodes (f K draws)."""
    for o in prange(len(first) - 1):
        J, node, share = np.zeros((n + 1, 2)), np.zeros(4, np.int64), np.zeros(4)
        sign, force = np.zeros((3, out.shape[2])), np.zeros(out.shape[2])
        for place in range(first[o], first[o + 1]):
            p, second = ends[place] // 2, ends[place] % 2
            s, R, t, A, B, f = pair_constants(zs, zR, zt, Ki, Kj, aff, p)
            deeper, steep = 7 + 2 * second, f[2 * second]
            for m in range(start[p], start[p + 1]):
                if w[m] <= 0.0 or (second and not both):
                    continue
                here, there = (ui[m, 0], ui[m, 1]), (uj[m, 0], uj[m, 1])
                u = there if second else here
                root = _end_rows(second, here, there, di[m], dj[m], w[m] * c2[p], s, R, t, A, B, f, k2, n, J)
                if root == 0.0:
                    continue
                x, y = steep * J[deeper, 0], steep * J[deeper, 1]
                run = region_j[p] if second else region_i[p]
                put_signs(hash_cell(run, int(u[0] / wide), int(u[1] / wide)), sign[0])
                put_signs(hash_cell(-1 - 2 * p, int(here[0] / cell), int(here[1] / cell)), sign[1])
                put_signs(hash_cell(-2 - 2 * p, int(here[0] / cell), int(here[1] / cell)), sign[2])
                _nodes(u, size, rows, columns, node, share)
                aside, stiff = off * root if second else -off * root, deep * (x * x + y * y)
                for d in range(out.shape[2]):
                    force[d] = stiff * sign[0, d] + aside * (x * sign[1, d] + y * sign[2, d])
                for k in range(4):
                    for d in range(out.shape[2]):
                        out[o, node[k], d] += share[k] * force[d]

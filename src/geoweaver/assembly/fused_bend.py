"""What matches say about the bend of depth inside each frame, under numba, frames in parallel."""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from geoweaver.assembly.fused_loops import hash_cell, sign_of
from geoweaver.assembly.fused_match import LANES, match_rows


@njit(cache=True)
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


@njit(parallel=True, cache=True)
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


@njit(parallel=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
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
    for f in prange(len(first) - 1):
        scratch, J = np.zeros((6, 3)), np.zeros((7, LANES))
        D, Dj, DY = np.zeros((3, LANES)), np.zeros((3, LANES)), np.zeros((3, LANES))
        e, pull, curve = np.zeros(7), np.zeros(7), np.zeros(7)
        node, share = np.zeros(4, np.int64), np.zeros(4)
        for place in range(first[f], first[f + 1]):
            p, second = ends[place] // 2, ends[place] % 2
            row, column, a = 2 * second, 7 + 2 * second, aff[p, 2 * second]
            for m in range(start[p], start[p + 1]):
                if w[m] <= 0.0:
                    continue
                match_rows(
                    ui[m], uj[m], di[m], dj[m], w[m] * c2[p], 0.0,
                    zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p],
                    k2, k2, both, n, scratch, D, Dj, DY, J, e, pull, curve,
                )  # fmt: skip
                if curve[row] == 0.0:
                    continue
                x, y = a * J[row, column], a * J[row + 1, column]
                _nodes(uj[m] if second else ui[m], size, rows, columns, node, share)
                slope = pull[row] * (e[row] * x + e[row + 1] * y)
                stiff = curve[row] * (x * x + y * y)
                x *= curve[row]
                y *= curve[row]
                for k in range(4):
                    gradient[f, node[k]] += share[k] * slope
                    for q in range(4):
                        normal[f, node[k], node[q]] += share[k] * share[q] * stiff
                    for c in range(n):
                        mixed[place, node[k], c] += share[k] * (x * J[row, c] + y * J[row + 1, c])


@njit(parallel=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def sum_bend_forces(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any,
    zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, k2: Any, both: bool, n: int,
    region_i: Any, region_j: Any, wide: float, cell: float, deep: float, off: float,
    first: Any, ends: Any, size: Any, rows: int, columns: int, out: Any,
) -> None:  # fmt: skip
    """How the random errors of fused_loops.sum_error_forces pull at the nodes (f K draws)."""
    for f in prange(len(first) - 1):
        scratch, J = np.zeros((6, 3)), np.zeros((7, LANES))
        D, Dj, DY = np.zeros((3, LANES)), np.zeros((3, LANES)), np.zeros((3, LANES))
        e, pull, curve = np.zeros(7), np.zeros(7), np.zeros(7)
        node, share = np.zeros(4, np.int64), np.zeros(4)
        for place in range(first[f], first[f + 1]):
            p, second = ends[place] // 2, ends[place] % 2
            row, column, a = 2 * second, 7 + 2 * second, aff[p, 2 * second]
            for m in range(start[p], start[p + 1]):
                if w[m] <= 0.0:
                    continue
                match_rows(
                    ui[m], uj[m], di[m], dj[m], w[m] * c2[p], 0.0,
                    zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p],
                    k2, k2, both, n, scratch, D, Dj, DY, J, e, pull, curve,
                )  # fmt: skip
                if curve[row] == 0.0:
                    continue
                u = uj[m] if second else ui[m]
                x, y = a * J[row, column], a * J[row + 1, column]
                run = region_j[p] if second else region_i[p]
                deeper = hash_cell(run, int(u[0] / wide), int(u[1] / wide))
                along = hash_cell(-1 - 2 * p, int(ui[m, 0] / cell), int(ui[m, 1] / cell))
                across = hash_cell(-2 - 2 * p, int(ui[m, 0] / cell), int(ui[m, 1] / cell))
                _nodes(u, size, rows, columns, node, share)
                aside = off if second else -off
                for d in range(out.shape[2]):
                    depth = deep * sign_of(deeper, d)
                    force = x * (depth * x + aside * sign_of(along, d))
                    force += y * (depth * y + aside * sign_of(across, d))
                    force *= curve[row]
                    for k in range(4):
                        out[f, node[k], d] += share[k] * force

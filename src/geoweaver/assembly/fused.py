"""The same sums as residuals.accumulate in one compiled pass over the matches: no temporaries, pairs in parallel.

Each pair is summed by one thread in its own order, so the bytes do not depend on the number of threads.
"""

import math
from typing import Any

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from geoweaver.assembly.kernel import Kernel
from geoweaver.assembly.pairs import Normalisation, Objective, PairGeometry, PairMatches
from geoweaver.assembly.residuals import NEAR, PairSums

_LANES = 16
"""Local parameters padded to whole vector registers."""


def accumulate(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation, parameters: int
) -> PairSums:
    """Loss, gradient and normal matrix of every pair in the first `parameters` of its local parameters (0: loss only)."""
    count = len(matches)
    losses = np.zeros((count, 2))
    gradient, normal = np.zeros((count, parameters)), np.zeros((count, parameters, parameters))
    _sum_pairs(
        *_columns(matches), *_estimate(geometry), norm.pixels.numpy(), norm.points.numpy(),
        _settings(objective.pixels), _settings(objective.points), objective.both_directions,
        parameters, losses, gradient, normal,
    )  # fmt: skip
    pixels, points = torch.from_numpy(losses[:, 0]), torch.from_numpy(losses[:, 1])
    if not parameters:
        return PairSums(pixels, points)
    return PairSums(pixels, points, torch.from_numpy(gradient), torch.from_numpy(normal))


def pixel_errors(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, at_most: int = 200_000
) -> Tensor:
    """Reprojection errors of evenly spread matches, infinite where a point is not in front of the camera."""
    step = max(1, -(-matches.rows // at_most))
    errors = np.full((matches.rows, 2), np.nan, np.float32)
    _pixel_errors(*_columns(matches)[:-1], *_estimate(geometry), objective.both_directions, step, errors)
    flat = errors[::step].ravel() if step > 1 else errors.ravel()
    return torch.from_numpy(flat[~np.isnan(flat)])


def _columns(m: PairMatches) -> tuple[Any, ...]:
    columns = (m.start, m.pixel_i, m.pixel_j, m.depth_i, m.depth_j, m.weight)
    return tuple(np.ascontiguousarray(c.numpy()) for c in columns)


def _estimate(g: PairGeometry) -> tuple[Any, ...]:
    columns = (g.z.scale, g.z.rotation, g.z.translation, g.intrinsics_i, g.intrinsics_j, g.affine)
    return tuple(np.ascontiguousarray(c.double().numpy()) for c in columns)


def _settings(kernel: Kernel) -> Any:
    return np.array([kernel.limit, kernel.step / 2, kernel.beta, float(kernel.mapping == "log1p")])


@njit(cache=True, inline="always")
def _softplus(x: float) -> float:
    if x > 36.0:
        return x
    return 0.0 if x < -36.0 else math.log1p(math.exp(x))


@njit(cache=True, inline="always")
def _sigmoid(x: float) -> float:
    return 0.0 if x < -36.0 else 1.0 / (1.0 + math.exp(-x))


@njit(cache=True)
def _loss(r: float, k: Any) -> float:
    e = math.log1p(r) if k[3] > 0.5 else r
    return k[2] / k[0] * (_softplus((e - k[1]) / k[2]) - _softplus((e - k[0] - k[1]) / k[2]))


@njit(cache=True)
def _loss_and_slope(r: float, k: Any) -> tuple[float, float]:
    """Both from one exponential each, since they share their argument."""
    e = math.log1p(r) if k[3] > 0.5 else r
    low, high = (e - k[1]) / k[2], (e - k[0] - k[1]) / k[2]
    loss = k[2] / k[0] * (_softplus(low) - _softplus(high))
    slope = (_sigmoid(low) - _sigmoid(high)) / k[0]
    return loss, slope / (1.0 + r) if k[3] > 0.5 else slope


@njit(cache=True, inline="always")
def _ray(u: Any, K: Any, out: Any) -> None:
    out[0] = (u[0] - K[2]) / K[0]
    out[1] = (u[1] - K[3]) / K[1]
    out[2] = 1.0


@njit(cache=True, inline="always")
def _carry(s: float, R: Any, t: Any, X: Any, out: Any) -> None:
    for r in range(3):
        out[r] = s * (R[r, 0] * X[0] + R[r, 1] * X[1] + R[r, 2] * X[2]) + t[r]


@njit(cache=True, inline="always")
def _carry_back(s: float, R: Any, t: Any, X: Any, out: Any) -> None:
    x, y, z = X[0] - t[0], X[1] - t[1], X[2] - t[2]
    for r in range(3):
        out[r] = (R[0, r] * x + R[1, r] * y + R[2, r] * z) / s


@njit(cache=True, inline="always")
def _fill_act(y: Any, D: Any) -> None:
    """D[:, 0:7] = [I, -[y]x, y]."""
    D[0, 0], D[0, 1], D[0, 2], D[0, 3], D[0, 4], D[0, 5], D[0, 6] = 1.0, 0.0, 0.0, 0.0, y[2], -y[1], y[0]
    D[1, 0], D[1, 1], D[1, 2], D[1, 3], D[1, 4], D[1, 5], D[1, 6] = 0.0, 1.0, 0.0, -y[2], 0.0, y[0], y[1]
    D[2, 0], D[2, 1], D[2, 2], D[2, 3], D[2, 4], D[2, 5], D[2, 6] = 0.0, 0.0, 1.0, y[1], -y[0], 0.0, y[2]


@njit(cache=True, inline="always")
def _fill_lift(raw: float, ray: Any, X: Any, K: Any, depth: int, focal: int, D: Any) -> None:
    """D's columns for (a, b) and (fx, fy) of a lifted point in its own camera."""
    for r in range(3):
        D[r, depth] = raw * ray[r]
        D[r, depth + 1] = ray[r]
        D[r, focal] = 0.0
        D[r, focal + 1] = 0.0
    D[0, focal] = -X[0] / K[0]
    D[1, focal + 1] = -X[1] / K[1]


@njit(cache=True, inline="always")
def _project_rows(p: Any, K: Any, D: Any, focal: int, J: Any, row: int) -> None:
    """Two rows of J: the projection of p differentiated through D = dp."""
    iz = 1.0 / p[2]
    x, y = p[0] * iz, p[1] * iz
    for c in range(_LANES):
        J[row, c] = K[0] * iz * (D[0, c] - x * D[2, c])
        J[row + 1, c] = K[1] * iz * (D[1, c] - y * D[2, c])
    J[row, focal] += x
    J[row + 1, focal + 1] += y


@njit(cache=True, inline="always")
def _add_rows(J: Any, first: int, count: int, e: Any, pull: float, bend: float, H: Any, g: Any, n: int) -> None:
    for k in range(first, first + count):
        w = pull * e[k]
        for c in range(_LANES):
            g[c] += w * J[k, c]
        for r in range(n):
            v = bend * J[k, r]
            for c in range(_LANES):
                H[r, c] += v * J[k, c]


@njit(parallel=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _sum_pairs(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, w: Any, zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    c2: Any, c3: Any, k2: Any, k3: Any, both: bool, n: int, losses: Any, gradient: Any, normal: Any,
) -> None:  # fmt: skip
    for p in prange(len(start) - 1):
        s, R, t, A, B, f = zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p]
        ray_i, ray_j, X, Y, fwd, bwd = (
            np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3),
        )  # fmt: skip
        L, D, Dj, DY, J = (
            np.zeros((3, _LANES)), np.zeros((3, _LANES)), np.zeros((3, _LANES)), np.zeros((3, _LANES)),
            np.zeros((7, _LANES)),
        )  # fmt: skip
        H, g, e, log = np.zeros((_LANES, _LANES)), np.zeros(_LANES), np.zeros(7), np.zeros(_LANES)
        for m in range(start[p], start[p + 1]):
            if w[m] <= 0.0:
                continue
            a, b = f[0] * di[m] + f[1], f[2] * dj[m] + f[3]
            has_i, has_j = di[m] > 0.0, dj[m] > 0.0
            ok_i, ok_j = has_i and a > 0.0, has_j and b > 0.0
            if ok_i:
                _ray(ui[m], A, ray_i)
                for r in range(3):
                    X[r] = a * ray_i[r]
                _carry(s, R, t, X, fwd)
            if ok_j:
                _ray(uj[m], B, ray_j)
                for r in range(3):
                    Y[r] = b * ray_j[r]
                _carry_back(s, R, t, Y, bwd)
            if n > 0 and ok_i:
                _fill_act(fwd, D)
                if n > 7:
                    _fill_lift(di[m], ray_i, X, A, 7, 11, L)
                    for r in range(3):
                        for c in (7, 8, 11, 12):
                            D[r, c] = s * (R[r, 0] * L[0, c] + R[r, 1] * L[1, c] + R[r, 2] * L[2, c])
            if n > 7 and ok_j:
                _fill_lift(dj[m], ray_j, Y, B, 9, 13, DY)
            if has_i:
                scale = w[m] * c2[p]
                if ok_i and fwd[2] > NEAR * s * a:
                    e[0] = B[0] * fwd[0] / fwd[2] + B[2] - uj[m, 0]
                    e[1] = B[1] * fwd[1] / fwd[2] + B[3] - uj[m, 1]
                    rn = math.sqrt(e[0] * e[0] + e[1] * e[1])
                    if n == 0:
                        losses[p, 0] += scale * _loss(rn, k2)
                    else:
                        loss, slope = _loss_and_slope(rn, k2)
                        losses[p, 0] += scale * loss
                        _project_rows(fwd, B, D, 13, J, 0)
                        slope *= scale
                        _add_rows(J, 0, 2, e, slope / max(rn, 1e-12), slope / max(rn, 0.5 * k2[2]), H, g, n)
                else:
                    losses[p, 0] += scale
            if both and has_j:
                scale = w[m] * c2[p]
                if ok_j and bwd[2] > NEAR * b / s:
                    e[2] = A[0] * bwd[0] / bwd[2] + A[2] - ui[m, 0]
                    e[3] = A[1] * bwd[1] / bwd[2] + A[3] - ui[m, 1]
                    rn = math.sqrt(e[2] * e[2] + e[3] * e[3])
                    if n == 0:
                        losses[p, 0] += scale * _loss(rn, k2)
                    else:
                        loss, slope = _loss_and_slope(rn, k2)
                        losses[p, 0] += scale * loss
                        # L carries [-[I, -[Y]x, Y], lift of Y] before the rotation back into camera i.
                        _fill_act(Y, L)
                        for r in range(3):
                            for c in range(7):
                                L[r, c] = -L[r, c]
                            for c in (9, 10, 13, 14):
                                L[r, c] = DY[r, c]
                        for r in range(3):
                            for c in range(_LANES):
                                v = R[0, r] * L[0, c] + R[1, r] * L[1, c] + R[2, r] * L[2, c]
                                Dj[r, c] = v / s
                            Dj[r, 7] = Dj[r, 8] = Dj[r, 11] = Dj[r, 12] = 0.0
                        _project_rows(bwd, A, Dj, 11, J, 2)
                        slope *= scale
                        _add_rows(J, 2, 2, e, slope / max(rn, 1e-12), slope / max(rn, 0.5 * k2[2]), H, g, n)
                else:
                    losses[p, 0] += scale
            if has_i and has_j:
                scale = w[m] * c3[p]
                if ok_i and ok_j:
                    unit = 1.0 / math.sqrt(s * a * b)
                    for r in range(3):
                        e[4 + r] = (fwd[r] - Y[r]) * unit
                    rn = math.sqrt(e[4] * e[4] + e[5] * e[5] + e[6] * e[6])
                    if n == 0:
                        losses[p, 1] += scale * _loss(rn, k3)
                    else:
                        loss, slope = _loss_and_slope(rn, k3)
                        losses[p, 1] += scale * loss
                        slope *= scale
                        if slope > 0.0:
                            log[6] = 0.5
                            log[7], log[8] = 0.5 * di[m] / a, 0.5 / a
                            log[9], log[10] = 0.5 * dj[m] / b, 0.5 / b
                            for r in range(3):
                                for c in range(_LANES):
                                    J[4 + r, c] = (D[r, c] - DY[r, c]) * unit - e[4 + r] * log[c]
                            _add_rows(J, 4, 3, e, slope / max(rn, 1e-12), slope / max(rn, 0.5 * k3[2]), H, g, n)
                else:
                    losses[p, 1] += scale
        for r in range(n):
            gradient[p, r] = g[r]
            for c in range(n):
                normal[p, r, c] = H[r, c]


@njit(parallel=True, cache=True)
def _pixel_errors(
    start: Any, ui: Any, uj: Any, di: Any, dj: Any, zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any,
    both: bool, step: int, out: Any,
) -> None:  # fmt: skip
    for p in prange(len(start) - 1):
        s, R, t, A, B, f = zs[p], zR[p], zt[p], Ki[p], Kj[p], aff[p]
        X, q = np.empty(3), np.empty(3)
        first = (start[p] + step - 1) // step * step
        for m in range(first, start[p + 1], step):
            if di[m] > 0.0:
                a = f[0] * di[m] + f[1]
                _ray(ui[m], A, X)
                for r in range(3):
                    X[r] *= a
                _carry(s, R, t, X, q)
                if a > 0.0 and q[2] > NEAR * s * a:
                    x = B[0] * q[0] / q[2] + B[2] - uj[m, 0]
                    y = B[1] * q[1] / q[2] + B[3] - uj[m, 1]
                    out[m, 0] = math.sqrt(x * x + y * y)
                else:
                    out[m, 0] = np.inf
            if both and dj[m] > 0.0:
                b = f[2] * dj[m] + f[3]
                _ray(uj[m], B, X)
                for r in range(3):
                    X[r] *= b
                _carry_back(s, R, t, X, q)
                if b > 0.0 and q[2] > NEAR * b / s:
                    x = A[0] * q[0] / q[2] + A[2] - ui[m, 0]
                    y = A[1] * q[1] / q[2] + A[3] - ui[m, 1]
                    out[m, 1] = math.sqrt(x * x + y * y)
                else:
                    out[m, 1] = np.inf

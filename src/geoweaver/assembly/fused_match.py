"""One match under numba: its seven residual rows, their Jacobians and what they add to a pair's sums."""

import math
from typing import Any

from numba import njit

from geoweaver.assembly.residuals import NEAR

LANES = 16
"""Local parameters padded to whole vector registers."""


@njit(cache=True)
def _softplus(x: float) -> float:
    if x > 36.0:
        return x
    return 0.0 if x < -36.0 else math.log1p(math.exp(x))


@njit(cache=True)
def _sigmoid(x: float) -> float:
    return 0.0 if x < -36.0 else 1.0 / (1.0 + math.exp(-x))


@njit(cache=True)
def _loss_and_slope(r: float, k: Any) -> tuple[float, float]:
    """Both from one exponential each, since they share their argument."""
    e = math.log1p(r) if k[3] > 0.5 else r
    low, high = (e - k[1]) / k[2], (e - k[0] - k[1]) / k[2]
    loss = k[2] / k[0] * (_softplus(low) - _softplus(high))
    slope = (_sigmoid(low) - _sigmoid(high)) / k[0]
    return loss, slope / (1.0 + r) if k[3] > 0.5 else slope


@njit(cache=True)
def lift_ray(u: Any, K: Any, out: Any) -> None:
    out[0] = (u[0] - K[2]) / K[0]
    out[1] = (u[1] - K[3]) / K[1]
    out[2] = 1.0


@njit(cache=True)
def carry(s: float, R: Any, t: Any, X: Any, out: Any) -> None:
    for r in range(3):
        out[r] = s * (R[r, 0] * X[0] + R[r, 1] * X[1] + R[r, 2] * X[2]) + t[r]


@njit(cache=True)
def carry_back(s: float, R: Any, t: Any, X: Any, out: Any) -> None:
    x, y, z = X[0] - t[0], X[1] - t[1], X[2] - t[2]
    for r in range(3):
        out[r] = (R[0, r] * x + R[1, r] * y + R[2, r] * z) / s


@njit(cache=True)
def _fill_act(y: Any, D: Any) -> None:
    """D[:, 0:7] = [I, -[y]x, y]."""
    D[0, 0], D[0, 1], D[0, 2], D[0, 3], D[0, 4], D[0, 5], D[0, 6] = 1.0, 0.0, 0.0, 0.0, y[2], -y[1], y[0]
    D[1, 0], D[1, 1], D[1, 2], D[1, 3], D[1, 4], D[1, 5], D[1, 6] = 0.0, 1.0, 0.0, -y[2], 0.0, y[0], y[1]
    D[2, 0], D[2, 1], D[2, 2], D[2, 3], D[2, 4], D[2, 5], D[2, 6] = 0.0, 0.0, 1.0, y[1], -y[0], 0.0, y[2]


@njit(cache=True)
def _fill_lift(raw: float, ray: Any, X: Any, K: Any, depth: int, focal: int, D: Any) -> None:
    """D's columns for (a, b) and (fx, fy) of a lifted point in its own camera."""
    for r in range(3):
        D[r, depth] = raw * ray[r]
        D[r, depth + 1] = ray[r]
        D[r, focal] = 0.0
        D[r, focal + 1] = 0.0
    D[0, focal] = -X[0] / K[0]
    D[1, focal + 1] = -X[1] / K[1]


@njit(cache=True)
def _project_rows(p: Any, K: Any, D: Any, focal: int, J: Any, row: int) -> None:
    """Two rows of J: the projection of p differentiated through D = dp."""
    iz = 1.0 / p[2]
    x, y = p[0] * iz, p[1] * iz
    for c in range(LANES):
        J[row, c] = K[0] * iz * (D[0, c] - x * D[2, c])
        J[row + 1, c] = K[1] * iz * (D[1, c] - y * D[2, c])
    J[row, focal] += x
    J[row + 1, focal + 1] += y


@njit(cache=True)
def add_match(J: Any, e: Any, pull: Any, bend: Any, H: Any, g: Any, rows: int, lanes: int) -> None:
    """g += sum_k pull_k e_k J_k and H += sum_k bend_k J_k^T J_k over the seven residual rows of one match."""
    for k in range(7):
        v = pull[k] * e[k]
        for c in range(lanes):
            g[c] += v * J[k, c]
    for r in range(rows):
        v0, v1, v2, v3 = bend[0] * J[0, r], bend[1] * J[1, r], bend[2] * J[2, r], bend[3] * J[3, r]
        v4, v5, v6 = bend[4] * J[4, r], bend[5] * J[5, r], bend[6] * J[6, r]
        for c in range(lanes):
            flat = v0 * J[0, c] + v1 * J[1, c] + v2 * J[2, c] + v3 * J[3, c]
            H[r, c] += flat + v4 * J[4, c] + v5 * J[5, c] + v6 * J[6, c]


@njit(cache=True)
def _weigh(rn: float, scale: float, k: Any, first: int, last: int, pull: Any, bend: Any) -> float:
    """Sets the rows' pull (gradient) and bend (curvature) and returns the loss of one residual."""
    loss: float
    loss, slope = _loss_and_slope(rn, k)
    slope *= scale
    for row in range(first, last):
        pull[row], bend[row] = slope / max(rn, 1e-12), slope / max(rn, 0.5 * k[2])
    return scale * loss


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def match_rows(
    ui: Any, uj: Any, di: float, dj: float, w2: float, w3: float,
    s: float, R: Any, t: Any, A: Any, B: Any, f: Any, k2: Any, k3: Any, both: bool, n: int,
    scratch: Any, D: Any, Dj: Any, DY: Any, J: Any, e: Any, pull: Any, bend: Any,
) -> tuple[float, float]:  # fmt: skip
    """The seven residual rows of one match (two forward, two backward, three in space) and its two losses."""
    ray_i, ray_j, X, Y, fwd, bwd = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    loss2, loss3 = 0.0, 0.0
    for k in range(7):
        pull[k] = bend[k] = 0.0
    a, b = f[0] * di + f[1], f[2] * dj + f[3]
    has_i, has_j = di > 0.0, dj > 0.0
    ok_i, ok_j = has_i and a > 0.0, has_j and b > 0.0
    if ok_i:
        lift_ray(ui, A, ray_i)
        for r in range(3):
            X[r] = a * ray_i[r]
        carry(s, R, t, X, fwd)
    if ok_j:
        lift_ray(uj, B, ray_j)
        for r in range(3):
            Y[r] = b * ray_j[r]
        carry_back(s, R, t, Y, bwd)
    if n > 0 and ok_i:
        _forward_motion(di, ray_i, X, fwd, s, R, A, n, Dj, D)
    if n > 7 and ok_j:
        _fill_lift(dj, ray_j, Y, B, 9, 13, DY)
    if has_i:
        if ok_i and fwd[2] > NEAR * s * a:
            e[0] = B[0] * fwd[0] / fwd[2] + B[2] - uj[0]
            e[1] = B[1] * fwd[1] / fwd[2] + B[3] - uj[1]
            loss2 += _weigh(math.sqrt(e[0] * e[0] + e[1] * e[1]), w2, k2, 0, 2, pull, bend)
            if n > 0:
                _project_rows(fwd, B, D, 13, J, 0)
        else:
            loss2 += w2
    if both and has_j:
        if ok_j and bwd[2] > NEAR * b / s:
            e[2] = A[0] * bwd[0] / bwd[2] + A[2] - ui[0]
            e[3] = A[1] * bwd[1] / bwd[2] + A[3] - ui[1]
            loss2 += _weigh(math.sqrt(e[2] * e[2] + e[3] * e[3]), w2, k2, 2, 4, pull, bend)
            if n > 0:
                _backward_motion(Y, DY, s, R, Dj)
                _project_rows(bwd, A, Dj, 11, J, 2)
        else:
            loss2 += w2
    if has_i and has_j:
        if ok_i and ok_j:
            unit = 1.0 / math.sqrt(s * a * b)
            for r in range(3):
                e[4 + r] = (fwd[r] - Y[r]) * unit
            rn = math.sqrt(e[4] * e[4] + e[5] * e[5] + e[6] * e[6])
            loss3 += _weigh(rn, w3, k3, 4, 7, pull, bend)
            if n > 0:
                for r in range(3):
                    for c in range(LANES):
                        J[4 + r, c] = (D[r, c] - DY[r, c]) * unit
                    J[4 + r, 6] -= e[4 + r] * 0.5
                    J[4 + r, 7] -= e[4 + r] * 0.5 * di / a
                    J[4 + r, 8] -= e[4 + r] * 0.5 / a
                    J[4 + r, 9] -= e[4 + r] * 0.5 * dj / b
                    J[4 + r, 10] -= e[4 + r] * 0.5 / b
        else:
            loss3 += w3
    return loss2, loss3


@njit(cache=True)
def _forward_motion(
    raw: float, ray: Any, X: Any, fwd: Any, s: float, R: Any, K: Any, n: int, L: Any, D: Any
) -> None:
    """D = d(Z X)/d(local parameters); L is scratch."""
    _fill_act(fwd, D)
    if n > 7:
        _fill_lift(raw, ray, X, K, 7, 11, L)
        for r in range(3):
            for c in (7, 8, 11, 12):
                D[r, c] = s * (R[r, 0] * L[0, c] + R[r, 1] * L[1, c] + R[r, 2] * L[2, c])


@njit(cache=True)
def _backward_motion(Y: Any, DY: Any, s: float, R: Any, D: Any) -> None:
    """D = d(Z^-1 Y)/d(local parameters): R^T (dY - [I, -[Y]x, Y] delta) / s."""
    for r in range(3):
        x, y, z = R[0, r] / s, R[1, r] / s, R[2, r] / s
        D[r, 0], D[r, 1], D[r, 2] = -x, -y, -z
        D[r, 3] = z * -Y[1] + y * Y[2]
        D[r, 4] = x * -Y[2] + z * Y[0]
        D[r, 5] = y * -Y[0] + x * Y[1]
        D[r, 6] = -(x * Y[0] + y * Y[1] + z * Y[2])
        D[r, 7] = D[r, 8] = D[r, 11] = D[r, 12] = 0.0
        for c in (9, 10, 13, 14):
            D[r, c] = x * DY[0, c] + y * DY[1, c] + z * DY[2, c]

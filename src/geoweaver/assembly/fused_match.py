"""One match under numba: its residual rows, weighted, as columns of J; and the products of such columns.

A column holds the derivative of one residual component by the pair's local parameters and, below them, the
component itself, all times the root of its curvature: J J^T is the normal matrix and, in its last column, the
gradient. Vectors are tuples and so live in registers.
"""

import math
from typing import Any

from numba import njit

from geoweaver.assembly.residuals import NEAR

FAST = {"contract", "reassoc", "nsz"}
"""Freedoms of rounding: fused and reordered sums. Only for functions that call none: what is first compiled
for such a caller inherits them, and the bytes would depend on what was compiled before."""


@njit(cache=True, error_model="numpy")
def _loss_and_slope(r: float, k: Any) -> tuple[float, float]:
    """Softplus and sigmoid at both ends of the thresholds, from one exponential each."""
    e = math.log(1.0 + r) if k[3] > 0.5 else r
    low, high = (e - k[1]) / k[2], (e - k[0] - k[1]) / k[2]
    below = math.exp(-abs(low)) if abs(low) < 36.0 else 0.0
    loss = max(low, 0.0) + math.log(1.0 + below)
    slope = (1.0 if low > 0.0 else below) / (1.0 + below)
    if high > -36.0:  # nearly no match comes near the last threshold
        above = math.exp(-abs(high)) if high < 36.0 else 0.0
        loss -= max(high, 0.0) + math.log(1.0 + above)
        slope -= (1.0 if high > 0.0 else above) / (1.0 + above)
    slope /= k[0]
    return k[2] / k[0] * loss, slope / (1.0 + r) if k[3] > 0.5 else slope


@njit(cache=True, error_model="numpy")
def weigh(r: float, share: float, k: Any) -> tuple[float, float, float]:
    """Loss of a residual of norm r, root of its curvature, and how many times more it pulls than it bends."""
    loss, slope = _loss_and_slope(r, k)
    held = max(r, 0.5 * k[2])
    return share * loss, math.sqrt(max(share * slope, 0.0) / held), held / max(r, 1e-12)


@njit(cache=True, error_model="numpy")
def pair_constants(zs: Any, zR: Any, zt: Any, Ki: Any, Kj: Any, aff: Any, p: int) -> Any:
    """Scale, rotation, translation, both intrinsics and the affine depths of a pair, as tuples."""
    R = (
        (zR[p, 0, 0], zR[p, 0, 1], zR[p, 0, 2]),
        (zR[p, 1, 0], zR[p, 1, 1], zR[p, 1, 2]),
        (zR[p, 2, 0], zR[p, 2, 1], zR[p, 2, 2]),
    )
    A, B = (Ki[p, 0], Ki[p, 1], Ki[p, 2], Ki[p, 3]), (Kj[p, 0], Kj[p, 1], Kj[p, 2], Kj[p, 3])
    return zs[p], R, (zt[p, 0], zt[p, 1], zt[p, 2]), A, B, (aff[p, 0], aff[p, 1], aff[p, 2], aff[p, 3])


@njit(cache=True, error_model="numpy")
def lift_ray(u: Any, K: Any) -> Any:
    return (u[0] - K[2]) / K[0], (u[1] - K[3]) / K[1], 1.0


@njit(cache=True, error_model="numpy")
def turn(s: float, R: Any, x: Any) -> Any:
    """s R x."""
    return (
        s * (R[0][0] * x[0] + R[0][1] * x[1] + R[0][2] * x[2]),
        s * (R[1][0] * x[0] + R[1][1] * x[1] + R[1][2] * x[2]),
        s * (R[2][0] * x[0] + R[2][1] * x[1] + R[2][2] * x[2]),
    )


@njit(cache=True, error_model="numpy")
def turn_back(s: float, R: Any, x: Any) -> Any:
    """s R^T x."""
    return (
        s * (R[0][0] * x[0] + R[1][0] * x[1] + R[2][0] * x[2]),
        s * (R[0][1] * x[0] + R[1][1] * x[1] + R[2][1] * x[2]),
        s * (R[0][2] * x[0] + R[1][2] * x[1] + R[2][2] * x[2]),
    )


@njit(cache=True, error_model="numpy")
def scaled(s: float, x: Any) -> Any:
    return s * x[0], s * x[1], s * x[2]


@njit(cache=True, error_model="numpy")
def carry(s: float, R: Any, t: Any, X: Any) -> Any:
    """Z X."""
    p = turn(s, R, X)
    return p[0] + t[0], p[1] + t[1], p[2] + t[2]


@njit(cache=True, error_model="numpy")
def carry_back(s: float, R: Any, t: Any, Y: Any) -> Any:
    """Z^-1 Y."""
    return turn_back(1.0 / s, R, (Y[0] - t[0], Y[1] - t[1], Y[2] - t[2]))


@njit(cache=True, error_model="numpy")
def _put_motion(J: Any, col: int, h: Any, y: Any) -> None:
    """h^T [I, -[y]x, y]: what the left increment of Z does to y, seen along h."""
    J[0, col], J[1, col], J[2, col] = h[0], h[1], h[2]
    J[3, col] = y[1] * h[2] - y[2] * h[1]
    J[4, col] = y[2] * h[0] - y[0] * h[2]
    J[5, col] = y[0] * h[1] - y[1] * h[0]
    J[6, col] = h[0] * y[0] + h[1] * y[1] + h[2] * y[2]


@njit(cache=True, error_model="numpy")
def _put_lens(J: Any, col: int, h: Any, raw: float, depth: float, ray: Any, K: Any, row: int, n: int) -> None:
    """What affine depth (rows `row`, `row` + 1) and focals (4 further down) do to a lifted point, along h."""
    along = h[0] * ray[0] + h[1] * ray[1] + h[2]
    J[row, col], J[row + 1, col] = raw * along, along
    if n > 11:
        focal = 11 if row == 7 else 13
        J[focal, col] = -depth * h[0] * ray[0] / K[0]
        J[focal + 1, col] = -depth * h[1] * ray[1] / K[1]


@njit(cache=True, error_model="numpy")
def _put_view(J: Any, col: int, x: float, y: float, other: int, focal: int, n: int) -> None:
    """Two columns' rows of the camera that looks: its depth does not matter, its focals do."""
    for c in (col, col + 1):
        if n > 7:
            J[other, c] = J[other + 1, c] = 0.0
        if n > 11:
            J[focal, c] = J[focal + 1, c] = 0.0
    if n > 11:
        J[focal, col], J[focal + 1, col + 1] = x, y


@njit(cache=True, error_model="numpy")
def forward_rows(
    raw: float, a: float, ray: Any, p: Any, u: Any, share: float, s: float, R: Any, A: Any, B: Any,
    k: Any, n: int, J: Any, col: int,
) -> tuple[float, float]:  # fmt: skip
    """Pixel i carried into j: loss and root of curvature; two columns of J unless the root is 0."""
    if a <= 0.0 or p[2] <= NEAR * s * a:
        return share, 0.0
    iz = 1.0 / p[2]
    x, y = p[0] * iz, p[1] * iz
    e0, e1 = B[0] * x + B[2] - u[0], B[1] * y + B[3] - u[1]
    loss, root, stretch = weigh(math.sqrt(e0 * e0 + e1 * e1), share, k)
    if n > 0 and root > 0.0:
        J[n, col], J[n, col + 1] = root * stretch * e0, root * stretch * e1
        fx, fy = root * B[0] * iz, root * B[1] * iz
        g, h = (fx, 0.0, -fx * x), (0.0, fy, -fy * y)
        _put_motion(J, col, g, p)
        _put_motion(J, col + 1, h, p)
        if n > 7:
            _put_lens(J, col, turn_back(s, R, g), raw, a, ray, A, 7, n)
            _put_lens(J, col + 1, turn_back(s, R, h), raw, a, ray, A, 7, n)
            _put_view(J, col, root * x, root * y, 9, 13, n)
    return loss, root


@njit(cache=True, error_model="numpy")
def backward_rows(
    raw: float, b: float, ray: Any, p: Any, u: Any, share: float, s: float, R: Any, A: Any, B: Any,
    k: Any, n: int, J: Any, col: int,
) -> tuple[float, float]:  # fmt: skip
    """Pixel j carried back into i, as `forward_rows`."""
    if b <= 0.0 or p[2] <= NEAR * b / s:
        return share, 0.0
    iz = 1.0 / p[2]
    x, y = p[0] * iz, p[1] * iz
    e0, e1 = A[0] * x + A[2] - u[0], A[1] * y + A[3] - u[1]
    loss, root, stretch = weigh(math.sqrt(e0 * e0 + e1 * e1), share, k)
    if n > 0 and root > 0.0:
        J[n, col], J[n, col + 1] = root * stretch * e0, root * stretch * e1
        fx, fy = root * A[0] * iz, root * A[1] * iz
        g, h = turn(1.0 / s, R, (fx, 0.0, -fx * x)), turn(1.0 / s, R, (0.0, fy, -fy * y))
        Y = scaled(b, ray)
        _put_motion(J, col, scaled(-1.0, g), Y)
        _put_motion(J, col + 1, scaled(-1.0, h), Y)
        if n > 7:
            _put_lens(J, col, g, raw, b, ray, B, 9, n)
            _put_lens(J, col + 1, h, raw, b, ray, B, 9, n)
            _put_view(J, col, root * x, root * y, 7, 11, n)
    return loss, root


@njit(cache=True, error_model="numpy")
def space_rows(
    raw_i: float, raw_j: float, a: float, b: float, ray_i: Any, ray_j: Any, p: Any, share: float,
    s: float, R: Any, A: Any, B: Any, k: Any, n: int, J: Any, col: int,
) -> tuple[float, float]:  # fmt: skip
    """Both lifted points apart, over their depth: as `forward_rows`, but three columns."""
    if a <= 0.0 or b <= 0.0:
        return share, 0.0
    unit = 1.0 / math.sqrt(s * a * b)
    e = (unit * (p[0] - b * ray_j[0]), unit * (p[1] - b * ray_j[1]), unit * (p[2] - b))
    loss, root, stretch = weigh(math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2]), share, k)
    if n > 0 and root > 0.0:
        f = root * unit
        _put_apart(J, col, (f, 0.0, 0.0), raw_i, raw_j, a, b, ray_i, ray_j, p, root * e[0], s, R, A, B, n)
        _put_apart(J, col + 1, (0.0, f, 0.0), raw_i, raw_j, a, b, ray_i, ray_j, p, root * e[1], s, R, A, B, n)
        _put_apart(J, col + 2, (0.0, 0.0, f), raw_i, raw_j, a, b, ray_i, ray_j, p, root * e[2], s, R, A, B, n)
        for r in range(3):
            J[n, col + r] = root * stretch * e[r]
    return loss, root


@njit(cache=True, error_model="numpy")
def _put_apart(
    J: Any, col: int, h: Any, raw_i: float, raw_j: float, a: float, b: float, ray_i: Any, ray_j: Any, p: Any,
    e: float, s: float, R: Any, A: Any, B: Any, n: int,
) -> None:  # fmt: skip
    """One column of `space_rows`; its unit, the root of s a b, grows with scale and depths."""
    _put_motion(J, col, h, p)
    J[6, col] -= 0.5 * e
    if n > 7:
        _put_lens(J, col, turn_back(s, R, h), raw_i, a, ray_i, A, 7, n)
        _put_lens(J, col, scaled(-1.0, h), raw_j, b, ray_j, B, 9, n)
        J[7, col] -= 0.5 * e * raw_i / a
        J[8, col] -= 0.5 * e / a
        J[9, col] -= 0.5 * e * raw_j / b
        J[10, col] -= 0.5 * e / b


@njit(cache=True, error_model="numpy")
def match_rows(
    ui: Any, uj: Any, di: float, dj: float, w2: float, w3: float,
    s: float, R: Any, t: Any, A: Any, B: Any, f: Any, k2: Any, k3: Any, both: bool, n: int, J: Any, col: int,
) -> tuple[float, float, Any]:  # fmt: skip
    """Loss in pixels and in space of one match, whose rows fill J from `col` on, and their three roots."""
    a, b = f[0] * di + f[1], f[2] * dj + f[3]
    ray_i, ray_j = lift_ray(ui, A), lift_ray(uj, B)
    p = carry(s, R, t, scaled(a, ray_i))
    loss2, loss3, back, root2, root_back, root3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if di > 0.0:
        loss2, root2 = forward_rows(di, a, ray_i, p, uj, w2, s, R, A, B, k2, n, J, col)
    if both and dj > 0.0:
        q, to = carry_back(s, R, t, scaled(b, ray_j)), col + columns_of((root2, 0.0, 0.0))
        back, root_back = backward_rows(dj, b, ray_j, q, ui, w2, s, R, A, B, k2, n, J, to)
    if w3 > 0.0 and di > 0.0 and dj > 0.0:
        to = col + columns_of((root2, root_back, 0.0))
        loss3, root3 = space_rows(di, dj, a, b, ray_i, ray_j, p, w3, s, R, A, B, k3, n, J, to)
    return loss2 + back, loss3, (root2, root_back, root3)


@njit(cache=True, error_model="numpy")
def columns_of(roots: Any) -> int:
    """How many columns a match with these roots fills."""
    return (2 if roots[0] > 0.0 else 0) + (2 if roots[1] > 0.0 else 0) + (3 if roots[2] > 0.0 else 0)


@njit(cache=True, fastmath=FAST, error_model="numpy")
def add_products(J: Any, cols: int, H: Any) -> None:
    """H += J J^T over the first columns of J, two rows by two rows, from the diagonal to the right.

    The number of rows must be even: 7, 11 or 15 parameters, and the residual.
    """
    for r in range(0, len(H), 2):
        for c in range(r, len(H), 2):
            h00 = h01 = h10 = h11 = 0.0
            for k in range(cols):
                h00 += J[r, k] * J[c, k]
                h01 += J[r, k] * J[c + 1, k]
                h10 += J[r + 1, k] * J[c, k]
                h11 += J[r + 1, k] * J[c + 1, k]
            H[r, c] += h00
            H[r, c + 1] += h01
            H[r + 1, c] += h10
            H[r + 1, c + 1] += h11


@njit(cache=True, fastmath=FAST, error_model="numpy")
def add_pulls(J: Any, cols: int, H: Any) -> None:
    """Only the last column of `add_products`: the gradient."""
    last = len(H) - 1
    for r in range(last):
        h = 0.0
        for k in range(cols):
            h += J[r, k] * J[last, k]
        H[r, last] += h

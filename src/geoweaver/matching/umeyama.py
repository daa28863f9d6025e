"""The weighted closed-form similarity of a few points, compiled: no call into a linear algebra library."""

import math
from typing import Any

import numpy as np
from numba import njit

_SWEEPS = 12
"""Jacobi sweeps at most: 3 x 3 matrices need four to six."""


@njit(cache=True)
def umeyama(source: Any, target: Any, weight: Any) -> Any:
    """(scale, rotation, translation) of target_from_source; points on a line give some similarity."""
    total = max(np.sum(weight), 1e-300)
    mean_a, mean_b = np.zeros(3), np.zeros(3)
    for n in range(len(source)):
        for r in range(3):
            mean_a[r] += weight[n] / total * source[n, r]
            mean_b[r] += weight[n] / total * target[n, r]
    covariance, variance = np.zeros((3, 3)), 0.0
    for n in range(len(source)):
        share = weight[n] / total
        for c in range(3):
            a = source[n, c] - mean_a[c]
            variance += share * a * a
            for r in range(3):
                covariance[r, c] += share * (target[n, r] - mean_b[r]) * a
    rotation, trace = nearest_rotation(covariance)
    scale = max(trace / max(variance, 1e-300), 1e-300)
    for r in range(3):
        mean_b[r] -= scale * (
            rotation[r, 0] * mean_a[0] + rotation[r, 1] * mean_a[1] + rotation[r, 2] * mean_a[2]
        )
    return scale, rotation, mean_b


@njit(cache=True)
def nearest_rotation(matrix: Any) -> Any:
    """The rotation R with the largest trace(R^T M), and that trace."""
    turned, v = _orthogonal_columns(matrix)
    size = np.empty(3)
    for c in range(3):
        size[c] = math.sqrt(turned[0, c] ** 2 + turned[1, c] ** 2 + turned[2, c] ** 2)
    least = np.argmin(size)
    first, second = (least + 1) % 3, (least + 2) % 3
    if size[second] > size[first]:
        first, second = second, first
    u = np.zeros((3, 3))
    _fill_unit(turned[:, first], u, 0)
    _fill_unit(turned[:, second], u, 1)
    _fill_cross(u)
    w = np.empty((3, 3))
    w[0], w[1] = v[:, first], v[:, second]
    _fill_cross(w)
    rotation, trace = np.empty((3, 3)), size[first] + size[second]
    for r in range(3):
        for c in range(3):
            rotation[r, c] = u[0, r] * w[0, c] + u[1, r] * w[1, c] + u[2, r] * w[2, c]
            trace += u[2, r] * matrix[r, c] * w[2, c]
    return rotation, trace


@njit(cache=True)
def _orthogonal_columns(matrix: Any) -> Any:
    """M V with orthogonal columns, and the orthogonal V (one-sided Jacobi)."""
    work, v = matrix.copy(), np.eye(3)
    for _ in range(_SWEEPS):
        largest = 0.0
        for p, q in ((0, 1), (0, 2), (1, 2)):
            alpha, beta, gamma = 0.0, 0.0, 0.0
            for r in range(3):
                alpha += work[r, p] * work[r, p]
                beta += work[r, q] * work[r, q]
                gamma += work[r, p] * work[r, q]
            if abs(gamma) <= 1e-17 * math.sqrt(alpha * beta) or gamma == 0.0:
                continue
            largest = max(largest, abs(gamma) / math.sqrt(alpha * beta))
            zeta = (beta - alpha) / (2.0 * gamma)
            t = (1.0 if zeta >= 0 else -1.0) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
            c = 1.0 / math.sqrt(1.0 + t * t)
            s = c * t
            for r in range(3):
                work[r, p], work[r, q] = c * work[r, p] - s * work[r, q], s * work[r, p] + c * work[r, q]
                v[r, p], v[r, q] = c * v[r, p] - s * v[r, q], s * v[r, p] + c * v[r, q]
        if largest < 1e-15:
            break
    return work, v


@njit(cache=True)
def _fill_unit(x: Any, rows: Any, n: int) -> None:
    """Row n: x without its part along row 0, of length 1; any such direction where nothing is left."""
    length = math.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)
    left = _fill_orthogonal(x[0], x[1], x[2], rows, n)
    if not (left > 1e-9 * length and left > 0.0):
        other = np.zeros(3)
        other[np.argmin(np.abs(rows[0])) if n else 0] = 1.0
        left = _fill_orthogonal(other[0], other[1], other[2], rows, n)
    for r in range(3):
        rows[n, r] /= left


@njit(cache=True)
def _fill_orthogonal(x: float, y: float, z: float, rows: Any, n: int) -> float:
    """Row n: a vector without its part along row 0, if that is another; what is left of its length."""
    along = x * rows[0, 0] + y * rows[0, 1] + z * rows[0, 2] if n else 0.0
    rows[n, 0], rows[n, 1], rows[n, 2] = x, y, z
    if n:
        for r in range(3):
            rows[n, r] -= along * rows[0, r]
    return math.sqrt(rows[n, 0] ** 2 + rows[n, 1] ** 2 + rows[n, 2] ** 2)


@njit(cache=True)
def _fill_cross(rows: Any) -> None:
    """Row 2: the cross product of rows 0 and 1."""
    a, b = rows[0], rows[1]
    rows[2, 0] = a[1] * b[2] - a[2] * b[1]
    rows[2, 1] = a[2] * b[0] - a[0] * b[2]
    rows[2, 2] = a[0] * b[1] - a[1] * b[0]

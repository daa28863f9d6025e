"""How alike two views show a slanted window, for many pixels of a row at once, compiled.

What is read out of order is read in loops of its own, so that all others become vector instructions.
"""

from typing import Any

import numpy as np
from numba import njit

RADIUS = 2
"""Pixels around the middle that are compared."""
SIDE = 2 * RADIUS + 1
_EDGE = np.float32(15.0)
"""Difference in brightness at which a pixel of the window counts e times less: another surface."""
_NOISE = np.float32(1.0)
"""Variance of brightness that means nothing, in squared grey levels."""
_GAIN = np.float32(3.0)
"""Views may differ in contrast by up to this factor."""
UNSEEN = np.float32(1e6)
"""More than any difference: a source that does not show the whole window."""


@njit(cache=True, nogil=True, error_model="numpy")
def window_weights(image: Any, x: int, y: int, weights: Any) -> None:
    """Weights of the pixels around one, together one: near ones of its own brightness."""
    total = np.float32(0)
    for j in range(SIDE):
        for i in range(SIDE):
            away = np.float32((i - RADIUS) ** 2 + (j - RADIUS) ** 2) / np.float32(2 * RADIUS**2)
            other = abs(image[y + j - RADIUS, x + i - RADIUS] - image[y, x]) / _EDGE
            weight = np.exp(-away - other)
            weights[SIDE * j + i, x] = weight
            total += weight
    for k in range(SIDE * SIDE):
        weights[k, x] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def compare_windows(
    image: Any, source: Any, M: Any, v: Any, camera: Any, y: int, column: Any, trial: Any, slope: Any,
    weights: Any, verdict: Any,
) -> None:  # fmt: skip
    """For some pixels of a row: one minus the windows' correlation, its pull on depth and its information."""
    count = len(column)
    own = np.empty((3, count), np.float32)
    for n in range(count):
        x = column[n]
        own[0, n], own[1, n], own[2, n] = trial[x], slope[x, 0], slope[x, 1]
    at, place = np.empty(count, np.int32), np.empty((4, count), np.float32)
    seen, sums = np.ones(count, np.bool_), np.zeros((9, count), np.float32)
    read = np.empty((4, count), np.float32)
    flat, columns = source.ravel(), source.shape[1]
    for j in range(SIDE):
        for k in range(SIDE):
            _targets(source.shape, M, v, camera, column, y, k - RADIUS, j - RADIUS, own, at, place)
            here = image[y + j - RADIUS]
            _read(flat, columns, at, place, here, weights[SIDE * j + k], column, k - RADIUS, seen, read)
            _add(read, sums)
    for n in range(count):
        x, m = column[n], sums[:, n]
        verdict[0, x], verdict[1, x], verdict[2, x] = UNSEEN, np.float32(0), np.float32(0)
        if seen[n]:
            verdict[0, x], verdict[1, x], verdict[2, x] = _verdict(
                m[3] - m[0] * m[0], m[4] - m[1] * m[1], m[5] - m[2] * m[2],
                m[6] - m[0] * m[1], m[7] - m[0] * m[2], m[8] - m[1] * m[2],
            )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _targets(
    shape: Any, M: Any, v: Any, camera: Any, column: Any, y: int, i: int, j: int, own: Any, at: Any,
    place: Any,
) -> None:  # fmt: skip
    """Where a source shows the windows' pixel (i, j): the pixel above left of it, or -1.

    `place` gets how far it is beside that pixel, and how it moves with inverse depth.
    """
    fx, fy, cx, cy = camera
    half = np.float32(0.5)
    last, bottom, columns = np.float32(shape[1] - 1), np.float32(shape[0] - 1), np.int32(shape[1])
    ry = (np.float32(y + j) + half - cy) / fy
    a, b, c = M[0, 1] * ry + M[0, 2], M[1, 1] * ry + M[1, 2], M[2, 1] * ry + M[2, 2]
    a1, b1, c1, v0, v1, v2 = M[0, 0], M[1, 0], M[2, 0], v[0], v[1], v[2]
    across, down = np.float32(i), np.float32(j)
    for n in range(len(column)):
        rx = (np.float32(column[n] + i) + half - cx) / fx
        p = own[0, n] + own[1, n] * across + own[2, n] * down
        z = c1 * rx + c + v2 * p
        to = np.float32(1) / z
        u, w = fx * (a1 * rx + a + v0 * p) * to, fy * (b1 * rx + b + v1 * p) * to
        sx, sy = u + cx - half, w + cy - half
        inside = (z > 0) & (sx >= 0) & (sy >= 0) & (sx < last) & (sy < bottom)
        sx = sx if inside else np.float32(0)
        sy = sy if inside else np.float32(0)
        left, top = np.int32(sx), np.int32(sy)
        at[n] = top * columns + left if inside else np.int32(-1)
        place[0, n], place[1, n] = sx - np.float32(left), sy - np.float32(top)
        place[2, n], place[3, n] = (fx * v0 - u * v2) * to, (fy * v1 - w * v2) * to


@njit(cache=True, nogil=True)
def _read(
    flat: Any, columns: int, at: Any, place: Any, here: Any, weight: Any, column: Any, i: int, seen: Any,
    read: Any,
) -> None:  # fmt: skip
    """Weight, own brightness, brightness between four pixels of the source and its slope along depth."""
    for n in range(len(at)):
        if at[n] < 0:
            seen[n] = False
            continue
        k = np.uint64(at[n])
        under, next_ = k + np.uint64(columns), np.uint64(1)
        a, b, c, d = flat[k], flat[k + next_], flat[under], flat[under + next_]
        p, r = place[0, n], place[1, n]
        high, low = a + p * (b - a), c + p * (d - c)
        right, below = (b - a) + r * ((d - c) - (b - a)), low - high
        read[0, n], read[1, n] = weight[column[n]], here[column[n] + i]
        read[2, n], read[3, n] = high + r * (low - high), right * place[2, n] + below * place[3, n]


@njit(cache=True, nogil=True)
def _add(read: Any, sums: Any) -> None:
    """Weighted sums of own brightness, the other's, its slope, their squares and products."""
    for n in range(read.shape[1]):
        w, o, i, g = read[0, n], read[1, n], read[2, n], read[3, n]
        sums[0, n] += w * o
        sums[1, n] += w * i
        sums[2, n] += w * g
        sums[3, n] += w * o * o
        sums[4, n] += w * i * i
        sums[5, n] += w * g * g
        sums[6, n] += w * o * i
        sums[7, n] += w * o * g
        sums[8, n] += w * i * g


@njit(cache=True, nogil=True, error_model="numpy")
def _verdict(own: Any, other: Any, slope: Any, both: Any, own_slope: Any, other_slope: Any) -> Any:
    """From variances and covariances of own, other's brightness and the slope of the other along q."""
    gain = min(max(both / (other + _NOISE), 1 / _GAIN), _GAIN)
    correlation = both / np.sqrt((own + _NOISE) * (other + _NOISE))
    noise = max(own - 2 * gain * both + gain * gain * other, _NOISE)
    pull = gain * (own_slope - gain * other_slope) / noise
    return np.float32(1) - correlation, pull, gain * gain * slope / noise

"""Matches settle below a pixel: windows of both images are laid on one another, cubic splines between pixels.

Dense flow is smooth and searched on shrunk images: it leans towards what its surroundings do, and what
all matches lean by alike becomes drift of scale.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from numba import njit

RADIUS = 5
"""Pixels around a match that are compared."""
_SIDE = 2 * RADIUS + 1
_STEPS = 5
"""Newton steps at most."""
_ENOUGH = 0.01
"""Steps below so many pixels end the search."""
_FARTHEST = 1.5
"""Pixels from its beginning beyond which a match is lost: it stays where flow put it."""
_NOISE = 1.0
"""Variance of brightness that means nothing, in squared grey levels."""
_FLOW = 0.7
"""Pixels to which flow is right: where there is little texture it knows better than one window."""
_ALIKE = 4.0
"""Pixels that err as one: brightness errs alike in neighbours."""
_LEAST_GAIN = 1e-5
"""By how much the correlation must grow for a step to count."""
_SUMS = 15


def settle(
    grey_i: UInt8[np.ndarray, "H W"],
    grey_j: UInt8[np.ndarray, "h w"],
    pixel_i: Float[np.ndarray, "n 2"],
    pixel_j: Float[np.ndarray, "n 2"],
    shape: Float[np.ndarray, "n 2 2"],
) -> Float[np.ndarray, "n 2"]:
    """Where whole pixels of i lie in j, from places that are right to a pixel or so.

    `shape` is how j's pixel moves with i's; positions count from the first pixel's centre.
    """
    from scipy.ndimage import spline_filter

    own = grey_i.astype(np.float32)
    down, right = np.gradient(own)
    slopes = np.stack([right, down])
    spline = spline_filter(grey_j, order=3, mode="mirror", output=np.float32)
    settled = pixel_j.copy()
    _settle(own, slopes, spline, np.round(pixel_i).astype(np.int64), np.ascontiguousarray(shape), settled)
    return settled


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(own: Any, slopes: Any, spline: Any, pixel: Any, shape: Any, settled: Any) -> None:
    height, width = own.shape
    window, sums = np.empty((4, _SIDE * _SIDE)), np.empty(_SUMS)
    for n in range(len(pixel)):
        x, y = pixel[n]
        A = shape[n]
        inside = min(x, y) >= RADIUS and x < width - RADIUS and y < height - RADIUS
        if inside and A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0] > 0:
            _open_window(own, slopes, x, y, A, window)
            _search(spline, window, A, settled[n], sums)


@njit(cache=True, nogil=True, error_model="numpy")
def _open_window(own: Any, slopes: Any, x: int, y: int, A: Any, window: Any) -> None:
    """Weight, brightness, and its slopes along j's axes, for each pixel around a match."""
    a, b, c, d = A[0, 0], A[0, 1], A[1, 0], A[1, 1]
    size = a * d - b * c
    k = 0
    for j in range(-RADIUS, RADIUS + 1):
        for i in range(-RADIUS, RADIUS + 1):
            right, below = float(slopes[0, y + j, x + i]), float(slopes[1, y + j, x + i])
            window[0, k] = np.exp(-2.0 * (i * i + j * j) / (RADIUS * RADIUS))
            window[1, k] = own[y + j, x + i]
            window[2, k] = (d * right - c * below) / size
            window[3, k] = (a * below - b * right) / size
            k += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _search(spline: Any, window: Any, A: Any, place: Any, sums: Any) -> None:
    """Move a place in j as long as the windows look more alike."""
    u, v, best = place[0], place[1], -2.0
    best_u, best_v = u, v
    for _ in range(_STEPS + 1):
        if not _compare(spline, u, v, A, window, sums):
            break
        alike, right, below = _verdict(sums, u - place[0], v - place[1])
        if alike < best + _LEAST_GAIN:
            break
        best, best_u, best_v = alike, u, v
        length = max(abs(right), abs(below))
        if length < _ENOUGH:
            break
        shorter = 1 / max(length, 1.0)
        u, v = u + shorter * right, v + shorter * below
    if (best_u - place[0]) ** 2 + (best_v - place[1]) ** 2 < _FARTHEST * _FARTHEST:
        place[0], place[1] = best_u, best_v


@njit(cache=True, nogil=True, error_model="numpy")
def _compare(spline: Any, u: float, v: float, A: Any, window: Any, sums: Any) -> bool:
    """Weighted sums of both brightnesses, of their mean slopes and of all products; False out of view."""
    height, width = spline.shape
    reach_x, reach_y = RADIUS * (abs(A[0, 0]) + abs(A[0, 1])), RADIUS * (abs(A[1, 0]) + abs(A[1, 1]))
    # written so that a place that is no number is out of view
    if not (u - reach_x >= 1 and v - reach_y >= 1 and u + reach_x < width - 2 and v + reach_y < height - 2):
        return False
    sums[:] = 0
    k = 0
    for j in range(-RADIUS, RADIUS + 1):
        for i in range(-RADIUS, RADIUS + 1):
            other, right, below = _between(
                spline, u + A[0, 0] * i + A[0, 1] * j, v + A[1, 0] * i + A[1, 1] * j
            )
            w, own = window[0, k], window[1, k]
            # slopes of both sides: half of either's noise
            x, y = 0.5 * (right + window[2, k]), 0.5 * (below + window[3, k])
            sums[0] += w
            sums[1] += w * own
            sums[2] += w * other
            sums[3] += w * own * own
            sums[4] += w * other * other
            sums[5] += w * own * other
            sums[6] += w * x
            sums[7] += w * y
            sums[8] += w * x * x
            sums[9] += w * x * y
            sums[10] += w * y * y
            sums[11] += w * x * own
            sums[12] += w * y * own
            sums[13] += w * x * other
            sums[14] += w * y * other
            k += 1
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _between(spline: Any, x: float, y: float) -> Any:
    """Value and slopes of a cubic spline, given by its coefficients."""
    left, top = int(x), int(y)
    p, q = x - left, y - top
    r = 1 - p
    a0, a1, a3 = r * r * r / 6, (4 + p * p * (3 * p - 6)) / 6, p * p * p / 6
    d0, d1, d3 = -r * r / 2, p * (1.5 * p - 2), p * p / 2
    a2, d2 = 1 - a0 - a1 - a3, -d0 - d1 - d3
    s = 1 - q
    b0, b1, b3 = s * s * s / 6, (4 + q * q * (3 * q - 6)) / 6, q * q * q / 6
    e0, e1, e3 = -s * s / 2, q * (1.5 * q - 2), q * q / 2
    b2, e2 = 1 - b0 - b1 - b3, -e0 - e1 - e3
    value, right, below = 0.0, 0.0, 0.0
    for j, (b, e) in enumerate(((b0, e0), (b1, e1), (b2, e2), (b3, e3))):
        row = spline[top - 1 + j]
        c0, c1, c2, c3 = row[left - 1], row[left], row[left + 1], row[left + 2]
        along = a0 * c0 + a1 * c1 + a2 * c2 + a3 * c3
        value += b * along
        right += b * (d0 * c0 + d1 * c1 + d2 * c2 + d3 * c3)
        below += e * along
    return value, right, below


@njit(cache=True, nogil=True, error_model="numpy")
def _verdict(sums: Any, moved_x: float, moved_y: float) -> Any:
    """Correlation of both windows, and the step to where they and flow agree best; exposure may differ."""
    m = sums / sums[0]
    own, other, both = m[3] - m[1] * m[1], m[4] - m[2] * m[2], m[5] - m[1] * m[2]
    gain = np.sqrt((own + _NOISE) / (other + _NOISE))
    noise = max(own - 2 * gain * both + gain * gain * other, _NOISE)
    # what flow says, in the units of the window's mean
    hold = _ALIKE * noise / (sums[0] * _FLOW * _FLOW)
    xx, xy, yy = m[8] - m[6] * m[6] + hold, m[9] - m[6] * m[7], m[10] - m[7] * m[7] + hold
    x = m[11] - m[6] * m[1] - gain * (m[13] - m[6] * m[2]) - hold * moved_x
    y = m[12] - m[7] * m[1] - gain * (m[14] - m[7] * m[2]) - hold * moved_y
    size = xx * yy - xy * xy
    alike = both / np.sqrt((own + _NOISE) * (other + _NOISE))
    return alike, (x * yy - y * xy) / size, (y * xx - x * xy) / size

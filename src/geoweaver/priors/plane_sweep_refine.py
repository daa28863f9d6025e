"""Depth below a plane's distance: shift each pixel's plane until the views' brightness fits best."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numba import njit

from geoweaver.priors.plane_sweep_planes import Planes
from geoweaver.priors.plane_sweep_views import SweepViews

_RADIUS = 2
"""Pixels around the middle that are compared."""
_EDGE = np.float32(15.0)
"""Difference in brightness at which a pixel of the window counts e times less: another surface."""
_STEPS = 2
"""Newton steps at most."""
_NOISE = np.float32(1.0)
"""Variance of brightness that means nothing, in squared grey levels."""
_GAIN = np.float32(3.0)
"""Views may differ in contrast by up to this factor."""
_FARTHEST = np.float32(0.5)
"""Share of the first inverse depth below which no step leads: the horizon is not a surface."""
_SMALL = np.float32(0.03)
"""Steps below this share of a sweep's plane are not worth taking."""


@dataclass(frozen=True)
class Refined:
    """Inverse depth where the brightness fits best, and how much the images say about it."""

    inverse: Float[np.ndarray, "H W"]
    information: Float[np.ndarray, "H W"]
    """One over its variance in units of the sweep's planes; 0 on blank surfaces."""


def refine(
    views: SweepViews,
    images: Float[np.ndarray, "n H W"],
    frame: int,
    sources: Int[np.ndarray, "s"],
    planes: Planes,
    step: float,
) -> Refined:
    """Gauss-Newton in inverse depth on slanted windows; `step` is the distance of the sweep's planes."""
    R = views.rotation[sources] @ views.rotation[frame].T
    t = views.translation[sources] - R @ views.translation[frame]
    start = planes.inverse.astype(np.float32)
    inverse, information = start.copy(), np.zeros_like(start)
    slopes = np.stack([planes.across, planes.down], -1).astype(np.float32)
    camera = np.array(views.intrinsics, np.float32)
    moved = R.astype(np.float32), t.astype(np.float32)
    _refine(images[frame], images[sources], *moved, camera, slopes, np.float32(step), inverse, information)
    return Refined(inverse, information * np.float32(step) ** 2)


@njit(cache=True, error_model="numpy")
def _refine(
    image: Any, sources: Any, R: Any, t: Any, camera: Any, slopes: Any, step: Any, inverse: Any, info: Any
) -> None:
    """Take steps as long as the views differ less."""
    height, width = image.shape
    weights = np.empty((2 * _RADIUS + 1, 2 * _RADIUS + 1), np.float32)
    verdicts = np.empty((len(sources), 3), np.float32)
    for y in range(_RADIUS, height - _RADIUS):
        for x in range(_RADIUS, width - _RADIUS):
            q = inverse[y, x]
            least = _FARTHEST * q
            if q <= 0:
                continue
            _window(image, x, y, weights)
            slope = slopes[y, x]
            cost, pull, known = _judge(image, sources, R, t, camera, x, y, q, slope, weights, verdicts)
            for _ in range(_STEPS):
                move = min(max(pull / (known + 1 / (step * step)), -step), step)
                if abs(move) < _SMALL * step or q + move <= least:
                    break
                found = _judge(image, sources, R, t, camera, x, y, q + move, slope, weights, verdicts)
                if found[0] >= cost:
                    break
                q += move
                cost, pull, known = found
            inverse[y, x], info[y, x] = q, known


@njit(cache=True, error_model="numpy")
def _window(image: Any, x: int, y: int, weights: Any) -> None:
    """Weights of the pixels around one, together one: near ones of its own brightness."""
    total = np.float32(0)
    for j in range(2 * _RADIUS + 1):
        for i in range(2 * _RADIUS + 1):
            away = np.float32((i - _RADIUS) ** 2 + (j - _RADIUS) ** 2) / np.float32(2 * _RADIUS**2)
            other = abs(image[y + j - _RADIUS, x + i - _RADIUS] - image[y, x]) / _EDGE
            weights[j, i] = np.exp(-away - other)
            total += weights[j, i]
    weights /= total


@njit(cache=True, error_model="numpy")
def _judge(
    image: Any, sources: Any, R: Any, t: Any, camera: Any, x: int, y: int, q: Any, slope: Any, weights: Any,
    verdicts: Any,
) -> Any:  # fmt: skip
    """Mean difference of the better half of the sources in view, their pull on q and what they know of it."""
    count = 0
    for s in range(len(sources)):
        seen, verdict = _compare(image, sources[s], R[s], t[s], camera, x, y, q, slope, weights)
        if seen:
            at = count
            while at > 0 and verdicts[at - 1, 0] > verdict[0]:
                verdicts[at] = verdicts[at - 1]
                at -= 1
            verdicts[at, 0], verdicts[at, 1], verdicts[at, 2] = verdict
            count += 1
    used = (count + 1) // 2
    cost, pull, known = np.float32(0), np.float32(0), np.float32(0)
    for k in range(used):
        cost, pull, known = cost + verdicts[k, 0], pull + verdicts[k, 1], known + verdicts[k, 2]
    return cost / max(used, 1), pull, known


@njit(cache=True, error_model="numpy")
def _compare(
    image: Any, source: Any, M: Any, v: Any, camera: Any, x: int, y: int, q: Any, slope: Any, weights: Any
) -> Any:
    """Whether a source sees the window; one minus its correlation, its pull and its information."""
    fx, fy, cx, cy = camera
    half, zero = np.float32(0.5), np.float32(0)
    o, i, g, oo, ii, gg, oi, og, ig = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for j in range(2 * _RADIUS + 1):
        ry = (np.float32(y + j - _RADIUS) + half - cy) / fy
        for k in range(2 * _RADIUS + 1):
            w = weights[j, k]
            rx = (np.float32(x + k - _RADIUS) + half - cx) / fx
            p = q + slope[0] * np.float32(k - _RADIUS) + slope[1] * np.float32(j - _RADIUS)
            z = M[2, 0] * rx + M[2, 1] * ry + M[2, 2] + v[2] * p
            to = np.float32(1) / z
            a = fx * (M[0, 0] * rx + M[0, 1] * ry + M[0, 2] + v[0] * p) * to
            b = fy * (M[1, 0] * rx + M[1, 1] * ry + M[1, 2] + v[1] * p) * to
            inside, there, right, below = _sample(source, a + cx - half, b + cy - half)
            if not inside or z <= 0:
                return False, (zero, zero, zero)
            along = (right * (fx * v[0] - a * v[2]) + below * (fy * v[1] - b * v[2])) * to
            here = image[y + j - _RADIUS, x + k - _RADIUS]
            o, i, g = o + w * here, i + w * there, g + w * along
            oo, ii, gg = oo + w * here * here, ii + w * there * there, gg + w * along * along
            oi, og, ig = oi + w * here * there, og + w * here * along, ig + w * there * along
    return True, _verdict(oo - o * o, ii - i * i, gg - g * g, oi - o * i, og - o * g, ig - i * g)


@njit(cache=True, error_model="numpy")
def _sample(source: Any, x: Any, y: Any) -> Any:
    """Brightness between four pixels and its slopes to the right and below."""
    height, width = source.shape
    if not (x >= 0 and y >= 0 and x < width - 1 and y < height - 1):
        return False, np.float32(0), np.float32(0), np.float32(0)
    i, j = int(x), int(y)
    p, r = x - np.float32(i), y - np.float32(j)
    a, b, c, d = source[j, i], source[j, i + 1], source[j + 1, i], source[j + 1, i + 1]
    high, low = a + p * (b - a), c + p * (d - c)
    return True, high + r * (low - high), (b - a) + r * ((d - c) - (b - a)), low - high


@njit(cache=True, error_model="numpy")
def _verdict(own: Any, other: Any, slope: Any, both: Any, own_slope: Any, other_slope: Any) -> Any:
    """From variances and covariances of own, other's brightness and the slope of the other along q."""
    gain = min(max(both / (other + _NOISE), 1 / _GAIN), _GAIN)
    correlation = both / np.sqrt((own + _NOISE) * (other + _NOISE))
    noise = max(own - 2 * gain * both + gain * gain * other, _NOISE)
    pull = gain * (own_slope - gain * other_slope) / noise
    return np.float32(1) - correlation, pull, gain * gain * slope / noise

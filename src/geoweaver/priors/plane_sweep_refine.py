"""Depth below a plane's distance: shift each pixel's plane until the views' brightness fits best."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numba import njit

from geoweaver.priors.plane_sweep_planes import Planes
from geoweaver.priors.plane_sweep_views import SweepViews
from geoweaver.priors.plane_sweep_windows import RADIUS, SIDE, UNSEEN, compare_windows, window_weights

_STEPS = 2
"""Newton steps at most."""
_FARTHEST = np.float32(0.5)
"""Share of the first inverse depth below which no step leads: the horizon is not a surface."""
_SMALL = np.float32(0.03)
"""Steps below this share of a sweep's plane are not worth taking."""

_OWN = np.float32(3.0)
"""Information that a first look has beyond what its own window says: the plane it began with."""


@dataclass(frozen=True)
class Refined:
    """Inverse depth where the brightness fits best, and how much the images say about it."""

    inverse: Float[np.ndarray, "H W"]
    information: Float[np.ndarray, "H W"]
    """One over its variance in units of the sweep's planes; 0 on blank surfaces."""


def both_looks(first: Refined, second: Refined) -> Refined:
    """The mean of two by what each knows; where the second knows little the first stays."""
    own = first.information + _OWN
    inverse = (own * first.inverse + second.information * second.inverse) / (own + second.information)
    return Refined(inverse, first.information + second.information)


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


@njit(cache=True, nogil=True, error_model="numpy")
def _refine(
    image: Any, sources: Any, R: Any, t: Any, camera: Any, slopes: Any, step: Any, inverse: Any, info: Any
) -> None:
    """Take steps as long as the better half of the sources differs less, a row of pixels at a time."""
    height, width = image.shape
    weights = np.empty((SIDE * SIDE, width), np.float32)
    verdict = np.empty((len(sources), 3, width), np.float32)
    chosen = np.empty((len(sources), width), np.bool_)
    total, found = np.empty((3, width), np.float32), np.empty((3, width), np.float32)
    active, some = np.empty(width, np.int64), np.empty(width, np.int64)
    for y in range(RADIUS, height - RADIUS):
        q, slope = inverse[y], slopes[y]
        least, trial = _FARTHEST * q, q.copy()
        count = _begin(image, y, q, weights, active)
        for s in range(len(sources)):
            look = image, sources[s], R[s], t[s], camera
            compare_windows(*look, y, active[:count], trial, slope, weights, verdict[s])
        _better_half(verdict, active[:count], chosen, total)
        info[y] = 0
        for n in range(count):
            info[y, active[n]] = total[2, active[n]]
        for _ in range(_STEPS):
            count = _propose(q, least, step, total, active[:count], trial)
            for s in range(len(sources)):
                look, n = (image, sources[s], R[s], t[s], camera), _of(active[:count], chosen[s], some)
                compare_windows(*look, y, some[:n], trial, slope, weights, verdict[s])
            _sum(verdict, chosen, active[:count], found)
            count = _accept(found, active[:count], trial, q, total, info[y])


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(image: Any, y: int, q: Any, weights: Any, active: Any) -> int:
    """The row's pixels with a depth, and the weights of their windows."""
    count = 0
    for x in range(RADIUS, image.shape[1] - RADIUS):
        if q[x] > 0:
            window_weights(image, x, y, weights)
            active[count] = x
            count += 1
    return count


@njit(cache=True, nogil=True)
def _of(active: Any, wanted: Any, some: Any) -> int:
    """Those of the active pixels that are wanted, and how many."""
    count = 0
    for x in active:
        if wanted[x]:
            some[count] = x
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _better_half(verdict: Any, active: Any, chosen: Any, total: Any) -> None:
    """Choose for every pixel the half of the sources in view that differ least; their sums."""
    sources = len(verdict)
    for x in active:
        count = 0
        for s in range(sources):
            chosen[s, x] = False
            count += verdict[s, 0, x] < UNSEEN
        for _ in range((count + 1) // 2):
            best = -1
            for s in range(sources):
                if not chosen[s, x] and (best < 0 or verdict[s, 0, x] < verdict[best, 0, x]):
                    best = s
            chosen[best, x] = True
    _sum(verdict, chosen, active, total)


@njit(cache=True, nogil=True, error_model="numpy")
def _sum(verdict: Any, chosen: Any, active: Any, total: Any) -> None:
    """Mean difference of the chosen sources, the sum of their pulls and of what they know."""
    for x in active:
        cost, pull, known, used = np.float32(0), np.float32(0), np.float32(0), 0
        for s in range(len(verdict)):
            if chosen[s, x]:
                cost, pull, known = cost + verdict[s, 0, x], pull + verdict[s, 1, x], known + verdict[s, 2, x]
                used += 1
        total[0, x], total[1, x], total[2, x] = cost / max(used, 1), pull, known


@njit(cache=True, nogil=True, error_model="numpy")
def _propose(q: Any, least: Any, step: Any, total: Any, active: Any, trial: Any) -> int:
    """One Newton step, never farther than a plane; pixels not worth one are no longer active."""
    count = 0
    for x in active:
        move = min(max(total[1, x] / (total[2, x] + 1 / (step * step)), -step), step)
        if abs(move) >= _SMALL * step and q[x] + move > least[x]:
            trial[x] = q[x] + move
            active[count] = x
            count += 1
    return count


@njit(cache=True, nogil=True)
def _accept(found: Any, active: Any, trial: Any, q: Any, total: Any, info: Any) -> int:
    """Keep the steps that made views more alike; the others end their pixel's search."""
    count = 0
    for x in active:
        if found[0, x] < total[0, x]:
            q[x], info[x] = trial[x], found[2, x]
            total[:, x] = found[:, x]
            active[count] = x
            count += 1
    return count

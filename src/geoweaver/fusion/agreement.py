"""What other views say of a view's points: there it is, I see through it, or something hides it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numba import njit

from geoweaver.fusion.config import FusionConfig
from geoweaver.fusion.views import DepthView

_FREE = 2.0
"""Tolerances by which a view must look past a point to contradict it."""
_NEARER = 0.7
"""Share of a view's own depth below which another view is much nearer."""
_SMOOTH = 0.1
"""Relative difference of depths around a place that tells of an edge."""


@dataclass(frozen=True)
class Verdict:
    """Per pixel: how many views confirm, see through and hide it, and where they place it together."""

    agree: Int[np.ndarray, "H W"]
    through: Int[np.ndarray, "H W"]
    hidden: Int[np.ndarray, "H W"]
    nearer: Int[np.ndarray, "H W"]
    """How many of those that confirm see it from much nearer."""
    points: Float[np.ndarray, "H W 3"]
    """In the view's camera coordinates: mean of its own and all confirming points, by confidence."""

    def kept(self, confidence: Float[np.ndarray, "H W"], config: FusionConfig) -> Bool[np.ndarray, "H W"]:
        """Enough views agree and few look through; or too few can tell, none objects, and it is sure."""
        needed = config.views - 1
        confirmed = (self.agree >= needed) & (2 * self.through <= self.agree)
        judged = (confidence > 0) & (self.agree + self.through + self.hidden >= needed)
        unseen = (self.agree < needed) & (self.through + self.hidden == 0)
        kept = confirmed
        # where a view can be judged and is mostly wrong, nothing that it alone says is believed
        if 2 * int((confirmed & judged).sum()) >= int(judged.sum()):
            kept = confirmed | (unseen & (confidence >= config.lone_confidence))
        # their own points say the same, and better
        return np.asarray(kept & (self.nearer < max(needed, 1)))


def judge_view(
    view: DepthView, others: Sequence[DepthView], tolerance: float, config: FusionConfig
) -> Verdict:
    """Look every point of a view up in the others and carry what is found there back."""
    votes = np.zeros((*view.depth.shape, 4), np.int16)
    total = np.zeros((*view.depth.shape, 4))
    _own_points(view.depth, view.confidence, view.intrinsics, total)
    reach = config.reach * float(np.hypot(*view.depth.shape))
    for other in others:
        R, t = relative(view, other)
        _compare(
            view.depth, view.intrinsics, other.depth, other.confidence, other.intrinsics, R, t,
            tolerance, _FREE * tolerance, reach, config.jump, votes, total,
        )  # fmt: skip
    points = total[..., 1:] / np.where(total[..., :1] > 0, total[..., :1], 1)
    return Verdict(votes[..., 0], votes[..., 1], votes[..., 2], votes[..., 3], points)


def relative(view: DepthView, other: DepthView) -> tuple[np.ndarray, np.ndarray]:
    """other_from_view."""
    R = np.ascontiguousarray(other.rotation @ view.rotation.T)
    return R, other.translation - R @ view.translation


def log_ratios(
    view: DepthView, other: DepthView, y: Int[np.ndarray, "r"], x: Int[np.ndarray, "c"], within: float
) -> Float[np.ndarray, "r c"]:
    """Log of the depth that another view has where it sees these rows and columns, over theirs.

    Nan where it sees nothing, an edge, or a difference beyond `within`: another surface.
    """
    out = np.full((len(y), len(x)), np.nan)
    R, t = relative(view, other)
    _ratios(view.depth, view.intrinsics, other.depth, other.intrinsics, R, t, y, x, within, out)
    return out


@njit(cache=True)
def _own_points(depth: Any, confidence: Any, intrinsics: Any, total: Any) -> None:
    fx, fy, cx, cy = intrinsics
    for y in range(depth.shape[0]):
        for x in range(depth.shape[1]):
            z = float(depth[y, x])
            if z > 0:
                # an error grows with the depth: nearer views know better
                w = float(confidence[y, x]) / (z * z)
                total[y, x, 0] = w
                total[y, x, 1] = w * z * (x + 0.5 - cx) / fx
                total[y, x, 2] = w * z * (y + 0.5 - cy) / fy
                total[y, x, 3] = w * z


@njit(cache=True)
def look_up(depth: Any, u: float, v: float, z: float, jump: float) -> Any:
    """Depth at a place, the nearest and the farthest around it; 0 where it is unknown.

    Between pixels of one surface the inverse depth is interpolated; at an edge the side nearer to z counts.
    """
    height, width = depth.shape
    # beyond the outer pixels' centres nothing lies between pixels
    if not (u >= 0.5 and v >= 0.5 and u <= width - 0.5 and v <= height - 0.5):
        return 0.0, 0.0, 0.0
    x0, y0 = min(max(int(u - 0.5), 0), width - 1), min(max(int(v - 0.5), 0), height - 1)
    x1, y1 = min(x0 + 1, width - 1), min(y0 + 1, height - 1)
    a, b = float(depth[y0, x0]), float(depth[y0, x1])
    c, d = float(depth[y1, x0]), float(depth[y1, x1])
    low, high = min(min(a, b), min(c, d)), max(max(a, b), max(c, d))
    if low <= 0:
        return 0.0, 0.0, 0.0
    if high <= low * (1 + jump):
        dx, dy = min(max(u - 0.5 - x0, 0.0), 1.0), min(max(v - 0.5 - y0, 0.0), 1.0)
        inverse = (1 - dy) * ((1 - dx) / a + dx / b) + dy * ((1 - dx) / c + dx / d)
        return 1 / inverse, low, high
    best = a
    for other in (b, c, d):
        if abs(other - z) < abs(best - z):
            best = other
    return best, low, high


@njit(cache=True)
def _compare(
    depth: Any, K: Any, far_depth: Any, far_confidence: Any, L: Any, R: Any, t: Any,
    tolerance: float, free: float, reach: float, jump: float, votes: Any, total: Any,
) -> None:  # fmt: skip
    height, width = far_confidence.shape
    for y in range(depth.shape[0]):
        for x in range(depth.shape[1]):
            z = float(depth[y, x])
            if z <= 0:
                continue
            px, py = z * (x + 0.5 - K[2]) / K[0], z * (y + 0.5 - K[3]) / K[1]
            qz = R[2, 0] * px + R[2, 1] * py + R[2, 2] * z + t[2]
            if qz <= 0.01 * z:
                continue
            u = L[0] * (R[0, 0] * px + R[0, 1] * py + R[0, 2] * z + t[0]) / qz + L[2]
            v = L[1] * (R[1, 0] * px + R[1, 1] * py + R[1, 2] * z + t[1]) / qz + L[3]
            found, low, high = look_up(far_depth, u, v, qz, jump)
            if found <= 0:
                continue
            if low > qz * (1 + free):
                votes[y, x, 1] += 1
            elif high < qz * (1 - free):
                votes[y, x, 2] += 1
            elif abs(found - qz) <= tolerance * qz:
                ax = found * (u - L[2]) / L[0] - t[0]
                ay = found * (v - L[3]) / L[1] - t[1]
                az = found - t[2]
                bx = R[0, 0] * ax + R[1, 0] * ay + R[2, 0] * az
                by = R[0, 1] * ax + R[1, 1] * ay + R[2, 1] * az
                bz = R[0, 2] * ax + R[1, 2] * ay + R[2, 2] * az
                if bz <= 0.01 * z:
                    continue
                off_x, off_y = K[0] * bx / bz + K[2] - x - 0.5, K[1] * by / bz + K[3] - y - 0.5
                if off_x * off_x + off_y * off_y > reach * reach:
                    continue
                votes[y, x, 0] += 1
                if found < _NEARER * z:
                    votes[y, x, 3] += 1
                w = float(far_confidence[min(int(v), height - 1), min(int(u), width - 1)]) / (found * found)
                total[y, x, 0] += w
                total[y, x, 1] += w * bx
                total[y, x, 2] += w * by
                total[y, x, 3] += w * bz


@njit(cache=True)
def _ratios(
    depth: Any, K: Any, far_depth: Any, L: Any, R: Any, t: Any, ys: Any, xs: Any, within: float, out: Any
) -> None:
    for i in range(len(ys)):
        for j in range(len(xs)):
            z = float(depth[ys[i], xs[j]])
            if z <= 0:
                continue
            px, py = z * (xs[j] + 0.5 - K[2]) / K[0], z * (ys[i] + 0.5 - K[3]) / K[1]
            qz = R[2, 0] * px + R[2, 1] * py + R[2, 2] * z + t[2]
            if qz <= 0.01 * z:
                continue
            u = L[0] * (R[0, 0] * px + R[0, 1] * py + R[0, 2] * z + t[0]) / qz + L[2]
            v = L[1] * (R[1, 0] * px + R[1, 1] * py + R[1, 2] * z + t[1]) / qz + L[3]
            found, low, high = look_up(far_depth, u, v, qz, _SMOOTH)
            if found > 0 and high <= (1 + _SMOOTH) * low and abs(np.log(found / qz)) < within:
                out[i, j] = np.log(found / qz)

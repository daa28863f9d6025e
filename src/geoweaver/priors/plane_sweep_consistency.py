"""Do other views' depth maps agree, and how sure is a pixel then?"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numba import njit

from geoweaver.priors.plane_sweep_views import SweepViews

VIEWS = 6
"""Views that a depth is compared with."""
_AGREE = 0.04
"""Relative difference of depths that still counts as the same surface."""
_SAID = (0.0, 0.15, 0.21, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0)
_WAS = (0.25, 0.29, 0.41, 0.67, 0.82, 0.91, 0.935, 0.973, 0.988, 0.995)
"""Confidence before and share found within 5 %: middles of bins over parts of the four worlds."""


def consistent_views(
    views: SweepViews,
    depths: Float[np.ndarray, "n H W"],
    frame: int,
    sources: Int[np.ndarray, "s"],
    far: float = np.inf,
) -> tuple[Float[np.ndarray, "H W"], Float[np.ndarray, "H W"], Float[np.ndarray, "H W"]]:
    """How many of the first sources agree with a frame's depth, how many could, and the agreeing mean.

    Beyond `far` no depth can be told from another.
    """
    others = sources[:VIEWS]
    R = views.rotation[others] @ views.rotation[frame].T
    t = views.translation[others] - R @ views.translation[frame]
    agree, visible, fused = (np.zeros(depths.shape[1:], np.float32) for _ in range(3))
    camera = np.array(views.intrinsics, np.float32)
    _compare(
        depths[frame],
        depths[others],
        R.astype(np.float32),
        t.astype(np.float32),
        camera,
        np.float32(far),
        agree,
        visible,
        fused,
    )
    return agree, visible, fused


@njit(cache=True, nogil=True)
def _compare(
    depth: Any, others: Any, R: Any, t: Any, camera: Any, far: Any, agree: Any, visible: Any, fused: Any
) -> None:
    """Lift each pixel, look it up in every other view, and carry the depth found there back."""
    fx, fy, cx, cy = camera
    height, width = depth.shape
    for y in range(height):
        for x in range(width):
            z = depth[y, x]
            if z <= 0:
                continue
            rx, ry = (x + np.float32(0.5) - cx) / fx, (y + np.float32(0.5) - cy) / fy
            total = np.float32(1) / z
            for s in range(len(others)):
                M, v = R[s], t[s]
                pz = z * (M[2, 0] * rx + M[2, 1] * ry + M[2, 2]) + v[2]
                if pz <= 0:
                    continue
                u = fx * (z * (M[0, 0] * rx + M[0, 1] * ry + M[0, 2]) + v[0]) / pz + cx
                w = fy * (z * (M[1, 0] * rx + M[1, 1] * ry + M[1, 2]) + v[1]) / pz + cy
                if u < 0 or w < 0 or u >= width or w >= height:
                    continue
                found = others[s, int(w), int(u)]
                if found <= 0:
                    continue
                visible[y, x] += 1
                if abs(found - pz) < np.float32(_AGREE) * pz or min(found, pz) > far:
                    agree[y, x] += 1
                    # along the ray of the point itself, so that half a pixel beside it costs nothing
                    total += pz / (found * z)
            fused[y, x] = (agree[y, x] + 1) / total


def confidence_of(
    agree: Float[np.ndarray, "H W"],
    visible: Float[np.ndarray, "H W"],
    margin: Float[np.ndarray, "H W"],
    cost: Float[np.ndarray, "H W"],
) -> Float[np.ndarray, "H W"]:
    """About the probability that a depth is within 5 %: a logistic curve fitted where depth is known."""
    share = agree / np.maximum(visible, 1)
    score = -2.0 + 0.55 * agree + 1.2 * share + 0.6 * np.minimum(margin, 4.0) - 0.12 * cost
    return np.asarray(1 / (1 + np.exp(-score)), np.float32)


def calibrated(confidence: Float[np.ndarray, "H W"]) -> Float[np.ndarray, "H W"]:
    """The share of refined depths of this confidence that were within 5 % where depth is known."""
    return np.asarray(np.interp(confidence, _SAID, _WAS), np.float32)

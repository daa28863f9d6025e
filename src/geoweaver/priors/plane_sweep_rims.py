"""Windows carry the depth of an edge beyond it, over pixels of what lies behind: which these are."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numba import njit

_REACH = 8
"""Pixels within which the jump of depth and the edge of the image are looked for."""
_JUMP = 0.06
"""Relative drop of inverse depth, below what its slope leads to, that is a jump."""
_STRONGER, _EDGE = 2.0, 8.0
"""The edge behind a pixel is stronger than all before the jump by this factor and so many grey levels."""
_RUN = 3
"""Pixels over which a slope is measured."""
_ACROSS, _DOWN = np.array([1, 1, 0, -1, -1, -1, 0, 1]), np.array([0, 1, 1, 1, 0, -1, -1, -1])


def rims(
    inverse: Float[np.ndarray, "H W"], image: Float[np.ndarray, "H W"], least: float
) -> Bool[np.ndarray, "H W"]:
    """Pixels between an edge of the image and a drop of depth that lies beyond it, not at it.

    Depth jumps where brightness does. A pixel in front of the drop with nothing to see between the two, but
    an edge on its other side, was seen together with that edge and belongs to what comes after the drop.
    Differences are relative to `least` at the least, as in `fit_planes`.
    """
    import cv2

    out = np.zeros(inverse.shape, np.bool_)
    q = inverse.astype(np.float32)
    lowest = cv2.erode(q, np.ones((2 * _REACH + 1,) * 2, np.uint8))
    # few pixels have a drop near by at all
    near_drop = (q > 0) & (lowest < q - np.float32(_JUMP) * np.maximum(q, np.float32(least)))
    _mark(*np.nonzero(near_drop), q, image.astype(np.float32), np.float32(least), out)
    return out


@njit(cache=True, nogil=True)
def _mark(rows: Any, columns: Any, inverse: Any, image: Any, least: Any, out: Any) -> None:
    for n in range(len(rows)):
        y, x = rows[n], columns[n]
        for d in range(8):
            if _is_rim(inverse, image, least, x, y, _ACROSS[d], _DOWN[d]):
                out[y, x] = True
                break


@njit(cache=True, nogil=True)
def _is_rim(inverse: Any, image: Any, least: Any, x: int, y: int, dx: int, dy: int) -> bool:
    """Whether depth drops in one direction without an edge, and there is one in the other."""
    height, width = inverse.shape
    q = inverse[y, x]
    jump = _JUMP * max(q, least)
    if min(x - _RUN * dx, y - _RUN * dy) < 0 or x - _RUN * dx >= width or y - _RUN * dy >= height:
        return False
    slope = _slope(inverse, x, y, dx, dy, jump)
    ahead, seen = 0.0, image[y, x]
    for s in range(1, _REACH + 1):
        i, j = x + s * dx, y + s * dy
        if i < 0 or j < 0 or i >= width or j >= height:
            return False
        ahead, seen = max(ahead, abs(image[j, i] - seen)), image[j, i]
        if inverse[j, i] < q - s * max(slope, 0.0) - jump:
            break
        if s == _REACH:
            return False
    least_edge, seen = _STRONGER * ahead + _EDGE, image[y, x]
    for s in range(1, _REACH + 1):
        i, j = x - s * dx, y - s * dy
        if i < 0 or j < 0 or i >= width or j >= height or abs(inverse[j, i] - q - s * slope) > jump:
            return False
        if abs(image[j, i] - seen) > least_edge:
            return True
        seen = image[j, i]
    return False


@njit(cache=True, nogil=True)
def _slope(inverse: Any, x: int, y: int, dx: int, dy: int, jump: Any) -> Any:
    """Inverse depth per pixel backwards, 0 where it is not straight."""
    rise = inverse[y - dy, x - dx] - inverse[y, x]
    whole = inverse[y - _RUN * dy, x - _RUN * dx] - inverse[y, x]
    return whole / _RUN if abs(whole - _RUN * rise) <= jump else 0.0

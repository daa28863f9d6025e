"""How badly each depth plane explains a frame: census differences to warped source views, compiled."""

from typing import Any

import numpy as np
from numba import njit

UNITS = 8
"""Cost units per differing census bit: whole numbers keep the aggregation in 16 bits."""
BITS = 24
NO_VIEW = np.int16(UNITS * BITS // 2)
"""Cost where no source sees the pixel at a depth: what chance gives."""
_OUTSIDE = np.float32(-1e6)
_UNSEEN = np.int16(1000)
"""More than any number of bits: a source that does not see the pixel."""


@njit(cache=True, nogil=True, error_model="numpy")
def warp(source: Any, H: Any, out: Any) -> None:
    """Sample a source image where a plane's homography sends each reference pixel; far below zero outside."""
    height, width = out.shape
    at, right, below = np.empty(width, np.int32), np.empty(width, np.float32), np.empty(width, np.float32)
    for y in range(height):
        _targets(source, H, y, at, right, below)
        _sample(source.ravel(), source.shape[1], at, right, below, out[y])


@njit(cache=True, nogil=True, error_model="numpy")
def _targets(source: Any, H: Any, y: int, at: Any, right: Any, below: Any) -> None:
    """Where each pixel of a row goes: the pixel above left of it, or -1, and how far beside that.

    No memory is read out of order here, so that the loop becomes vector instructions.
    """
    columns, half = np.int32(source.shape[1]), np.float32(0.5)
    last, bottom = np.float32(source.shape[1] - 1), np.float32(source.shape[0] - 1)
    v = np.float32(y) + half
    a, b, c = H[0, 1] * v + H[0, 2], H[1, 1] * v + H[1, 2], H[2, 1] * v + H[2, 2]
    across, down, deeper = H[0, 0], H[1, 0], H[2, 0]
    for x in range(len(at)):
        u = np.float32(x) + half
        w = deeper * u + c
        to = np.float32(1) / w
        sx, sy = (across * u + a) * to - half, (down * u + b) * to - half
        inside = (w > np.float32(1e-6)) & (sx >= 0) & (sy >= 0) & (sx < last) & (sy < bottom)
        sx = sx if inside else np.float32(0)
        sy = sy if inside else np.float32(0)
        i, j = np.int32(sx), np.int32(sy)
        right[x], below[x] = sx - np.float32(i), sy - np.float32(j)
        at[x] = j * columns + i if inside else np.int32(-1)


@njit(cache=True, nogil=True)
def _sample(flat: Any, columns: int, at: Any, right: Any, below: Any, out: Any) -> None:
    """Brightness between four pixels of a flat image; far below zero where `at` is negative."""
    for x in range(len(at)):
        if at[x] < 0:
            out[x] = _OUTSIDE
        else:
            k = np.uint64(at[x])
            under = k + np.uint64(columns)
            high = flat[k] + right[x] * (flat[k + np.uint64(1)] - flat[k])
            low = flat[under] + right[x] * (flat[under + np.uint64(1)] - flat[under])
            out[x] = high + below[x] * (low - high)


@njit(cache=True, nogil=True)
def census(image: Any, y: int, code: Any) -> None:
    """24 bits per pixel of row y but two at each end: which neighbours in a 5x5 window are darker."""
    last = image.shape[1] - 4
    centre, inner = image[y, 2 : last + 2], code[2 : last + 2]
    for x in range(last):
        inner[x] = 0
    bit = 0
    for dy in range(5):
        for dx in range(5):
            if dy != 2 or dx != 2:
                # a slice, so that indices cannot be negative and the loop becomes vector instructions
                neighbour = image[y + dy - 2, dx : dx + last]
                value = np.int32(1 << bit)
                for x in range(last):
                    inner[x] |= value if neighbour[x] < centre[x] else np.int32(0)
                bit += 1


@njit(cache=True, nogil=True)
def _count_bits(v: Any) -> Any:
    v = v - ((v >> 1) & np.int32(0x55555555))
    v = (v & np.int32(0x33333333)) + ((v >> 2) & np.int32(0x33333333))
    v = (v + (v >> 4)) & np.int32(0x0F0F0F0F)
    v = v + (v >> 8)
    return (v + (v >> 16)) & np.int32(0x3F)


@njit(cache=True, nogil=True)
def cost_volume(
    reference: Any, sources: Any, homographies: Any, likely: Any, volume: Any, in_view: Any
) -> None:
    """Fill volume (H W D) with the mean census difference over the better half of the sources in view.

    homographies is (D S 3 3), float32; in_view (H W) gets the share of likely planes that a source sees.
    """
    planes, views = homographies.shape[:2]
    height, width = reference.shape
    own = np.zeros((height, width), np.int32)
    for y in range(2, height - 2):
        census(reference, y, own[y])
    warped = np.empty((views, height, width), np.float32)
    code = np.zeros(width, np.int32)
    row = np.zeros((views, width), np.int16)
    seen = np.zeros((height, width), np.float32)
    volume[:] = NO_VIEW
    for d in range(planes):
        for s in range(views):
            warp(sources[s], homographies[d, s], warped[s])
        for y in range(2, height - 2):
            for s in range(views):
                census(warped[s], y, code)
                image = warped[s, y]
                for x in range(width):
                    bits = _count_bits(code[x] ^ own[y, x])
                    row[s, x] = np.int16(bits) if image[x] > np.float32(-1e5) else _UNSEEN
            _better_half(row, d, likely[d], volume[y], seen[y])
    in_view[:] = seen


@njit(cache=True, nogil=True)
def _better_half(row: Any, d: int, likely: Any, volume: Any, seen: Any) -> None:
    """Mean of the lower half of the costs in view, per pixel of one row; leaves the rows sorted."""
    views, width = row.shape
    # neighbours change places, whole rows at a time: vector instructions instead of a sort per pixel
    for turn in range(views):
        for s in range(turn % 2, views - 1, 2):
            low, high = row[s], row[s + 1]
            for x in range(width):
                a, b = low[x], high[x]
                low[x], high[x] = min(a, b), max(a, b)
    for x in range(2, width - 2):
        count = 0
        while count < views and row[count, x] < _UNSEEN:
            count += 1
        if count > 0:
            used = (count + 1) // 2
            total = 0
            for k in range(used):
                total += row[k, x]
            volume[x, d] = np.int16(UNITS * total // used)
            seen[x] += likely

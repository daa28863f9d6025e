"""How badly each depth plane explains a frame: census differences to warped source views, compiled.

Brightness is held in whole 64ths of a grey level, so that twice as many pixels fit a vector instruction.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int16
from numba import njit

UNITS = 8
"""Cost units per differing census bit: whole numbers keep the aggregation in 16 bits."""
BITS = 24
NO_VIEW = np.int16(UNITS * BITS // 2)
"""Cost where no source sees the pixel at a depth: what chance gives."""
FINE = 64
"""Steps per grey level."""
OUTSIDE = np.int16(-1)
"""Darker than any brightness: where a source shows nothing."""
_STRIP = 32
"""Rows worked on together: what they need of all sources stays in the processor's cache."""
_UNSEEN = np.int8(100)
"""More than any number of bits: a source that does not see the pixel."""


def in_steps(image: Float[np.ndarray, "*s H W"]) -> Int16[np.ndarray, "*s H W"]:
    """Brightness (0 to 255) as the kernels here want it."""
    return np.rint(image * np.float32(FINE)).astype(np.int16)


@njit(cache=True, nogil=True)
def pairs(image: Any) -> Any:
    """Each pixel with its right neighbour in one number, so that both are read at once."""
    height, width = image.shape
    out = np.zeros((height, width), np.uint32)
    for y in range(height):
        row, here, after = out[y, : width - 1], image[y, : width - 1], image[y, 1:]
        for x in range(width - 1):
            row[x] = np.uint32(here[x]) | (np.uint32(after[x]) << np.uint32(16))
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def warp(source: Any, H: Any, top: int, out: Any) -> None:
    """Sample a source (its `pairs`) where a plane sends the pixels of rows from `top` on, else OUTSIDE."""
    rows, width = out.shape
    at, right, below = np.empty(width, np.int32), np.empty(width, np.float32), np.empty(width, np.float32)
    high, low = np.empty(width, np.uint32), np.empty(width, np.uint32)
    flat, columns = source.ravel(), source.shape[1]
    for y in range(rows):
        _targets(source.shape, H, top + y, at, right, below)
        _gather(flat, columns, at, high, low)
        _between(at, right, below, high, low, out[y])


@njit(cache=True, nogil=True, error_model="numpy")
def _targets(shape: Any, H: Any, y: int, at: Any, right: Any, below: Any) -> None:
    """Where each pixel of a row goes: the pixel above left of it, or -1, and how far beside that.

    No memory is read out of order here, so that the loop becomes vector instructions.
    """
    columns, half = np.int32(shape[1]), np.float32(0.5)
    last, bottom = np.float32(shape[1] - 1), np.float32(shape[0] - 1)
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
def _gather(flat: Any, columns: int, at: Any, high: Any, low: Any) -> None:
    """The four pixels around each place; any where it is outside."""
    for x in range(len(at)):
        k = np.uint64(max(at[x], np.int32(0)))
        high[x], low[x] = flat[k], flat[k + np.uint64(columns)]


@njit(cache=True, nogil=True)
def _between(at: Any, right: Any, below: Any, high: Any, low: Any, out: Any) -> None:
    """Brightness between four pixels."""
    first, shift = np.uint32(0xFFFF), np.uint32(16)
    for x in range(len(at)):
        a, b = np.float32(np.int32(high[x] & first)), np.float32(np.int32(high[x] >> shift))
        c, d = np.float32(np.int32(low[x] & first)), np.float32(np.int32(low[x] >> shift))
        above, under = a + right[x] * (b - a), c + right[x] * (d - c)
        value = np.int32(above + below[x] * (under - above) + np.float32(0.5))
        out[x] = np.int16(value) if at[x] >= 0 else OUTSIDE


@njit(cache=True, nogil=True)
def census(image: Any, y: int, code: Any) -> None:
    """Which neighbours in a 5x5 window are darker, for each pixel of row y but two at each end.

    Two parts (2 W) of 15 and 10 bits, so that all stays in 16: from above left to below right.
    """
    last = image.shape[1] - 4
    centre, first, second = image[y, 2 : last + 2], code[0, 2 : last + 2], code[1, 2 : last + 2]
    first[:], second[:] = 0, 0
    _darker(image[y - 2], centre, 0, first)
    _darker(image[y - 1], centre, 5, first)
    _darker(image[y], centre, 10, first)
    _darker(image[y + 1], centre, 0, second)
    _darker(image[y + 2], centre, 5, second)


@njit(cache=True, nogil=True)
def _darker(row: Any, centre: Any, bit: int, part: Any) -> None:
    """Add five bits: which of a row's five pixels around each centre are darker than it."""
    last, none = len(centre), np.int16(0)
    # slices, so that indices cannot be negative and the loop becomes vector instructions
    a, b, c, d, e = row[:last], row[1 : last + 1], row[2 : last + 2], row[3 : last + 3], row[4 : last + 4]
    one = np.int16(1 << bit)
    two, four, eight, sixteen = np.int16(one << 1), np.int16(one << 2), np.int16(one << 3), np.int16(one << 4)
    for x in range(last):
        m = centre[x]
        left = (one if a[x] < m else none) | (two if b[x] < m else none)
        right = (eight if d[x] < m else none) | (sixteen if e[x] < m else none)
        part[x] |= np.int16(left | right | (four if c[x] < m else none))


@njit(cache=True, nogil=True)
def _count_bits(v: Any) -> Any:
    """Of fifteen."""
    v = np.int16(v - ((v >> 1) & np.int16(0x5555)))
    v = np.int16((v & np.int16(0x3333)) + ((v >> 2) & np.int16(0x3333)))
    v = np.int16((v + (v >> 4)) & np.int16(0x0F0F))
    return np.int16((v + (v >> 8)) & np.int16(0x1F))


@njit(cache=True, nogil=True)
def cost_volume(
    reference: Any, sources: Any, homographies: Any, likely: Any, volume: Any, in_view: Any
) -> None:
    """Fill volume (H W D) with the mean census difference over the better half of the sources in view.

    Images are `in_steps`; homographies is (D S 3 3), float32; in_view (H W) gets the share of likely planes
    that a source sees.
    """
    planes, views = homographies.shape[:2]
    height, width = reference.shape
    own = np.zeros((height, 2, width), np.int16)
    for y in range(2, height - 2):
        census(reference, y, own[y])
    packed = [pairs(sources[s]) for s in range(views)]
    warped, code = np.empty((_STRIP + 4, width), np.int16), np.zeros((2, width), np.int16)
    bits, costs = np.empty((_STRIP, views, width), np.int8), np.empty((planes, _STRIP, width), np.int16)
    volume[:] = NO_VIEW
    in_view[:] = 0
    for top in range(2, height - 2, _STRIP):
        rows = min(_STRIP, height - 2 - top)
        for d in range(planes):
            for s in range(views):
                warp(packed[s], homographies[d, s], top - 2, warped[: rows + 4])
                for y in range(rows):
                    census(warped, y + 2, code)
                    _differing(code, own[top + y], warped[y + 2], bits[y, s])
            for y in range(rows):
                _better_half(bits[y], likely[d], costs[d, y], in_view[top + y])
        _by_pixel(costs, volume[top : top + rows])


@njit(cache=True, nogil=True)
def _differing(code: Any, own: Any, image: Any, bits: Any) -> None:
    """Differing bits of a row of codes, _UNSEEN where the source shows nothing."""
    first, second, own_first, own_second = code[0], code[1], own[0], own[1]
    for x in range(len(bits)):
        differ = _count_bits(first[x] ^ own_first[x]) + _count_bits(second[x] ^ own_second[x])
        bits[x] = np.int8(differ) if image[x] >= 0 else _UNSEEN


@njit(cache=True, nogil=True, error_model="numpy")
def _better_half(row: Any, likely: Any, cost: Any, seen: Any) -> None:
    """Mean of the lower half of the costs in view, per pixel of one row; leaves the rows sorted."""
    views, width = row.shape
    # neighbours change places, whole rows at a time: vector instructions instead of a sort per pixel
    for turn in range(views):
        for s in range(turn % 2, views - 1, 2):
            low, high = row[s], row[s + 1]
            for x in range(width):
                a, b = low[x], high[x]
                low[x], high[x] = min(a, b), max(a, b)
    used, total = np.ones(width, np.int8), np.zeros(width, np.int16)
    for s in range(views):
        bits = row[s]
        for x in range(width):
            used[x] += np.int8(1) if bits[x] < _UNSEEN else np.int8(0)
    for x in range(width):
        used[x] >>= np.int8(1)
    for s in range((views + 1) // 2):
        bits, rank = row[s], np.int16(s)
        for x in range(width):
            total[x] += bits[x] if rank < used[x] else np.int16(0)
    for x in range(2, width - 2):
        mean = np.float32(UNITS * np.int32(total[x])) / np.float32(max(used[x], np.int8(1)))
        cost[x] = np.int16(np.int32(mean)) if used[x] > 0 else NO_VIEW
        seen[x] += likely if used[x] > 0 else np.float32(0)


@njit(cache=True, nogil=True)
def _by_pixel(costs: Any, volume: Any) -> None:
    """From planes of pixels (D rows W) to pixels of planes (rows W D)."""
    rows, width, planes = volume.shape
    for y in range(rows):
        for x in range(2, width - 2):
            for d in range(planes):
                volume[y, x, d] = costs[d, y, x]

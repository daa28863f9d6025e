"""Walls with openings for doors and windows."""

from collections.abc import Sequence

from geoweaver.synth.quads import Quads, join
from geoweaver.synth.solids import box

Opening = tuple[float, float, float, float]
"""Start and end along the wall, sill and lintel height."""


def wall(
    along: str, at: float, span: tuple[float, float], height: float, low: str, high: str,
    openings: Sequence[Opening] = (), thickness: float = 0.12,
) -> Quads:  # fmt: skip
    """A wall along x or y at the other coordinate `at`; `low` and `high`: materials of its two faces."""
    parts, start = [], span[0]
    for left, right, sill, lintel in sorted(openings):
        parts += [(start, left, 0.0, height), (left, right, 0.0, sill), (left, right, lintel, height)]
        start = right
    parts.append((start, span[1], 0.0, height))
    return join(
        *(_piece(along, at, p, low, high, thickness / 2) for p in parts if p[1] > p[0] and p[3] > p[2])
    )


def _piece(along: str, at: float, part: Opening, low: str, high: str, half: float) -> Quads:
    start, end, bottom, top = part
    if along == "x":
        return box((start, at - half, bottom), (end, at + half, top), {"-y": low, "+y": high, "": "trim"})
    return box((at - half, start, bottom), (at + half, end, top), {"-x": low, "+x": high, "": "trim"})


def trims(along: str, at: float, left: float, right: float, lintel: float) -> Quads:
    """Casings around a door on both faces of a wall."""
    w, out = 0.07, 0.085
    spans = [
        (left - w, left + 0.01, 0, lintel),
        (right - 0.01, right + w, 0, lintel),
        (left - w, right + w, lintel - 0.01, lintel + w),
    ]
    if along == "x":
        return join(*(box((a, at - out, b), (c, at + out, d), "darkwood") for a, c, b, d in spans))
    return join(*(box((at - out, a, b), (at + out, c, d), "darkwood") for a, c, b, d in spans))


def door_leaf(picture: str, width: float, height: float) -> Quads:
    """An open door, hinged at the origin, reaching along +x."""
    return box((0, -0.02, 0.01), (width, 0.02, height), {"-y": picture, "+y": picture, "": "wood"}, fit=True)


def window_frame(width: float, height: float) -> Quads:
    """Frame and crossbars in an opening along x, its sill's middle at the origin; without glass."""
    w, t = width / 2, 0.05
    bars = [
        (-w, -w + t, 0, height), (w - t, w, 0, height), (-w, w, 0, t), (-w, w, height - t, height),
        (-t / 2, t / 2, 0, height), (-w, w, 0.65 * height, 0.65 * height + 0.03),
    ]  # fmt: skip
    return join(*(box((a, -0.03, b), (c, 0.03, d), "lacquer") for a, c, b, d in bars))

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
    """A wall along x or y at the other coordinate `at`; `low` and `high` are the materials of its two faces."""
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

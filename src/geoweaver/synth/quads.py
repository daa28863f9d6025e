"""Surfaces as quadrilaterals: the one primitive that every synthetic world is built of.

Corners run top-left, top-right, bottom-right, bottom-left as seen from the front. World axes: x east,
y north, z up, metres.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Quads:
    """A heap of quadrilaterals with their materials; each is two triangles (0, 1, 2) and (0, 2, 3)."""

    corners: Float[np.ndarray, "Q 4 3"]
    uv: Float[np.ndarray, "Q 3 2"]
    """Texture coordinates of corner 0, their changes towards corners 1 and 3: metres (pictures: shares)."""
    material: Array
    """Names, one per quadrilateral."""
    tint: Float[np.ndarray, "Q 3"]
    """Linear colour that multiplies the texture."""

    def __len__(self) -> int:
        return len(self.corners)

    def tinted(self, *rgb: float) -> "Quads":
        """The same surfaces in another colour."""
        return replace(self, tint=self.tint * np.asarray(rgb, float))

    def moved(self, x: float = 0, y: float = 0, z: float = 0, yaw: float = 0) -> "Quads":
        """Turned by `yaw` degrees about the vertical through the origin, then shifted."""
        c, s = np.cos(np.radians(yaw)), np.sin(np.radians(yaw))
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        return replace(self, corners=self.corners @ turn.T + [x, y, z])

    def turned(self, rotation: Float[np.ndarray, "3 3"]) -> "Quads":
        """Turned about the origin by any rotation."""
        return replace(self, corners=self.corners @ rotation.T)


def join(*parts: Quads) -> Quads:
    """All surfaces of several heaps in one."""
    return Quads(*(np.concatenate([getattr(p, f) for p in parts]) for f in Quads.__dataclass_fields__))


def from_corners(
    corners: Float[np.ndarray, "Q 4 3"],
    material: str | Array,
    fit: bool = False,
    offset: tuple[float, float] = (0, 0),
) -> Quads:
    """Surfaces from corners; textures run in metres along the edges, or once over each if they must `fit`."""
    n = len(corners)
    across = np.linalg.norm(corners[:, 1] - corners[:, 0], axis=-1)
    down = np.linalg.norm(corners[:, 3] - corners[:, 0], axis=-1)
    uv = np.zeros((n, 3, 2))
    uv[:, 0] = offset
    uv[:, 1, 0] = 1 if fit else across
    uv[:, 2, 1] = 1 if fit else down
    names = np.full(n, material) if isinstance(material, str) else material
    return Quads(corners, uv, names.astype("<U24"), np.ones((n, 3)))

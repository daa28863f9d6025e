"""A second look: all points together in front of every view that faces them, not only its neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numba import njit

from geoweaver.engine import Engine
from geoweaver.fusion.agreement import look_up
from geoweaver.fusion.views import ViewReader

BLOCK = 64
"""Views that a worker lets vote before it hands the votes over."""
_GROUP = 1024
"""Points that are looked for in a view together."""
_CELLS = 32.0
"""Size of the cells by which points are grouped, in their voxels."""
_FREE = 2.0
"""Tolerances by which a view must look past a point, or see a surface before it, to contradict it."""
_SHELL = 0.1
"""Relative depth up to which a surface before a point contradicts it; beyond, it hides it."""
_FACING = 0.1
"""Cosine between normal and view from which a view can tell."""


@dataclass(frozen=True)
class Surfels:
    """Points with the way they face, and how densely they lie."""

    points: Float[np.ndarray, "v 3"]
    normals: Float[np.ndarray, "v 3"]
    size: float
    """Of their voxels."""

    def __len__(self) -> int:
        return len(self.points)

    def grouped(self) -> Int[np.ndarray, "v"]:
        """An order in which neighbours in space follow one another."""
        cell = np.floor((self.points - self.points.min(0)) / (_CELLS * self.size)).astype(np.int64)
        return np.lexsort(cell.T)


def contradicted(
    surfels: Surfels, reader: ViewReader, frames: Sequence[int], tolerance: float, engine: Engine
) -> Bool[np.ndarray, "v"]:
    """Points where more of the views that face them see something else than see them."""
    if not len(surfels):
        return np.zeros(0, bool)
    order = surfels.grouped()
    points, normals = (a[order].astype(np.float32) for a in (surfels.points, surfels.normals))
    votes = np.zeros((len(surfels), 2), np.float32)
    blocks = [list(frames[k : k + BLOCK]) for k in range(0, len(frames), BLOCK)]
    for part in engine.map(_Vote(reader, points, normals, tolerance), blocks, title="cloud: second look"):
        votes += part
    found = np.zeros(len(surfels), bool)
    found[order] = votes[:, 1] > votes[:, 0]
    return found


@dataclass(frozen=True)
class _Vote:
    """What a worker does with a block of views."""

    reader: ViewReader
    points: Float[np.ndarray, "v 3"]
    """Float32, neighbours together."""
    normals: Float[np.ndarray, "v 3"]
    tolerance: float

    def __call__(self, block: list[int]) -> Float[np.ndarray, "v 2"]:
        votes = np.zeros((len(self.points), 2), np.float32)
        balls = _balls(self.points)
        for frame in block:
            view = self.reader.read(frame)
            known = view.depth[view.depth > 0]
            if not len(known):
                continue
            _vote(
                self.points, self.normals, balls, view.rotation, view.translation, view.centre,
                view.intrinsics, view.depth, view.confidence, float(known.max()), self.tolerance,
                self.reader.config.jump, votes,
            )  # fmt: skip
        return votes


def _balls(points: Float[np.ndarray, "v 3"]) -> Float[np.ndarray, "g 4"]:
    """Centre and radius around each group."""
    parts = (points[k : k + _GROUP].astype(np.float64) for k in range(0, len(points), _GROUP))
    boxes = [(p.min(0), p.max(0)) for p in parts]
    return np.array([[*(low + high) / 2, np.linalg.norm(high - low) / 2] for low, high in boxes]).reshape(
        -1, 4
    )


@njit(cache=True)
def _vote(
    points: Any, normals: Any, balls: Any, R: Any, t: Any, centre: Any, K: Any, depth: Any, confidence: Any,
    farthest: float, tolerance: float, jump: float, votes: Any,
) -> None:  # fmt: skip
    height, width = depth.shape
    free = _FREE * tolerance
    for g in range(len(balls)):
        x, y, z, radius = balls[g]
        ahead = R[2, 0] * x + R[2, 1] * y + R[2, 2] * z + t[2]
        if ahead + radius <= 0 or ahead - radius > farthest:
            continue
        for i in range(g * _GROUP, min((g + 1) * _GROUP, len(points))):
            x, y, z = float(points[i, 0]), float(points[i, 1]), float(points[i, 2])
            pz = R[2, 0] * x + R[2, 1] * y + R[2, 2] * z + t[2]
            if pz <= 0 or pz > farthest * (1 + _SHELL):
                continue
            u = K[0] * (R[0, 0] * x + R[0, 1] * y + R[0, 2] * z + t[0]) / pz + K[2]
            v = K[1] * (R[1, 0] * x + R[1, 1] * y + R[1, 2] * z + t[1]) / pz + K[3]
            if not (u >= 0.5 and v >= 0.5 and u <= width - 0.5 and v <= height - 0.5):
                continue
            dx, dy, dz = centre[0] - x, centre[1] - y, centre[2] - z
            towards = dx * normals[i, 0] + dy * normals[i, 1] + dz * normals[i, 2]
            if towards < _FACING * np.sqrt(dx * dx + dy * dy + dz * dz):
                continue
            found, low, high = look_up(depth, u, v, pz, jump)
            if found <= 0:
                continue
            # an error grows with the depth: nearer views know better
            weight = float(confidence[min(int(v), height - 1), min(int(u), width - 1)]) / (found * found)
            if low > pz * (1 + free) or (high < pz * (1 - free) and high > pz * (1 - _SHELL)):
                votes[i, 1] += weight
            elif abs(found - pz) <= tolerance * pz:
                votes[i, 0] += weight

"""Which surface a ray meets first: Embree finds it in float32, a float64 plane says exactly where."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.synth.quads import Array, Quads

if TYPE_CHECKING:
    from geoweaver.synth.world import World


@dataclass(frozen=True, eq=False)
class Surfaces:
    """Embree's acceleration structure over the triangles of some quadrilaterals, and their exact planes."""

    scene: Any
    plane: Array
    """(T 4): normal n and offset n . corner, not normalised."""


@lru_cache(maxsize=64)
def surfaces(quads: Quads) -> Surfaces:
    """Built once per process for each heap of quadrilaterals."""
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    corners = triangles(quads)
    scene = EmbreeScene(robust=True)
    TriangleMesh(scene, corners.astype(np.float32))
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return Surfaces(scene, np.concatenate([normal, (normal * corners[:, 0]).sum(-1, keepdims=True)], -1))


def triangles(quads: Quads) -> Float[np.ndarray, "T 3 3"]:
    """Two triangles per quadrilateral: triangle i belongs to quadrilateral i // 2."""
    return np.ascontiguousarray(quads.corners[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3))


def cast(
    world: "World", origins: Float[Tensor, "n 3"], directions: Float[Tensor, "n 3"]
) -> Float[Tensor, "n"]:
    """Factor t at which origin + t * direction first meets a surface; inf where it meets none."""
    o, d = (np.ascontiguousarray(x.numpy(force=True), dtype=np.float64) for x in (origins, directions))
    return torch.from_numpy(first_hits(surfaces(world.quads), o, d)[0])


def first_hits(meeting: Surfaces, origins: Array, directions: Array) -> tuple[Array, Array]:
    """(t, triangle) of the first hits; t is inf and the triangle -1 where a ray meets nothing."""
    o, d = origins.astype(np.float32), directions.astype(np.float32)
    triangle = meeting.scene.run(o, d, query="INTERSECT").astype(np.int32, copy=False)
    return _exact(meeting.plane, origins, directions, triangle), triangle


def blocked_at(meeting: Surfaces, origins: Array, directions: Array) -> Array:
    """Factor t of the first hit in Embree's own precision, inf where there is none: enough for light."""
    t = meeting.scene.run(origins.astype(np.float32), directions.astype(np.float32), query="DISTANCE")
    return np.where(t > 1e30, np.inf, t)


@numba.njit(cache=True)
def _exact(plane, origins, directions, triangle):  # type: ignore[no-untyped-def]
    """Distance factor to the plane of the triangle that each ray hit."""
    t = np.full(len(triangle), np.inf)
    for i in range(len(triangle)):
        if triangle[i] < 0:
            continue
        n0, n1, n2, offset = plane[triangle[i]]
        across = n0 * directions[i, 0] + n1 * directions[i, 1] + n2 * directions[i, 2]
        if across != 0:
            height = n0 * origins[i, 0] + n1 * origins[i, 1] + n2 * origins[i, 2]
            t[i] = (offset - height) / across
    return t

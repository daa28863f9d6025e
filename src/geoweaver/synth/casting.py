"""Which surface a ray meets first: Embree finds it in float32, a float64 plane intersection says exactly where."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.synth.quads import Array

if TYPE_CHECKING:
    from geoweaver.synth.world import World


def cast(
    world: "World", origins: Float[Tensor, "n 3"], directions: Float[Tensor, "n 3"]
) -> Float[Tensor, "n"]:
    """Factor t at which origin + t * direction first meets a surface; inf where it meets none."""
    o, d = (np.ascontiguousarray(x.numpy(force=True), dtype=np.float64) for x in (origins, directions))
    return torch.from_numpy(first_hits(world, o, d)[0])


def first_hits(world: "World", origins: Array, directions: Array) -> tuple[Array, Array]:
    """(t, triangle) of the first hits; t is inf and the triangle -1 where a ray meets nothing."""
    scene, triangles = embree_scene(world)
    triangle = scene.run(origins.astype(np.float32), directions.astype(np.float32), query="INTERSECT")
    return _exact(triangles, origins, directions, triangle), triangle


@lru_cache(maxsize=16)
def embree_scene(world: "World") -> tuple[Any, Array]:
    """Embree's acceleration structure for a world, and its triangles (T 3 3) in float64; one per process."""
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    triangles = np.ascontiguousarray(world.triangles)
    scene = EmbreeScene(robust=True)
    TriangleMesh(scene, triangles.astype(np.float32))
    return scene, triangles


@numba.njit(cache=True)
def _exact(triangles: Array, origins: Array, directions: Array, triangle: Array) -> Array:
    """Distance factor to the plane of the triangle that each ray hit."""
    t = np.full(len(triangle), np.inf)
    for i in range(len(triangle)):
        if triangle[i] < 0:
            continue
        a, b, c = triangles[triangle[i], 0], triangles[triangle[i], 1], triangles[triangle[i], 2]
        e0, e1, e2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        f0, f1, f2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        n0, n1, n2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
        o, d = origins[i], directions[i]
        across = n0 * d[0] + n1 * d[1] + n2 * d[2]
        if across != 0:
            t[i] = (n0 * (a[0] - o[0]) + n1 * (a[1] - o[1]) + n2 * (a[2] - o[2])) / across
    return t

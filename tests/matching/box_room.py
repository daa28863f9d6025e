"""A made-up place to test in: cameras inside a box room, exact depth, chunks each in its own gauge."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geoweaver.datatypes import ChunkPrior, EdgeKind, Matches, Observations, ViewGraph
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.geometry.camera import bearing, lift, pixel_centres, project_with_depth, resize_intrinsics
from geoweaver.geometry.so3 import so3_exp

SIZE = (96, 64)
INTRINSICS = torch.tensor([80.0, 80.0, 48.0, 32.0], dtype=torch.float64)
HALF = torch.tensor([3.0, 1.5, 4.0], dtype=torch.float64)
"""Half the room's extent."""


@dataclass(frozen=True)
class Room:
    """Truth, chunks and what a prior says of them."""

    cam_from_world: SE3
    observations: Observations
    priors: tuple[ChunkPrior, ...]

    def read(self, chunk: int) -> ChunkPrior:
        return self.priors[chunk]

    def with_prior(self, chunk: int, **changes: Tensor) -> "Room":
        """The same room with one chunk's maps replaced."""
        priors = list(self.priors)
        priors[chunk] = replace(priors[chunk], **changes)
        return replace(self, priors=tuple(priors))


def walk(frames: int, turn: float = 0.12) -> SE3:
    """Cameras on a small circle that look outward and turn step by step."""
    angle = torch.arange(frames, dtype=torch.float64) * turn
    zero = torch.zeros_like(angle)
    rotation = so3_exp(torch.stack([zero, angle, zero], -1))
    centre = torch.stack([0.8 * angle.cos(), 0.2 * (3 * angle).sin(), 0.8 * angle.sin()], -1)
    return SE3(rotation, -(rotation @ centre[..., None]).squeeze(-1))


def exact_depth(camera: SE3, pixel: Tensor) -> Tensor:
    """z-depth of the wall that a pixel sees."""
    ray = bearing(pixel, INTRINSICS) @ camera.rotation
    return ((HALF * ray.sign() - camera.centre) / ray).amin(-1)


def smooth_field(count: int, size: tuple[int, int], rng: torch.Generator) -> Tensor:
    """Random maps of about unit spread without jumps, as the errors of a depth network are."""
    coarse = torch.randn(count, 1, 4, 5, generator=rng, dtype=torch.float64)
    shape = (size[1], size[0])
    return torch.nn.functional.interpolate(coarse, shape, mode="bicubic", align_corners=True).squeeze(1)


def make_room(
    cameras: SE3,
    chunks: list[list[int]],
    scale: tuple[float, ...] | None = None,
    resolution: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> Room:
    """Priors of chunks in random gauges (10 % scale drift unless told), exact but for depth noise."""
    rng = torch.Generator().manual_seed(seed)
    frame = torch.tensor([f for chunk in chunks for f in chunk])
    chunk_of = torch.tensor([k for k, chunk in enumerate(chunks) for _ in chunk])
    size = (SIZE[0] // resolution, SIZE[1] // resolution)
    priors, cams = [], []
    for k, members in enumerate(chunks):
        tangent = torch.randn(7, generator=rng, dtype=torch.float64)
        gauge = Sim3.exp(tangent * torch.tensor([1.0, 1, 1, 1, 1, 1, 0]))
        s = 1.1**k if scale is None else scale[k]
        gauge = Sim3(gauge.scale * s, gauge.rotation, gauge.translation * s)
        cam_from_chunk = world_camera(gauge[None], cameras[torch.tensor(members)])
        grid = pixel_centres(*size) * resolution
        depth = torch.stack([s * exact_depth(cameras[f], grid) for f in members])
        depth = depth * (1 + noise * smooth_field(len(members), size, rng))
        confidence = 1 + torch.rand(depth.shape, generator=rng, dtype=torch.float64)
        intrinsics = resize_intrinsics(INTRINSICS.expand(len(members), 4), SIZE, size)
        priors.append(ChunkPrior(torch.tensor(members), depth, confidence, cam_from_chunk, intrinsics))
        cams.append(cam_from_chunk)
    cam_from_chunk = SE3(torch.cat([c.rotation for c in cams]), torch.cat([c.translation for c in cams]))
    mean = torch.cat([p.confidence.mean((1, 2)) for p in priors])
    observations = Observations(frame, chunk_of, cam_from_chunk, INTRINSICS.expand(len(frame), 4), mean, SIZE)
    return Room(cameras, observations, tuple(priors))


def make_graph(edges: list[tuple[int, int]]) -> ViewGraph:
    kind = torch.full((len(edges),), int(EdgeKind.TEMPORAL))
    return ViewGraph(torch.tensor(edges, dtype=torch.long).reshape(-1, 2), kind)


def make_matches(
    room: Room, graph: ViewGraph, count: int = 300, wrong: dict[int, float] | None = None, seed: int = 1
) -> tuple[Matches, Tensor]:
    """Exact matches of every edge, and which are right; `wrong` gives the share of random ones per edge."""
    rng = torch.Generator().manual_seed(seed)
    edge, pixel_i, pixel_j, right = [], [], [], []
    extent = torch.tensor(SIZE, dtype=torch.float64)
    for number, (a, b) in enumerate(graph.edges.tolist()):
        u = 1 + torch.rand(20 * count, 2, generator=rng, dtype=torch.float64) * (extent - 2)
        world = (
            room.cam_from_world[a].inverse().act(lift(u, exact_depth(room.cam_from_world[a], u), INTRINSICS))
        )
        v, z = project_with_depth(room.cam_from_world[b].act(world), INTRINSICS)
        seen = (z > 0) & ((v > 1) & (v < extent - 1)).all(-1)
        u, v = u[seen][:count], v[seen][:count]
        bad = torch.rand(len(u), generator=rng, dtype=torch.float64) < (wrong or {}).get(number, 0.0)
        v = torch.where(
            bad[:, None], 1 + torch.rand(v.shape, generator=rng, dtype=torch.float64) * (extent - 2), v
        )
        edge.append(torch.full((len(u),), number))
        pixel_i.append(u)
        pixel_j.append(v)
        right.append(~bad)
    score = 0.5 + 0.5 * torch.rand(sum(len(e) for e in edge), generator=rng, dtype=torch.float64)
    return Matches(torch.cat(edge), torch.cat(pixel_i), torch.cat(pixel_j), score), torch.cat(right)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)

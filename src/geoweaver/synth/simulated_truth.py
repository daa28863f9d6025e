"""The exact scene behind a simulated prior: cameras, a ray caster, depth maps;
and the numbered random streams."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Chunk
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, pixel_centres, project_with_depth, resize_intrinsics

Cast = Callable[[Tensor, Tensor], Tensor]
"""(origins (n 3), unit directions (n 3)) -> distance (n), inf where nothing is hit."""
DepthOf = Callable[[int], Tensor]
"""frame -> z-depth (H W) at `SceneTruth.depth_size`, 0 = sky."""


@dataclass(frozen=True)
class SceneTruth:
    """What is really there: cameras in the world, rays that can be cast, and each frame's exact depth map."""

    cam_from_world: SE3
    intrinsics: Float[Tensor, "F 4"]
    """(fx, fy, cx, cy) in pixels of `size`."""
    size: tuple[int, int]
    """(width, height) of the images that matches refer to."""
    depth_size: tuple[int, int]
    """(width, height) of the prior's depth maps."""
    cast: Cast
    depth_of: DepthOf

    def __post_init__(self) -> None:
        assert len(self.cam_from_world) == len(self.intrinsics), "one camera per frame"

    def __len__(self) -> int:
        return len(self.intrinsics)

    @property
    def depth_intrinsics(self) -> Float[Tensor, "F 4"]:
        """The intrinsics in pixels of the depth maps."""
        return resize_intrinsics(self.intrinsics, self.size, self.depth_size)


def scene_truth(
    cam_from_world: SE3,
    intrinsics: Float[Tensor, "*F 4"],
    size: tuple[int, int],
    cast: Cast,
    depth_size: tuple[int, int] | None = None,
    depth_of: DepthOf | None = None,
) -> SceneTruth:
    """A `SceneTruth` from one or F intrinsics; depth maps are cast through the pixel centres unless given."""
    every = intrinsics.expand(len(cam_from_world), 4).double()
    depth_size = depth_size or size
    depth_of = depth_of or _cast_depth(
        cam_from_world, resize_intrinsics(every, size, depth_size), depth_size, cast
    )
    return SceneTruth(cam_from_world, every, size, depth_size, cast, depth_of)


def _cast_depth(cameras: SE3, intrinsics: Tensor, size: tuple[int, int], cast: Cast) -> DepthOf:
    def depth_of(frame: int) -> Tensor:
        one = torch.tensor([frame])
        _, depth = _seen(cameras[one], intrinsics[one], pixel_centres(*size).reshape(-1, 2), cast)
        return depth.reshape(size[1], size[0])

    return depth_of


def seen_points(
    truth: SceneTruth, frame: Int[Tensor, "n"], pixel: Float[Tensor, "n 2"]
) -> tuple[Float[Tensor, "n 3"], Float[Tensor, "n"]]:
    """World point and z-depth behind each pixel; depth 0 (and the camera centre) where the ray leaves the
    scene."""
    return _seen(truth.cam_from_world[frame], truth.intrinsics[frame], pixel, truth.cast)


def _seen(camera: SE3, intrinsics: Tensor, pixel: Tensor, cast: Cast) -> tuple[Tensor, Tensor]:
    """Points and depth behind pixels of one camera, or of one camera each."""
    ray = bearing(pixel, intrinsics)
    length = torch.linalg.vector_norm(ray, dim=-1)
    # row times R is R^T times column: world_from_cam without transposing n matrices
    direction = ((ray / length[:, None])[:, None] @ camera.rotation).squeeze(1)
    centre = camera.centre.expand_as(direction)
    distance = cast(centre, direction).double()
    distance = torch.where(distance.isfinite(), distance, 0)
    return centre + distance[:, None] * direction, distance / length


def projected(
    truth: SceneTruth, frame: Int[Tensor, "n"], points: Float[Tensor, "n 3"]
) -> tuple[Float[Tensor, "n 2"], Bool[Tensor, "n"]]:
    """Pixel of each world point in its frame, and whether that lies in front of the camera and inside the
    image."""
    local = truth.cam_from_world[frame].act(points)
    pixel, z = project_with_depth(local, truth.intrinsics[frame])
    return pixel, (z > 1e-9 * local.norm(dim=-1)) & in_image(pixel, truth.size)


def in_image(pixel: Float[Tensor, "n 2"], size: tuple[int, int]) -> Bool[Tensor, "n"]:
    """Which pixels lie inside an image of this size."""
    return (pixel >= 0).all(-1) & (pixel[:, 0] < size[0]) & (pixel[:, 1] < size[1])


def visible(
    truth: SceneTruth, frame: Int[Tensor, "n"], points: Float[Tensor, "n 3"], tolerance: float = 2e-3
) -> Bool[Tensor, "n"]:
    """Whether nothing stands between the camera and the point, up to a share of their distance."""
    centre = truth.cam_from_world[frame].centre
    distance = torch.linalg.vector_norm(points - centre, dim=-1)
    direction = (points - centre) / distance.clamp_min(torch.finfo(torch.float64).tiny)[:, None]
    return torch.ge(truth.cast(centre, direction).double(), distance * (1 - tolerance))


def stream(seed: int, name: str, *number: int) -> np.random.Generator:
    """An independent random stream per effect and item, so that one knob never shifts another's draws."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), *number])


def consecutive_chunks(frames: int, size: int = 60, shared: int = 1) -> tuple[Chunk, ...]:
    """Chunks of `size` frames of which neighbours share `shared`; the last takes what is left."""
    stride = size - shared
    starts = range(0, max(frames - shared, 1), stride)
    runs = (range(s, min(s + size, frames)) for s in starts)
    return tuple(Chunk(k, tuple(run)) for k, run in enumerate(runs))

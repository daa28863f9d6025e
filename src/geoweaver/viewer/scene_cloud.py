"""The points of a run, each with the frame that saw it: what colours and stages are told by."""

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from jaxtyping import Float32, Int, UInt8
from scipy.spatial import cKDTree
from torch import Tensor

from geoweaver.errors import GeoWeaverError
from geoweaver.formats.ply import PlyCloud, read_ply
from geoweaver.geometry.camera import lift, pixel_centres
from geoweaver.results import DepthMap, FinishedRun

MOST_POINTS = 1_000_000
"""More are thinned out: what an ordinary graphics chip turns fluidly."""
_FRAMES_READ = 150
_SAMPLES = 100_000
"""Points whose frame is known, that the others ask for theirs."""
_UNREAD = 150
"""Grey of points whose image cannot be read any more."""


@dataclass(frozen=True)
class SceneCloud:
    """Points in the run's own world."""

    points: Float32[Tensor, "P 3"]
    colours: UInt8[Tensor, "P 3"]
    confidence: Float32[Tensor, "P"]
    frame: Int[Tensor, "P"]
    """A frame that saw the point; -1 where no depth tells."""

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows: Tensor) -> "SceneCloud":
        return SceneCloud(self.points[rows], self.colours[rows], self.confidence[rows], self.frame[rows])


def run_cloud(run: FinishedRun, most: int = MOST_POINTS) -> SceneCloud:
    """The fused cloud where the run folder has one, else the depth maps' own points."""
    path = run.folder / "points.ply"
    if not path.exists():
        return depth_cloud(run, most)
    cloud = thinned(read_ply(path), most)
    seen = depth_cloud(run, _SAMPLES)
    return SceneCloud(
        cloud.points,
        torch.full_like(cloud.points, _UNREAD, dtype=torch.uint8) if cloud.colours is None else cloud.colours,
        torch.ones(len(cloud)) if cloud.confidence is None else cloud.confidence,
        _frame_of_nearest(cloud.points, seen),
    )


def thinned(cloud: PlyCloud, most: int) -> PlyCloud:
    """A random choice, the same every time, in the file's order."""
    if len(cloud) <= most:
        return cloud
    rows = torch.randperm(len(cloud), generator=torch.Generator().manual_seed(0))[:most].sort().values
    others = (cloud.colours, cloud.normals, cloud.confidence)
    return PlyCloud(cloud.points[rows], *(None if column is None else column[rows] for column in others))


def depth_cloud(run: FinishedRun, most: int) -> SceneCloud:
    """Points of evenly spread depth maps, `most` of them at the most."""
    frames = spread_over(run.depths.frames, _FRAMES_READ)
    generator = torch.Generator().manual_seed(0)
    parts = [_frame_points(run, frame, most // max(len(frames), 1), generator) for frame in frames]
    return SceneCloud(
        torch.cat([torch.zeros(0, 3), *(p.points for p in parts)]),
        torch.cat([torch.zeros(0, 3, dtype=torch.uint8), *(p.colours for p in parts)]),
        torch.cat([torch.zeros(0), *(p.confidence for p in parts)]),
        torch.cat([torch.zeros(0, dtype=torch.long), *(p.frame for p in parts)]),
    )


def spread_over(frames: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Evenly spread ones, the first and the last among them."""
    if len(frames) <= most:
        return frames
    return tuple(frames[int(k)] for k in np.linspace(0, len(frames) - 1, most).round())


def frame_image(run: FinishedRun, frame: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """A frame's picture at a width; grey where its pixels cannot be read any more."""
    size = (width, max(1, round(width * run.frames.size[1] / run.frames.size[0])))
    try:
        if run.frames.pixels is None or frame in run.frames.broken:
            return np.full((size[1], size[0], 3), _UNREAD, np.uint8)
        pixels = run.frames.pixels.read(frame)
    except GeoWeaverError:
        return np.full((size[1], size[0], 3), _UNREAD, np.uint8)
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def _frame_points(run: FinishedRun, frame: int, most: int, generator: torch.Generator) -> SceneCloud:
    read: DepthMap = run.depths.read(frame)
    height, width = read.depth.shape
    rows = (read.depth.flatten() > 0).nonzero()[:, 0]
    rows = rows[torch.randperm(len(rows), generator=generator)[:most]]
    pixel = pixel_centres(width, height).reshape(-1, 2)[rows]
    seen = lift(pixel, read.depth.flatten()[rows].double(), read.intrinsics.double())
    points = run.result.cam_from_world[frame].inverse().act(seen)
    image = torch.from_numpy(frame_image(run, frame, width))
    image = (
        image if image.shape[0] == height else torch.from_numpy(cv2.resize(image.numpy(), (width, height)))
    )
    return SceneCloud(
        points.float(),
        image.reshape(-1, 3)[rows],
        read.confidence.flatten()[rows].float(),
        torch.full((len(rows),), frame),
    )


def _frame_of_nearest(points: Float32[Tensor, "P 3"], seen: SceneCloud) -> Int[Tensor, "P"]:
    """The frame of the nearest point whose frame is known."""
    if not len(seen) or not len(points):
        return torch.full((len(points),), -1)
    _, nearest = cKDTree(seen.points.numpy()).query(points.numpy(), workers=1)
    return seen.frame[torch.from_numpy(np.asarray(nearest))]

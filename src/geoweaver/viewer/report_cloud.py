"""The cloud of a report: thinned evenly, cut to where the scene is, each point with a frame that saw it."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, UInt8
from torch import Tensor

from geoweaver.formats.ply import PlyCloud
from geoweaver.geometry.camera import lift, pixel_centres, project_with_depth, sample_nearest
from geoweaver.results import FinishedRun
from geoweaver.viewer.report_pictures import frame_pixels

MOST = 200_000
"""Points in a report: 12 bytes each."""
_AGREES = 0.05
"""A frame saw a point where its depth there is the point's, up to this share."""

_WITNESSES = 80
"""Frames that are asked at most which points they saw."""


@dataclass(frozen=True)
class ReportCloud:
    """What the page draws."""

    points: Float32[Tensor, "P 3"]
    colours: UInt8[Tensor, "P 3"]
    confidence: Float32[Tensor, "P"]
    frame: Int[Tensor, "P"]
    """A frame that saw the point; -1 where none of those that were looked at did."""
    found: int
    """Points before thinning."""

    def __len__(self) -> int:
        return len(self.points)


def report_cloud(
    run: FinishedRun, cloud: PlyCloud | None, frames: list[int], most: int = MOST
) -> ReportCloud:
    """The run's fused cloud where there is one, else one lifted from the depth of `frames`."""
    if cloud is None or not len(cloud):
        return _thinned(_lifted(run, frames, 4 * most), most)
    plenty = torch.randperm(len(cloud), generator=torch.Generator().manual_seed(0))[: 5 * most].sort().values
    colours = torch.full((len(cloud), 3), 160, dtype=torch.uint8) if cloud.colours is None else cloud.colours
    confidence = torch.ones(len(cloud)) if cloud.confidence is None else cloud.confidence
    unseen = torch.full((len(plenty),), -1)
    some = ReportCloud(cloud.points[plenty], colours[plenty], confidence[plenty], unseen, len(cloud))
    thin = _thinned(some, most)
    return ReportCloud(
        thin.points, thin.colours, thin.confidence, _who_saw(thin.points, run, frames), len(cloud)
    )


def _lifted(run: FinishedRun, frames: list[int], most: int) -> ReportCloud:
    """Points of the surer half of each frame's depth."""
    known = [f for f in frames if f in set(run.depths.frames)]
    parts = [_lift_frame(run, f, max(most // max(len(known), 1), 1)) for f in known]
    empty = (
        torch.zeros(0, 3),
        torch.zeros(0, 3, dtype=torch.uint8),
        torch.zeros(0),
        torch.zeros(0, dtype=torch.long),
    )
    points, colours, confidence, frame = (torch.cat(c) for c in zip(empty, *parts, strict=True))
    return ReportCloud(points, colours, confidence, frame, len(points))


def _lift_frame(run: FinishedRun, frame: int, most: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    import cv2

    shown = run.depths.read(frame)
    height, width = shown.depth.shape
    sure = shown.confidence[shown.depth > 0]
    keep = (shown.depth > 0) & (shown.confidence >= (sure.median() if len(sure) else 0))
    rows = keep.flatten().nonzero()[:, 0]
    generator = torch.Generator().manual_seed(frame)
    rows = rows[torch.randperm(len(rows), generator=generator)[:most]]
    pixel = pixel_centres(width, height).reshape(-1, 2)[rows]
    points = lift(pixel, shown.depth.double().flatten()[rows], shown.intrinsics.double())
    picture = frame_pixels(run, frame)
    if picture is None:
        picture = np.full((height, width, 3), 160, np.uint8)
    picture = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    world = run.result.cam_from_world[frame].inverse().act(points).float()
    colours = torch.from_numpy(picture.reshape(-1, 3))[rows]
    return world, colours, shown.confidence.float().flatten()[rows], torch.full((len(rows),), frame)


def _thinned(cloud: ReportCloud, most: int) -> ReportCloud:
    """Without far outliers, and evenly spread: one point a cell, cells as small as the budget allows."""
    keep = _inside(cloud.points).nonzero()[:, 0]
    if len(keep) > most:
        keep = keep[_one_per_cell(cloud.points[keep].numpy(), most)]
    return ReportCloud(
        cloud.points[keep], cloud.colours[keep], cloud.confidence[keep], cloud.frame[keep], cloud.found
    )


def _inside(points: Float32[Tensor, "P 3"]) -> Tensor:
    """Points within twice the box that holds all but the outermost two percent a side."""
    if not len(points):
        return torch.zeros(0, dtype=torch.bool)
    ordered = points.sort(0).values
    low, high = ordered[int(0.02 * (len(points) - 1))], ordered[int(0.98 * (len(points) - 1))]
    margin = 0.5 * (high - low).max()
    return ((points >= low - margin) & (points <= high + margin)).all(-1)


def _one_per_cell(points: np.ndarray, most: int) -> Tensor:
    """Rows of at most `most` points; the cell's size is found by halving."""
    low = points.min(0)
    extent = float((points - low).max())
    small, large, best = extent / 65536, extent, np.arange(min(len(points), 1))
    for _ in range(12):
        cell = (small * large) ** 0.5
        key = ((points - low) / cell).astype(np.int64) @ np.array([1, 1 << 20, 1 << 40])
        rows = np.unique(key, return_index=True)[1]
        if len(rows) > most:
            small = cell
        else:
            large, best = cell, rows
            if len(rows) > 0.9 * most:
                break
    return torch.from_numpy(np.sort(best))


def _who_saw(points: Float32[Tensor, "P 3"], run: FinishedRun, frames: list[int]) -> Int[Tensor, "P"]:
    """The frame whose depth fits each point best."""
    best = torch.full((len(points),), _AGREES)
    owner = torch.full((len(points),), -1)
    known = set(run.depths.frames)
    some = [f for f in frames if f in known]
    for frame in some[:: -(-len(some) // _WITNESSES) or 1]:
        off = _miss(points, run, frame)
        closer = off < best
        best[closer], owner[closer] = off[closer], frame
    return owner


def _miss(points: Float32[Tensor, "P 3"], run: FinishedRun, frame: int) -> Float[Tensor, "P"]:
    """By which share of its depth a point is off what a frame saw there; infinite if unseen."""
    shown = run.depths.read(frame)
    pose = run.result.cam_from_world[frame].to(torch.float32)
    local = points @ pose.rotation.mT + pose.translation
    pixel, z = project_with_depth(local, shown.intrinsics.float())
    seen, valid = sample_nearest(shown.depth.float(), pixel)
    return torch.where(valid & (z > 0), (seen / z - 1).abs(), torch.inf)

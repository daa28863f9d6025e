"""One coloured point cloud from all depth maps: read `fuse_cloud` first (docs/fusion.md)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from geoweaver.datatypes import Frames, Reconstruction, ViewGraph
from geoweaver.engine import Engine, LocalEngine
from geoweaver.errors import InputError
from geoweaver.formats.ply import PlyCloud
from geoweaver.fusion.agreement import judge_view
from geoweaver.fusion.bending import bend_views
from geoweaver.fusion.config import DEFAULTS, FusionConfig
from geoweaver.fusion.neighbours import choose_neighbours
from geoweaver.fusion.surfaces import surface_of
from geoweaver.fusion.survey import survey_views
from geoweaver.fusion.views import DepthView, ViewReader
from geoweaver.fusion.voxels import Heap, Merger, collect, empty_heap
from geoweaver.fusion.witnesses import Surfels, contradicted
from geoweaver.results import DepthSource

BLOCK = 8
"""Consecutive frames that one worker judges; with their neighbours at most 104 depth maps in memory."""
log = logging.getLogger(__name__)


def fuse_cloud(
    frames: Frames,
    result: Reconstruction,
    depths: DepthSource,
    config: FusionConfig = DEFAULTS,
    engine: Engine | None = None,
    graph: ViewGraph | None = None,
) -> PlyCloud:
    """Points on which several trusted views agree, one per voxel; the same bytes with any engine."""
    engine = engine or LocalEngine()
    reader = ViewReader(frames, result, depths, config)
    survey = survey_views(reader, engine)
    if not len(survey):
        return _cloud(empty_heap(), np.zeros(3))
    neighbours = choose_neighbours(survey, config.neighbours, graph)
    reader, tolerance = bend_views(reader, survey, neighbours, engine)
    grid = _Grid(
        survey.centre.mean(0), config.fineness * float(np.median(survey.footprint)), np.median(survey.median)
    )
    jobs = [(int(survey.frame[k]), [int(survey.frame[n]) for n in near]) for k, near in enumerate(neighbours)]
    blocks = [jobs[k : k + BLOCK] for k in range(0, len(jobs), BLOCK)]
    merger = Merger(grid.size, config.target)
    for heap in engine.map(_FuseBlock(reader, grid, tolerance, config), blocks, title="cloud"):
        merger.add(heap)
    heap = merger.finish()
    if config.second_look:
        surfels = Surfels(heap.mean + grid.origin, _normals(heap), merger.size)
        heap = heap[~contradicted(surfels, reader, survey.frame.tolist(), tolerance, engine)]
    log.info("cloud: %d points, voxels %.3g, depths within %.1f %%", len(heap), merger.size, 100 * tolerance)
    return _cloud(heap, grid.origin)


@dataclass(frozen=True)
class _Grid:
    """Where voxels are counted from, the smallest ones' size, and the depth whose points weigh one."""

    origin: Float[np.ndarray, "3"]
    size: float
    depth: float


@dataclass(frozen=True)
class _FuseBlock:
    """What a worker does with consecutive frames: their agreed points, summed in the smallest voxels."""

    reader: ViewReader
    grid: _Grid
    tolerance: float
    config: FusionConfig

    def __call__(self, block: list[tuple[int, list[int]]]) -> Heap:
        needed = sorted({f for frame, near in block for f in (frame, *near)})
        views = {frame: self.reader.read(frame) for frame in needed}
        parts = [self._points(frame, views[frame], [views[f] for f in near]) for frame, near in block]
        place, look = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return collect(place, look, self.grid.size)

    def _points(
        self, frame: int, view: DepthView, others: Sequence[DepthView]
    ) -> tuple[Float[np.ndarray, "n 4"], Float[np.ndarray, "n 8"]]:
        """A view's agreed points as rows of a heap."""
        height, width = view.depth.shape
        try:
            colours = self.reader.read_colours(frame, (width, height))
        except InputError as error:
            log.warning("%s", error)
            return np.zeros((0, 4)), np.zeros((0, 8), np.float32)
        solid, normals = surface_of(view.depth, view.intrinsics, self.config)
        verdict = judge_view(view, others, self.tolerance, self.config)
        kept = (view.depth > 0) & solid & verdict.kept(view.confidence, self.config)
        local = verdict.points[kept]
        world = (local - view.translation) @ view.rotation - self.grid.origin
        sure, agree = view.confidence[kept].astype(np.float64), verdict.agree[kept]
        objecting = verdict.through[kept] + verdict.hidden[kept]
        # an error grows with the depth: nearer views know better
        weight = sure * (1 + agree) * (self.grid.depth / local[:, 2]) ** 2
        support = sure * (1 + agree) / (1 + agree + objecting)
        facing = normals[kept] @ view.rotation
        look = np.concatenate([colours[kept], facing, support[:, None]], 1) * weight[:, None]
        place = np.concatenate([weight[:, None], world * weight[:, None]], 1)
        ones = np.ones((len(look), 1))
        return place, np.concatenate([look, ones], 1).astype(np.float32)


def _normals(heap: Heap) -> Float[np.ndarray, "v 3"]:
    """Of length one, 0 where opposite ones cancel."""
    length = np.linalg.norm(heap.look[:, 3:6], axis=1, keepdims=True)
    return np.asarray(heap.look[:, 3:6] / np.where(length > 0, length, 1))


def _cloud(heap: Heap, origin: Float[np.ndarray, "3"]) -> PlyCloud:
    """Means of the voxels' sums."""
    mean = heap.look[:, :7] / heap.place[:, :1]
    return PlyCloud(
        torch.from_numpy((heap.mean + origin).astype(np.float32)),
        torch.from_numpy(mean[:, :3].round().clip(0, 255).astype(np.uint8)),
        torch.from_numpy(_normals(heap).astype(np.float32)),
        torch.from_numpy(mean[:, 6].clip(0, 1).astype(np.float32)),
    )

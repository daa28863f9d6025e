"""Keep a finished run in its folder, and open it again: here, later, or on another machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from geoweaver.datatypes import Camera, Frames, Matches, Reconstruction, ViewGraph
from geoweaver.errors import InputError
from geoweaver.features import FeatureConfig, FrameFeatures
from geoweaver.formats.files import is_file, place
from geoweaver.formats.json_document import read_json
from geoweaver.formats.run_folder import EXPECTED
from geoweaver.frames import FramesConfig, open_frames, rectify_frames
from geoweaver.frames.kept import KeptPixels
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.geometry.grid import field_over_image
from geoweaver.lens_field import LensFields
from geoweaver.placement import place_frames, placed_by_prior
from geoweaver.results import DepthMap, FinishedRun, StageView
from geoweaver.stage_views import stage_views
from geoweaver.store import PriorStore, Store, restore
from geoweaver.weave import WeaveConfig, Woven

STAGE, PIECE = "result", "run"


@dataclass(frozen=True)
class SavedRun:
    """What is kept of a finished run; depth, matches, features and images stay where they are."""

    names: tuple[str, ...]
    timestamps: Float[Tensor, "F"]
    camera: Int[Tensor, "F"]
    keyframe: Bool[Tensor, "F"]
    cameras: tuple[Camera, ...]
    size: tuple[int, int]
    broken: tuple[int, ...]
    digests: tuple[str, ...]
    result: Reconstruction
    graph: ViewGraph
    rejected: Bool[Tensor, "E"]
    chunk: Int[Tensor, "F"]
    row: Int[Tensor, "F"]
    """Row of each frame in its chunk's prior."""
    world_per_chunk: Float[Tensor, "F"]
    """World units per unit of the prior's depth, before the affine correction."""
    depth_scale: Float[Tensor, "F"]
    depth_shift: Float[Tensor, "F"]
    views: tuple[StageView, ...]
    priors: tuple[tuple[str, str, int], ...]
    """Piece, key and part of every chunk's prior."""
    shards: tuple[tuple[str, str], ...]
    """Piece and key of every shard of matches, in order of their edges."""
    first_edge: tuple[int, ...]
    depth_bend: Float[Tensor, "F r c"] | None = None
    """Log of a factor on the prior's depth, at nodes over the image."""
    lenses: LensFields | None = None
    """What the lenses' models leave, as far as it is known; the cameras are those of straightened pixels."""


def save_run(
    frames: Frames,
    graph: ViewGraph,
    woven: Woven,
    config: WeaveConfig,
    priors: PriorStore,
    shards: Sequence[tuple[str, str]],
    first_edge: Sequence[int],
) -> SavedRun:
    """All that later readers need of a run."""
    tables = woven.tables
    seen, observation = placed_by_prior(frames, woven), tables.canonical.clamp(min=0)
    chunk = torch.where(seen, tables.observations.chunk[observation], -1)
    rejected = torch.zeros(len(graph), dtype=torch.bool)
    rejected[list(rejected_edges(woven))] = True
    world = woven.stage2.world_from_chunk.scale / tables.units
    placed = place_frames(frames, woven, seen, priors.reason)
    return SavedRun(
        frames.names, frames.timestamps, frames.camera, frames.keyframe, frames.cameras, frames.size,
        frames.broken, frames.digests, placed, graph, rejected, chunk,
        _row_in_chunk(tables.observations.chunk)[observation], world[chunk.clamp(min=0)],
        woven.state.depth_scale, woven.state.depth_shift, stage_views(woven, config),
        priors.places, tuple(shards), tuple(first_edge), woven.state.depth_bend,
    )  # fmt: skip


def rejected_edges(woven: Woven) -> tuple[int, ...]:
    """Edges that the last judgement did not believe."""
    judged = [r.rejected_edges for r in woven.reports if r.name in ("chunk alignment", "coarse refinement")]
    return judged[-1] if judged else ()


def _row_in_chunk(chunk: Int[Tensor, "N"]) -> Int[Tensor, "N"]:
    """Observations lie chunk by chunk: their place within."""
    count = torch.bincount(chunk)
    return torch.arange(len(chunk)) - (count.cumsum(0) - count)[chunk]


@dataclass(frozen=True)
class RunDepths:
    """Final depth: the prior's, in world units, bent and affinely corrected as Stage 3 found."""

    saved: SavedRun
    priors: PriorStore

    @property
    def frames(self) -> tuple[int, ...]:
        """Frames that a prior saw."""
        return tuple((self.saved.chunk >= 0).nonzero().squeeze(1).tolist())

    def read(self, frame: int) -> DepthMap:
        """One frame's depth and confidence."""
        saved, chunk = self.saved, int(self.saved.chunk[frame])
        if chunk < 0:
            raise InputError(f"frame {frame} has no depth: no prior saw it")
        prior = self.priors.read(chunk, saved.row[frame : frame + 1])
        raw = prior.depth[0].double()
        if saved.depth_bend is not None:
            raw = raw * field_over_image(saved.depth_bend[frame], *raw.shape).exp()
        world = saved.depth_scale[frame] * saved.world_per_chunk[frame] * raw + saved.depth_shift[frame]
        depth = torch.where((raw > 0) & (world > 0), world, 0.0).float()
        own = (depth.shape[1], depth.shape[0])
        intrinsics = resize_intrinsics(saved.result.intrinsics[frame], saved.size, own)
        return DepthMap(depth, prior.confidence[0].float(), intrinsics)


@dataclass(frozen=True)
class RunMatches:
    """Matches by edge, from their shards."""

    saved: SavedRun
    store: Store

    def read(self, edge: int) -> Matches:
        """All matches of one edge."""
        shard = int(np.searchsorted(self.saved.first_edge, edge, side="right")) - 1
        artifact = self.store.load("matches", *self.saved.shards[shard])
        every = restore(Matches, artifact.tensors, artifact.meta)
        low, high = torch.searchsorted(every.edge, torch.tensor([edge, edge + 1])).tolist()
        columns = (every.edge, every.pixel_i, every.pixel_j, every.score)
        return Matches(*(c[low:high] for c in columns))


class RunInput:
    """The recording that a run was made from, opened when somebody first asks for what the folder lacks."""

    def __init__(
        self, input: Path, options: FramesConfig, digests: tuple[str, ...], cameras: tuple[Camera, ...]
    ) -> None:
        self.input, self.options, self.digests, self.cameras = input, options, digests, cameras

    @cached_property
    def _frames(self) -> Frames:
        frames = open_frames(self.input, self.options)
        lenses = [camera.lens for camera in self.cameras]
        # a run without calibration may have found the lenses itself
        if len(lenses) == len(frames.cameras) and lenses != [camera.lens for camera in frames.cameras]:
            frames = rectify_frames(frames, lenses, self.options)
        if frames.digests != self.digests:
            raise InputError(
                f"{place(self.input)} has changed since the run: run geoweaver reconstruct again"
            )
        return frames

    @property
    def _opened(self) -> Any:
        return self._frames.pixels

    def mask(self, frame: int) -> Bool[np.ndarray, "height width"]:
        """True where the pixel shows the static world."""
        assert self._frames.masks is not None, "only runs with masks ask for them"
        return self._frames.masks.read(frame)

    def read(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        """The rectified image."""
        image: np.ndarray = self._opened.read(frame)
        return image

    def read_original(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        """Upright, at the original size, not rectified."""
        image: np.ndarray = self._opened.read_original(frame)
        return image


@dataclass(frozen=True)
class RunMasks:
    """The user's masks, alpha and padding, from where they lie."""

    source: RunInput

    def read(self, frame: int) -> Bool[np.ndarray, "height width"]:
        """Usable pixels of the rectified image."""
        return self.source.mask(frame)


def load_run(folder: Path) -> FinishedRun:
    """Open a finished run folder; nothing large is read before somebody asks for it."""
    if not is_file(folder / "run.json"):
        raise InputError(f"{place(folder)} holds no run.json: give the folder of a finished run")
    summary = read_json(folder / "run.json", EXPECTED)
    if "result" not in summary:
        raise InputError(f"{place(folder)} was made by an older version: run geoweaver reconstruct again")
    store = Store.reader(folder / "work")
    artifact = store.load(STAGE, PIECE, summary["result"])
    saved = restore(SavedRun, artifact.tensors, artifact.meta)
    return open_saved(folder, saved, store, summary)


def open_saved(folder: Path, saved: SavedRun, store: Store, summary: dict[str, Any]) -> FinishedRun:
    """A run's nouns over the artifacts in its store."""
    options = frames_config(summary["config"]["frames"])
    source = RunInput(Path(summary["input"]), options, saved.digests, saved.cameras)
    # masks are not kept in the folder: a run that was moved away from them does without
    masked = summary.get("masked", options.masks is not None)
    there = source.input.exists() and (options.masks is None or options.masks.exists())
    masks = RunMasks(source) if masked and there else None
    frames = Frames(
        saved.names, saved.timestamps, saved.camera, saved.keyframe, saved.cameras, saved.size,
        KeptPixels(source, store, saved.digests), masks, saved.broken, saved.digests,
    )  # fmt: skip
    features = FrameFeatures(frames, store, FeatureConfig(**summary["config"]["features"]))
    priors = PriorStore(store, "priors", saved.priors)
    return FinishedRun(
        folder, frames, saved.result, saved.graph, saved.rejected, saved.chunk, saved.depth_scale,
        saved.depth_shift, saved.views, RunDepths(saved, priors), RunMatches(saved, store), features, summary,
    )  # fmt: skip


def frames_config(saved: dict[str, Any]) -> FramesConfig:
    """The options that a run's frames were opened with."""
    paths = {k: Path(saved[k]) for k in ("masks", "timestamps", "frames") if saved[k] is not None}
    return FramesConfig(**{**saved, **paths})


def rescale_run(saved: SavedRun, factor: float) -> SavedRun:
    """The same run with every length multiplied: metres from a known distance."""
    result = saved.result
    views = tuple(replace(v, cam_from_world=_scaled(v.cam_from_world, factor)) for v in saved.views)
    sigma = result.sigma * torch.tensor([factor, 1.0], dtype=result.sigma.dtype)
    result = replace(result, cam_from_world=_scaled(result.cam_from_world, factor), sigma=sigma)
    return replace(
        saved, result=result, views=views,
        world_per_chunk=saved.world_per_chunk * factor, depth_shift=saved.depth_shift * factor,
    )  # fmt: skip


def _scaled(cameras: SE3, factor: float) -> SE3:
    return SE3(cameras.rotation, cameras.translation * factor)

"""The way from pixels to cameras and depth, one stage a line. Read `reconstruct` first."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import Chunk, Frames, Matches, Observations, Reconstruction, StageReport, ViewGraph
from geoweaver.engine import Engine, find_engine
from geoweaver.engine.local import available_cores
from geoweaver.export.run_folder import RunRecord, write_run
from geoweaver.features import (
    DescriptorConfig,
    FeatureConfig,
    FrameFeatures,
    cached_descriptors,
    compute_features,
)
from geoweaver.frames import (
    FramesConfig,
    KeyframeConfig,
    keep_pixels,
    open_frames,
    select_keyframes,
    split_chunks,
)
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.graph import GraphConfig, build_graph
from geoweaver.matching import SamplingConfig
from geoweaver.matching.protocol import Matcher, find_matcher
from geoweaver.matching.two_view import count_inliers
from geoweaver.placement import place_frames
from geoweaver.priors import PriorModel, find_prior
from geoweaver.store import (
    NOT_IN_KEY,
    PriorStore,
    Store,
    artifact_key,
    cached_noun,
    cached_priors,
    digest_of,
    restore,
)
from geoweaver.weave import WeaveConfig, weave

log = logging.getLogger(__name__)

EDGES_PER_SHARD = 16
"""Edges that one worker matches and keeps at once: what a killed run repeats at the most."""
VERSION = 1
"""Goes up when this file makes something else of the same input."""


@dataclass(frozen=True)
class Config:
    """Settings of a whole run; each part is documented where it is used."""

    frames: FramesConfig = field(default_factory=FramesConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    descriptors: DescriptorConfig = field(default_factory=DescriptorConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    weave: WeaveConfig = field(default_factory=lambda: WeaveConfig(SamplingConfig(max_per_pair=2000)))
    chunk_size: int = 60
    """Keyframes per chunk; neighbours share one."""
    fixed_stride: bool = False
    """The paper's chunks: borders stay where counting puts them."""
    prior: str = "sfm"
    """NAME or NAME:PATH of the geometric prior."""
    matcher: str = "classical"
    """NAME or NAME:PATH of the matcher."""
    seed: int = 0
    """Same seed, same input: same bytes."""
    engine: str = field(default="local", metadata=NOT_IN_KEY)
    """local or ray."""
    workers: int = field(default=0, metadata=NOT_IN_KEY)
    """Processes; 0: one per core."""


def reconstruct(input: Path, out: Path, config: Config) -> Reconstruction:
    """Cameras of every frame of a video or a folder of images; a killed run goes on where it stopped."""
    clock = _Clock()
    with Store.open(out / "work") as store:
        engine = find_engine(config.engine, config.workers or available_cores())
        frames = select_keyframes(
            open_frames(input, config.frames), config.keyframes, store=store, engine=engine
        )
        frames = keep_pixels(frames, store, engine)
        clock.lap("frames")
        features = compute_features(frames, store, config.features, engine)
        clock.lap("features")
        chunks = split_chunks(frames, config.chunk_size, fixed=config.fixed_stride)
        graph = _graph(frames, features, chunks, store, engine, config)
        clock.lap("graph")
        matches = _matches(frames, features, graph, store, engine, find_matcher(*_named(config.matcher)))
        clock.lap("matches")
        priors = _priors(frames, features, chunks, store, engine, find_prior(config.prior), config)
        clock.lap("priors")
        observations = gather_observations(priors, frames.size)
        calibrated = all(camera.calibrated for camera in frames.cameras)
        woven = weave(
            observations, graph, matches, priors.read, frames.camera, calibrated, config.weave, config.seed
        )
        clock.lap("weave")
        placed = place_frames(frames, woven)
        record = RunRecord(config, frames, graph, placed, woven.reports, tuple(clock.laps), clock.total())
        write_run(out, record)
    return placed


def _graph(
    frames: Frames,
    features: FrameFeatures,
    chunks: Sequence[Chunk],
    store: Store,
    engine: Engine,
    config: Config,
) -> ViewGraph:
    """Temporal and verified look-alike pairs, compactly selected."""
    keyframes = frames.keyframe.nonzero()[:, 0].tolist()
    found = cached_descriptors(features, keyframes, config.descriptors)
    descriptors = torch.zeros(len(frames), found.shape[1], dtype=found.dtype)
    descriptors[keyframes] = found
    inputs = [features.key(k) for k in keyframes] + [digest_of(chunks)]
    key = artifact_key("graph", VERSION, [config.graph, config.descriptors], inputs)

    def verify(pairs: Int[Tensor, "p 2"]) -> Int[Tensor, "p"]:
        rows = pairs.tolist()
        blocks = [rows[k : k + 32] for k in range(0, len(rows), 32)]
        task = _Verify(features)
        return torch.cat(
            list(engine.map(task, blocks, title="verified pairs")) or [torch.zeros(0, dtype=torch.long)]
        )

    compute = lambda: build_graph(chunks, frames.camera, descriptors, config.graph, verify)  # noqa: E731
    return cached_noun(store, ViewGraph, "graph", "graph", key, compute)[0]


@dataclass(frozen=True)
class _Verify:
    """What a worker does with a block of candidate pairs."""

    features: FrameFeatures

    def __call__(self, block: list[list[int]]) -> Tensor:
        return count_inliers(self.features.read, [(i, j) for i, j in block])


def _matches(
    frames: Frames, features: FrameFeatures, graph: ViewGraph, store: Store, engine: Engine, matcher: Matcher
) -> Matches:
    """Dense matches of every edge, in shards."""
    edges = [(e, int(i), int(j)) for e, (i, j) in enumerate(graph.edges.tolist())]
    shards = [edges[k : k + EDGES_PER_SHARD] for k in range(0, len(edges), EDGES_PER_SHARD)]
    task = _MatchShard(frames, features, store, matcher)
    kept = [store.load("matches", *place) for place in engine.map(task, shards, title="matches")]
    parts = [_no_matches(), *(restore(Matches, artifact.tensors, artifact.meta) for artifact in kept)]
    columns = ("edge", "pixel_i", "pixel_j", "score")
    return Matches(*(torch.cat([getattr(p, c) for p in parts]) for c in columns))


def _no_matches() -> Matches:
    nowhere = torch.zeros(0, 2, dtype=torch.float64)
    return Matches(torch.zeros(0, dtype=torch.long), nowhere, nowhere, nowhere[:, 0])


@dataclass(frozen=True)
class _MatchShard:
    """What a worker does with a shard of edges."""

    frames: Frames
    features: FrameFeatures
    store: Store
    matcher: Matcher

    def __call__(self, shard: list[tuple[int, int, int]]) -> tuple[str, str]:
        inputs = [self.features.key(f) for _, i, j in shard for f in (i, j)] + [digest_of(shard)]
        key = artifact_key("matches", self.matcher.version, self.matcher, inputs)
        piece = f"shard-{shard[0][0]:06}"
        compute = lambda: self.matcher.match(self.frames, self.features.read, shard)  # noqa: E731
        cached_noun(self.store, Matches, "matches", piece, key, compute)
        return piece, key


def _priors(
    frames: Frames,
    features: FrameFeatures,
    chunks: Sequence[Chunk],
    store: Store,
    engine: Engine,
    prior: PriorModel,
    config: Config,
) -> PriorStore:
    """The prior's sound pieces, chunk by chunk."""
    context = prior.prepare(frames, chunks, features.read, config.workers or available_cores())
    task = _PredictChunk(features, store, prior, context, config.prior)
    kept = list(engine.map(task, list(chunks), title="priors"))
    return PriorStore.index(store, "priors", kept)


@dataclass(frozen=True)
class _PredictChunk:
    """What a worker does with a chunk."""

    features: FrameFeatures
    store: Store
    prior: PriorModel
    context: Any
    name: str

    def __call__(self, chunk: Chunk) -> tuple[str, str]:
        inputs = [self.features.key(f) for f in chunk.frames] + [digest_of(chunk)]
        key = artifact_key(
            "priors", VERSION, [self.name, _identity(self.prior), _identity(self.context)], inputs
        )
        piece = f"chunk-{chunk.index:04}"
        cached_priors(self.store, "priors", piece, key, lambda: self.prior.predict(chunk, self.context))
        return piece, key


def _identity(value: Any) -> Any:
    """What of a prior or its context belongs into a key: its own `identity` where it has one."""
    return value.identity() if hasattr(value, "identity") else value


def gather_observations(priors: PriorStore, size: tuple[int, int]) -> Observations:
    """The index over all sound pieces, intrinsics in pixels of the working images."""
    parts = []
    for k in range(len(priors)):
        prior = priors.read(k)
        valid = prior.depth > 0
        mean = (prior.confidence * valid).sum((1, 2)).double() / valid.sum((1, 2)).clamp(min=1)
        own = (prior.depth.shape[2], prior.depth.shape[1])
        intrinsics = resize_intrinsics(prior.intrinsics.double(), own, size)
        cameras = prior.cam_from_chunk
        parts.append(
            (
                prior.frame,
                torch.full_like(prior.frame, k),
                cameras.rotation,
                cameras.translation,
                intrinsics,
                mean,
            )
        )
    empty = (torch.zeros(0, dtype=torch.long),) * 2 + tuple(
        torch.zeros(0, *s, dtype=torch.float64) for s in ((3, 3), (3,), (4,), ())
    )
    frame, chunk, rotation, translation, intrinsics, mean = (
        torch.cat(c) for c in zip(empty, *parts, strict=True)
    )
    cameras = SE3(rotation.double(), translation.double())
    return Observations(frame, chunk, cameras, intrinsics, mean, size)


def _named(text: str) -> tuple[str, str | None]:
    """NAME[:PATH]."""
    name, _, path = text.partition(":")
    return name, path or None


class _Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.begun = self.last = time.perf_counter()
        self.laps: list[StageReport] = []

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps.append(StageReport(name, why_stopped="done", seconds=now - self.last))
        log.info("%s: %.1f s", name, now - self.last)
        self.last = now

    def total(self) -> float:
        return time.perf_counter() - self.begun

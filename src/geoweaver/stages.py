"""Each stage over all of its pieces, cached in the store: the same bytes for any number of workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.datatypes import Chunk, Frames, Matches, Observations, ViewGraph
from geoweaver.engine import Engine
from geoweaver.features import FrameFeatures, Retriever
from geoweaver.frames import frames_by, split_chunks, tie_strength_from_pairs
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.graph import GraphConfig, build_graph
from geoweaver.matching.protocol import Matcher
from geoweaver.matching.two_view import count_inliers
from geoweaver.priors import PriorModel
from geoweaver.priors.protocol import Explains, LearnsFirst
from geoweaver.store import (
    PriorStore,
    Store,
    artifact_key,
    cached_noun,
    cached_priors,
    digest_of,
    restore,
)

EDGES_PER_SHARD = 16
"""Edges that one worker matches and keeps at once: what a killed run repeats at the most."""
PAIRS_PER_BLOCK = 32
TIE_REACH = 3
"""A border's tie to either side is measured to the keyframe so far away."""
VERSION = 1
"""Goes up when this file makes something else of the same input."""


@dataclass(frozen=True)
class _Ties:
    """How well each frame hangs together with its neighbours."""

    strength: Float[Tensor, "F"]


def cut_chunks(
    frames: Frames, features: FrameFeatures, store: Store, engine: Engine, size: int, fixed: bool
) -> tuple[Chunk, ...]:
    """Chunks that share one frame; a border moves to where the sequence hangs together best, unless fixed."""
    if fixed or int(frames.keyframe.sum()) <= size:
        return split_chunks(frames, size, fixed=fixed)
    keyframe = frames.keyframe.tolist()
    rows = [[i for i in row if keyframe[i]] for row in frames_by(frames.camera)]
    pairs = [pair for row in rows for pair in zip(row, row[TIE_REACH:], strict=False)]
    inputs = [features.key(f) for row in rows for f in row]
    key = artifact_key("ties", VERSION, [TIE_REACH, rows, len(frames)], inputs)

    def compute() -> _Ties:
        inliers = _count_inliers(features, engine, torch.tensor(pairs).reshape(-1, 2))
        i, j = [a for a, _ in pairs], [b for _, b in pairs]
        return _Ties(tie_strength_from_pairs(i, j, inliers.tolist(), len(frames)))

    ties = cached_noun(store, _Ties, "graph", "ties", key, compute)[0]
    return split_chunks(frames, size, tie_strength=ties.strength)


def view_graph(
    frames: Frames,
    features: FrameFeatures,
    chunks: Sequence[Chunk],
    store: Store,
    engine: Engine,
    config: GraphConfig,
    retriever: Retriever,
) -> ViewGraph:
    """Temporal and verified look-alike pairs, compactly selected."""
    keyframes = frames.keyframe.nonzero()[:, 0].tolist()
    found = retriever.describe(features, keyframes, engine)
    descriptors = torch.zeros(len(frames), found.shape[1], dtype=found.dtype)
    descriptors[keyframes] = found
    inputs = [features.key(k) for k in keyframes] + [digest_of([chunks, keyframes, frames.chain])]
    key = artifact_key("graph", VERSION, [config, retriever], inputs)

    def verify(pairs: Int[Tensor, "p 2"]) -> Int[Tensor, "p"]:
        return _count_inliers(features, engine, pairs)

    compute = lambda: build_graph(chunks, frames.chain, descriptors, config, verify)  # noqa: E731
    return cached_noun(store, ViewGraph, "graph", "graph", key, compute)[0]


def _count_inliers(features: FrameFeatures, engine: Engine, pairs: Int[Tensor, "p 2"]) -> Int[Tensor, "p"]:
    rows = pairs.tolist()
    blocks = [rows[k : k + PAIRS_PER_BLOCK] for k in range(0, len(rows), PAIRS_PER_BLOCK)]
    counts = list(engine.map(_Verify(features), blocks, title="graph: pairs"))
    return torch.cat(counts) if counts else torch.zeros(0, dtype=torch.long)


@dataclass(frozen=True)
class _Verify:
    """What a worker does with a block of candidate pairs."""

    features: FrameFeatures

    def __call__(self, block: list[list[int]]) -> Tensor:
        return count_inliers(self.features.read, [(i, j) for i, j in block])


@dataclass(frozen=True)
class MatchShards:
    """Where the matches of a run lie."""

    store: Store
    places: tuple[tuple[str, str], ...]
    """Piece and key of each shard, in order of their edges."""
    first_edge: tuple[int, ...]

    def load(self) -> Matches:
        """All of them as one table."""
        kept = [self.store.load("matches", *place) for place in self.places]
        parts = [_no_matches(), *(restore(Matches, artifact.tensors, artifact.meta) for artifact in kept)]
        columns = ("edge", "pixel_i", "pixel_j", "score")
        return Matches(*(torch.cat([getattr(p, c) for p in parts]) for c in columns))


def dense_matches(
    frames: Frames, features: FrameFeatures, graph: ViewGraph, store: Store, engine: Engine, matcher: Matcher
) -> MatchShards:
    """Dense matches of every edge, in shards."""
    edges = [(e, int(i), int(j)) for e, (i, j) in enumerate(graph.edges.tolist())]
    shards = [edges[k : k + EDGES_PER_SHARD] for k in range(0, len(edges), EDGES_PER_SHARD)]
    task = _MatchShard(frames, features, store, matcher)
    places = tuple(engine.map(task, shards, title="matches"))
    return MatchShards(store, places, tuple(shard[0][0] for shard in shards))


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


def chunk_priors(
    frames: Frames,
    features: FrameFeatures,
    chunks: Sequence[Chunk],
    store: Store,
    engine: Engine,
    prior: PriorModel,
    name: str,
    workers: int,
) -> PriorStore:
    """The prior's sound pieces, chunk by chunk."""
    context = _prepared(frames, features, chunks, store, prior, name, workers)
    task = _PredictChunk(features, store, prior, context, name)
    kept = list(engine.map(task, list(chunks), title="priors"))
    return PriorStore.index(store, "priors", kept, getattr(context, "notes", ()))


def _prepared(
    frames: Frames,
    features: FrameFeatures,
    chunks: Sequence[Chunk],
    store: Store,
    prior: PriorModel,
    name: str,
    workers: int,
) -> Any:
    """What all chunks share, learnt once."""
    if not isinstance(prior, LearnsFirst):
        return prior.prepare(frames, chunks, features.read, workers)
    inputs = [features.key(f) for chunk in chunks for f in chunk.frames] + [
        digest_of([chunks, frames.camera, frames.size])
    ]
    key = artifact_key("priors", VERSION, [*_named(prior, name), frames.cameras], inputs)
    learn = lambda: prior.learn(frames, chunks, features.read, workers)  # noqa: E731
    learnt = cached_noun(store, prior.learnt, "priors", "shared", key, learn)[0]
    return prior.context(frames, features.read, learnt)


@dataclass(frozen=True)
class _PredictChunk:
    """What a worker does with a chunk."""

    features: FrameFeatures
    store: Store
    prior: PriorModel
    context: Any
    name: str

    def __call__(self, chunk: Chunk) -> tuple[str, str]:
        camera = self.features.frames.camera[list(chunk.frames)]
        inputs = [self.features.key(f) for f in chunk.frames] + [digest_of([chunk, camera])]
        identity = [*_named(self.prior, self.name), _identity(self.context)]
        key = artifact_key("priors", VERSION, identity, inputs)
        piece = f"chunk-{chunk.index:04}"
        ask = self.prior.estimate if isinstance(self.prior, Explains) else self.prior.predict
        cached_priors(self.store, "priors", piece, key, lambda: ask(chunk, self.context))
        return piece, key


def _named(prior: PriorModel, name: str) -> list[Any]:
    """A prior in a key; one that knows its identity is the same wherever its weights or files lie."""
    known = hasattr(prior, "identity")
    return [name.partition(":")[0] if known else name, _identity(prior)]


def _identity(value: Any) -> Any:
    """What of a prior or its context belongs into a key: its own `identity` where it has one."""
    return value.identity() if hasattr(value, "identity") else value


def gather_observations(priors: PriorStore, size: tuple[int, int]) -> Observations:
    """The index over all sound pieces, intrinsics in pixels of the working images."""
    empty = (torch.zeros(0, dtype=torch.long),) * 2 + tuple(
        torch.zeros(0, *s, dtype=torch.float64) for s in ((3, 3), (3,), (4,), ())
    )
    parts = [_observed(priors, k, size) for k in range(len(priors))]
    columns = [torch.cat(c) for c in zip(empty, *parts, strict=True)]
    frame, chunk, rotation, translation, intrinsics, mean = columns
    return Observations(frame, chunk, SE3(rotation.double(), translation.double()), intrinsics, mean, size)


def _observed(priors: PriorStore, k: int, size: tuple[int, int]) -> tuple[Tensor, ...]:
    prior = priors.read(k)
    valid = prior.depth > 0
    mean = (prior.confidence * valid).sum((1, 2)).double() / valid.sum((1, 2)).clamp(min=1)
    own = (prior.depth.shape[2], prior.depth.shape[1])
    intrinsics = resize_intrinsics(prior.intrinsics.double(), own, size)
    cameras = prior.cam_from_chunk
    number = torch.full_like(prior.frame, k)
    return prior.frame, number, cameras.rotation, cameras.translation, intrinsics, mean

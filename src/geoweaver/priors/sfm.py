"""The prior that needs no weights: structure from motion per chunk, then depth by plane sweep."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8

from geoweaver.datatypes import Chunk, ChunkPrior, Frames
from geoweaver.engine import map_pieces
from geoweaver.priors.plane_sweep import SweepConfig, sweep_piece
from geoweaver.priors.plane_sweep_views import SweepViews
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.sfm_focal import FocalVote, focal_consensus, start_intrinsics, voting_chunks
from geoweaver.priors.sfm_mapping import MappingCamera, SparseModel, ray_spread
from geoweaver.priors.sfm_motion import Motion
from geoweaver.priors.sfm_pairs import OFFSETS, pixel_array, verified_pairs
from geoweaver.priors.sfm_pieces import ChunkPieces, sound_pieces

log = logging.getLogger(__name__)

_WELL_SEEN = np.radians(0.7)
"""Scatter of the directions in which a point is seen, from which on it tells how far things are."""
_FEW_WELL_SEEN = 0.1


@dataclass(frozen=True)
class SfmConfig:
    """Structure from motion per chunk, and dense depth from its cameras."""

    offsets: tuple[int, ...] = OFFSETS
    """Distances in the sequence at which frames of a chunk are matched."""
    smallest: int = 5
    """Frames that a piece needs, or half of a chunk that is shorter than two such pieces."""
    retries: int = 3
    """Other initial pairs tried where a model contradicts its matches."""
    votes: int = 5
    """Chunks that vote on a camera's focal where it is not given."""
    sweep: SweepConfig = field(default_factory=SweepConfig)
    seed: int = 0
    version: int = 19
    """Goes up when the same settings make something else of the same input."""


@dataclass(frozen=True)
class AgreedCameras:
    """One per physical camera, with the focal that its chunks agree on, and how they came to it."""

    cameras: tuple[MappingCamera, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SfmContext:
    """What all chunks share; picklable if frames and features are."""

    frames: Frames
    read_features: ReadFeatures
    cameras: tuple[MappingCamera, ...]
    """One per physical camera, with the focal that its chunks agree on."""
    notes: tuple[str, ...] = ()

    def identity(self) -> tuple[MappingCamera, ...]:
        """What of it can change a prediction, for keys; pixels and features have their own."""
        return self.cameras


@dataclass(frozen=True)
class SfmEstimate:
    """A chunk's pieces, and in words why frames are missing."""

    priors: tuple[ChunkPrior, ...]
    reason: dict[int, str]
    """For every frame that is in no piece."""
    attempts: int
    """Mapping runs it took."""
    notes: tuple[str, ...] = ()
    """What else the user should know of the chunk."""


@dataclass(frozen=True)
class SfmPrior:
    """The `sfm` prior: pixels to cameras and depth on any machine."""

    config: SfmConfig = field(default_factory=SfmConfig)

    def prepare(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> SfmContext:
        """What `learn` and `context` do, at once."""
        return self.context(frames, read_features, self.learn(frames, chunks, read_features, workers))

    @property
    def learnt(self) -> type[AgreedCameras]:
        """The cameras that all chunks share."""
        return AgreedCameras

    def context(self, frames: Frames, read_features: ReadFeatures, learnt: AgreedCameras) -> SfmContext:
        """What every chunk is mapped with."""
        return SfmContext(frames, read_features, learnt.cameras, learnt.notes)

    def learn(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> AgreedCameras:
        """Let some chunks vote on the focal of every camera that is not calibrated."""
        cameras, notes = [], []
        for g, camera in enumerate(frames.cameras):
            begin = start_intrinsics(camera, frames.size)
            start = MappingCamera(begin, frames.size, camera.calibrated, told=camera.focal_hint)
            own = [chunk for chunk in chunks if chunk.frames and int(frames.camera[chunk.frames[0]]) == g]
            if not camera.calibrated and len(own) > 1:
                vote = partial(focal_vote, self.config, start, read_features)
                voters = voting_chunks(own, self.config.votes)
                votes = list(map_pieces(vote, voters, workers, title="priors: focal"))
                start, note = _agree(start, [v for v in votes if v.weight > 0], g)
                notes.append(note)
            if not start.fixed and not camera.focal_hint:
                notes.append(_guessed(start, g))
            cameras.append(start)
        return AgreedCameras(tuple(cameras), tuple(notes))

    def predict(self, chunk: Chunk, context: SfmContext) -> list[ChunkPrior]:
        """The sound pieces of a chunk; `estimate` also says why frames are missing."""
        return list(self.estimate(chunk, context).priors)

    def estimate(self, chunk: Chunk, context: SfmContext) -> SfmEstimate:
        """Pieces with dense depth, and the reason for every frame that is in none."""
        camera = context.cameras[int(context.frames.camera[chunk.frames[0]])]
        found = chunk_pieces(self.config, camera, context.read_features, chunk)
        priors = tuple(dense_piece(m, chunk, context.frames, self.config.sweep) for m in found.models)
        reason = _reasons(chunk, found)
        notes = _slight_motion(chunk, found.models, camera)
        for line in notes:
            log.warning("%s", line)
        if reason:
            words = sorted(set(reason.values()))
            log.info(
                "chunk %d: %d of %d keyframes could not be placed yet (%s)",
                chunk.index, len(reason), len(chunk), "; ".join(words),
            )  # fmt: skip
        return SfmEstimate(priors, reason, found.attempts, notes)


def chunk_pieces(
    config: SfmConfig, camera: MappingCamera, read_features: ReadFeatures, chunk: Chunk
) -> ChunkPieces:
    """The sound pieces of one chunk."""
    features = [read_features(frame) for frame in chunk.frames]
    pairs = verified_pairs(features, config.offsets)
    keypoints = [pixel_array(f) for f in features]
    # two to four images are all that some have
    smallest = min(config.smallest, max(2, len(chunk) // 2))
    return sound_pieces(keypoints, pairs, camera, smallest, config.retries, config.seed)


def focal_vote(
    config: SfmConfig, camera: MappingCamera, read_features: ReadFeatures, chunk: Chunk
) -> FocalVote:
    """The focal of a chunk's largest sound piece; weight 0 where that is too short to tell."""
    # one run per vote: a chunk that contradicts itself is outvoted rather than mended
    models = chunk_pieces(replace(config, retries=0), camera, read_features, chunk).models
    if not models or len(models[0]) < min(20, len(chunk) / 3):
        return FocalVote(camera.intrinsics[0], 0.0)
    return FocalVote(models[0].intrinsics[0], float(len(models[0])))


def _agree(start: MappingCamera, votes: Sequence[FocalVote], group: int) -> tuple[MappingCamera, str]:
    focal = focal_consensus(votes)
    said = ", ".join(f"{v.focal:.0f}" for v in votes) or "none"
    if focal <= 0:
        return start, f"camera {group}: chunks do not agree on a focal ({said}), each keeps its own"
    _, _, cx, cy = start.intrinsics
    agreed = MappingCamera((focal, focal, cx, cy), start.size, fixed=True, agreed=True)
    return agreed, f"camera {group}: focal {focal:.1f} px from {len(votes)} chunks ({said})"


def _guessed(start: MappingCamera, group: int) -> str:
    focal = start.intrinsics[0]
    return (
        f"camera {group}: neither the files nor an option tell the focal: mapping begins with "
        f"{focal:.1f} px, {focal / max(start.size):.2f} times the longer side; "
        "--intrinsics would mend a wrong guess"
    )


def _slight_motion(chunk: Chunk, models: Sequence[SparseModel], camera: MappingCamera) -> tuple[str, ...]:
    spread = [float(np.median(ray_spread(model))) for model in models if len(model.points)]
    if not spread or max(spread) >= _WELL_SEEN / 2:
        return ()
    angle = np.degrees(max(spread)) * 12**0.5
    guess = "" if camera.fixed else " and the focal is a guess, which --intrinsics would mend"
    return (
        f"chunk {chunk.index}: the camera moved so little (points are seen within about {angle:.1f} degrees) "
        f"that distances are rough{guess}; film while walking sideways for better ones",
    )


def _reasons(chunk: Chunk, found: ChunkPieces) -> dict[int, str]:
    placed = {int(m) for model in found.models for m in model.member}
    missing = [frame for k, frame in enumerate(chunk.frames) if k not in placed]
    why = "its matches fit no sound piece of its chunk"
    words = why if found.motion is Motion.MOVES else found.motion.value
    return dict.fromkeys(missing, words)


def dense_piece(model: SparseModel, chunk: Chunk, frames: Frames, config: SweepConfig) -> ChunkPrior:
    """A sparse model with dense depth and confidence for each of its frames."""
    size = config.map_size(frames.size)
    views = sweep_views(model, frames.size, size)
    members = [chunk.frames[k] for k in model.member]
    depth, confidence = sweep_piece(views, partial(_read_pixels, frames, members), config)
    if frames.masks is not None:
        for k, frame in enumerate(members):
            hidden = ~_shrunk_mask(frames.masks.read(frame), size)
            depth[k][hidden], confidence[k][hidden] = 0, 0
    return ChunkPrior(
        torch.tensor(members),
        torch.from_numpy(depth),
        torch.from_numpy(confidence),
        model.cam_from_chunk,
        torch.tensor(views.intrinsics, dtype=torch.float64).expand(len(members), 4),
    )


def sweep_views(model: SparseModel, image_size: tuple[int, int], size: tuple[int, int]) -> SweepViews:
    """A model's cameras at the size of the depth maps, with the points that each of them observes."""
    x, y = size[0] / image_size[0], size[1] / image_size[1]
    fx, fy, cx, cy = model.intrinsics
    return SweepViews(
        model.cam_from_chunk.rotation.numpy(),
        model.cam_from_chunk.translation.numpy(),
        (x * fx, y * fy, x * cx, y * cy),
        size,
        well_seen_points(model),
    )


def well_seen_points(model: SparseModel) -> tuple[Float[np.ndarray, "_ 3"], ...]:
    """For each camera the points it observes, without those that all cameras see from one direction."""
    spread = ray_spread(model)
    good = spread > _WELL_SEEN
    if len(spread) and good.mean() < _FEW_WELL_SEEN:
        # where the camera hardly moved, the better half is all there is
        good = spread >= np.median(spread)
    return tuple(model.points[np.unique(r[(r >= 0) & good[r]])] for r in model.point_of)


def _read_pixels(frames: Frames, members: Sequence[int], row: int) -> UInt8[np.ndarray, "H W 3"]:
    assert frames.pixels is not None, "frames without pixels have no depth"
    return frames.pixels.read(members[row])


def _shrunk_mask(mask: Bool[np.ndarray, "H W"], size: tuple[int, int]) -> Bool[np.ndarray, "h w"]:
    import cv2

    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)) > 0

"""The sound pieces of one chunk: map, check, try again from elsewhere, split what stays unsound."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from geoweaver.priors.sfm_check import Pixels, is_sound, pair_verdicts, soundness, split_model
from geoweaver.priors.sfm_mapping import FOCAL_RANGE, MappingCamera, SparseModel, map_chunk
from geoweaver.priors.sfm_motion import Motion, PairMotion, chunk_motion, first_pairs, pair_motion
from geoweaver.priors.sfm_pairs import VerifiedPair

_FOCAL_TOLERANCE = 0.1


@dataclass(frozen=True)
class ChunkPieces:
    """What structure from motion found in a chunk."""

    models: tuple[SparseModel, ...]
    """Sound in themselves, each in units of its own; a frame may be in two."""
    motion: Motion
    attempts: int
    """Mapping runs it took."""


def sound_pieces(
    keypoints: Pixels,
    pairs: Sequence[VerifiedPair],
    camera: MappingCamera,
    smallest: int,
    retries: int = 3,
    seed: int = 0,
) -> ChunkPieces:
    """Map a chunk until its own matches agree with the model, or split the best one into sound pieces."""
    motions = [pair_motion(pair, keypoints, camera) for pair in pairs]
    motion = chunk_motion(pairs, motions, keypoints)
    if motion is not Motion.MOVES:
        return ChunkPieces((), motion, 0)
    best: list[SparseModel] = []
    score, attempts = -1.0, 0
    for start, how in _attempts(pairs, motions, camera, len(keypoints), retries):
        attempts += 1
        models = map_chunk(keypoints, pairs, how, start, seed)
        models = [m for m in models if _plausible(m, camera)]
        reached, sound = _score(models, pairs, keypoints)
        if reached > score:
            best, score = models, reached
        if sound:
            break
    pieces = [p for model in best for p in split_model(model, pairs, keypoints, smallest)]
    return ChunkPieces(tuple(_cover(pieces, smallest)), motion, attempts)


def _attempts(
    pairs: Sequence[VerifiedPair],
    motions: Sequence[PairMotion],
    camera: MappingCamera,
    frames: int,
    retries: int,
) -> Iterator[tuple[tuple[int, int] | None, MappingCamera]]:
    """The mapper's own choice first, then other initial pairs, and in between a focal that may give way."""
    yield None, camera
    for k, start in enumerate(first_pairs(pairs, motions, frames, retries)):
        yield start, replace(camera, fixed=False) if camera.agreed and k == 1 else camera


def _plausible(model: SparseModel, camera: MappingCamera) -> bool:
    """A model whose focal ran away from the agreed one, or from any lens, explains its matches by it."""
    if camera.fixed:
        return abs(math.log(model.intrinsics[0] / camera.intrinsics[0])) < _FOCAL_TOLERANCE
    low, high = FOCAL_RANGE
    return low < model.intrinsics[0] / max(camera.size) < high


def _score(
    models: Sequence[SparseModel], pairs: Sequence[VerifiedPair], keypoints: Pixels
) -> tuple[float, bool]:
    """Frames of the largest model weighted by its matches' agreement, and whether that is good enough."""
    if not models:
        return 0.0, False
    verdicts = pair_verdicts(models[0], pairs, keypoints)
    covered = len({int(m) for model in models for m in model.member})
    sound = is_sound(verdicts) and covered >= 0.5 * len(keypoints)
    return len(models[0]) * soundness(verdicts) + 0.1 * covered, sound


def _cover(pieces: Sequence[SparseModel], smallest: int) -> Iterator[SparseModel]:
    """The largest pieces that each bring frames which no larger one has."""
    known: set[int] = set()
    for piece in sorted(pieces, key=len, reverse=True):
        members = {int(m) for m in piece.member}
        if len(members - known) >= smallest - 1:
            known |= members
            yield piece

"""The sound pieces of one chunk: map, check, try again from elsewhere, split what stays unsound."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from geoweaver.priors.sfm_check import (
    NEAR,
    Pixels,
    is_sound,
    pair_verdicts,
    soundness,
    split_model,
    without_strays,
)
from geoweaver.priors.sfm_global import map_globally
from geoweaver.priors.sfm_mapping import (
    FOCAL_RANGE,
    MappingCamera,
    SparseModel,
    map_chunk,
    map_slight_motion,
)
from geoweaver.priors.sfm_motion import (
    Motion,
    PairMotion,
    chunk_motion,
    first_pairs,
    moves_slightly,
    pair_motion,
)
from geoweaver.priors.sfm_pairs import VerifiedPair
from geoweaver.priors.sfm_scale import carries_scale
from geoweaver.priors.sfm_tears import torn_cut

_FOCAL_TOLERANCE = 0.1
_NEIGHBOURS = 2
_LENSES = (1.0, 0.7, 0.5)
"""Of the focal that is assumed where nothing is known, from a normal to a wide lens."""
_KEPT = 0.8
"""Share of a piece's frames that mapping it anew must keep."""


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
    score, attempts = (False, -1.0), 0
    for attempt in _attempts(keypoints, pairs, motions, camera, retries, seed):
        attempts += 1
        models = [without_strays(m, pairs, keypoints) for m in attempt() if _plausible(m, camera)]
        reached = _score(models, pairs, keypoints)
        best, score = (models, reached) if reached > score else (best, score)
        if reached[0]:
            break
    pieces = [p for model in best for p in split_model(model, pairs, keypoints, smallest)]
    again = partial(_map_again, keypoints, pairs, camera, smallest, seed)
    if not score[0]:
        # a cut through a bent model may leave bent parts: each is mapped anew from its own matches
        pieces = [p for piece in pieces for p in _renewed(piece, again({int(m) for m in piece.member}))]
    placed = {int(m) for piece in pieces for m in piece.member}
    pieces += again(_with_neighbours(set(range(len(keypoints))) - placed, len(keypoints)))
    return ChunkPieces(tuple(_cover(pieces, smallest)), motion, attempts)


def _renewed(piece: SparseModel, anew: list[SparseModel]) -> list[SparseModel]:
    """What was mapped anew, unless that lost too much of what the piece, sound by itself, holds."""
    held = {int(m) for model in anew for m in model.member}
    return anew if len(held) >= _KEPT * len(piece) else [piece]


def _map_again(
    keypoints: Pixels,
    pairs: Sequence[VerifiedPair],
    camera: MappingCamera,
    smallest: int,
    seed: int,
    members: set[int],
) -> list[SparseModel]:
    """Sound pieces of some frames, from their own matches alone; parts that stay unsound are left out."""
    if len(members) < smallest:
        return []
    own = [pair for pair in pairs if pair.a in members and pair.b in members]
    models = [m for m in map_chunk(keypoints, own, camera, None, seed) if _plausible(m, camera)]
    models = [without_strays(m, own, keypoints) for m in models]
    sound = [m for m in models if is_sound(pair_verdicts(m, own, keypoints))]
    return [p for model in sound for p in split_model(model, own, keypoints, smallest)]


def _with_neighbours(members: set[int], frames: int) -> set[int]:
    """Frames left over with those next to them, which tie them to the other pieces."""
    reach = range(-_NEIGHBOURS, _NEIGHBOURS + 1)
    return {m + k for m in members for k in reach if 0 <= m + k < frames}


def _attempts(
    keypoints: Pixels,
    pairs: Sequence[VerifiedPair],
    motions: Sequence[PairMotion],
    camera: MappingCamera,
    retries: int,
    seed: int,
) -> Iterator[Callable[[], list[SparseModel]]]:
    """Frame by frame, or under small angles where there are no others; all at once; near pairs alone; other
    first pairs, one with a focal that may yield; all at once with one lens after the other."""
    slight = bool(retries) and moves_slightly(pairs, motions, keypoints, camera)
    if slight and not camera.fixed:
        # a focal that is free would take whatever value explains so little motion
        yield partial(map_slight_motion, keypoints, pairs, camera, seed)
    yield partial(map_chunk, keypoints, pairs, camera, None, seed)
    if not retries:
        return
    if slight and camera.fixed:
        yield partial(map_slight_motion, keypoints, pairs, camera, seed)
    if camera.fixed:
        # a scale that is carried from frame to frame may be lost in a turn
        yield partial(map_globally, keypoints, pairs, camera, seed)
    # distant frames may look alike: a few wrong pairs bend a turn that the near ones hold straight
    near = [pair for pair in pairs if pair.b - pair.a <= NEAR]
    yield partial(map_chunk, keypoints, near, camera, None, seed)
    for k, start in enumerate(first_pairs(pairs, motions, len(keypoints), retries)):
        how = replace(camera, fixed=False) if camera.agreed and k == 1 else camera
        yield partial(map_chunk, keypoints, pairs, how, start, seed)
    if not camera.fixed and not camera.told:
        # a few frames of a drive straight ahead leave a free focal to run away
        yield partial(_with_some_lens, keypoints, pairs, camera, seed)


def _with_some_lens(
    keypoints: Pixels, pairs: Sequence[VerifiedPair], camera: MappingCamera, seed: int
) -> list[SparseModel]:
    """All cameras at once with the lens that explains the matches best; later stages refine its focal."""
    best: list[SparseModel] = []
    fx, fy, cx, cy = camera.intrinsics
    for lens in _LENSES:
        held = replace(camera, intrinsics=(lens * fx, lens * fy, cx, cy), fixed=True)
        models = [m for m in map_globally(keypoints, pairs, held, seed) if _plausible(m, camera)]
        best = max(best, models, key=lambda found: _score(found, pairs, keypoints))
    return best


def _plausible(model: SparseModel, camera: MappingCamera) -> bool:
    """A model whose focal ran away from the agreed one, or from any lens, explains its matches by it."""
    if camera.fixed:
        return abs(math.log(model.intrinsics[0] / camera.intrinsics[0])) < _FOCAL_TOLERANCE
    low, high = FOCAL_RANGE
    return low < model.intrinsics[0] / max(camera.size) < high


def _score(
    models: Sequence[SparseModel], pairs: Sequence[VerifiedPair], keypoints: Pixels
) -> tuple[bool, float]:
    """Whether the largest model is sound, of one scale, with half of the frames; how well matches agree."""
    if not models:
        return False, 0.0
    verdicts = pair_verdicts(models[0], pairs, keypoints)
    large = len(models[0]) >= 0.5 * len(keypoints)
    sound = large and is_sound(verdicts) and carries_scale(models[0])
    sound = sound and not torn_cut(models[0], pairs, keypoints, NEAR)
    return sound, len(models[0]) * soundness(verdicts)


def _cover(pieces: Sequence[SparseModel], smallest: int) -> Iterator[SparseModel]:
    """The largest pieces that each bring frames which no larger one has."""
    known: set[int] = set()
    for piece in sorted(pieces, key=len, reverse=True):
        members = {int(m) for m in piece.member}
        if len(members - known) >= smallest - 1:
            known |= members
            yield piece

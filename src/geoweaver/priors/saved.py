"""The prior of any model's files: a folder of .npz with depth, cameras and confidence by frame name.

The format is described in docs/priors.md; `write_saved` writes it, and so do ten lines of numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from geoweaver.datatypes import Chunk, ChunkPrior, Frames
from geoweaver.errors import InputError
from geoweaver.formats.files import list_folder, place, writing
from geoweaver.priors.evidence import believed
from geoweaver.priors.prediction import VERSION, as_priors
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.saved_file import SavedFrame, read_index, read_rows
from geoweaver.store import digest_of, file_digest

EXPECTED = "a folder of saved priors (.npz, see docs/priors.md)"


Piece = tuple[SavedFrame, ...]
"""Frames that share a coordinate system, in the sequence's order."""
_LONG = 1.5
"""Pieces of up to so many chunk lengths stay whole; longer ones are cut at the chunks' borders."""


@dataclass(frozen=True)
class SavedContext:
    """Where each chunk's predictions lie."""

    frames: Frames
    read_features: ReadFeatures
    parts: dict[int, tuple[Piece, ...]]
    """By chunk: the pieces that it tells of."""
    digest: str

    def identity(self) -> Any:
        """What of it can change a prediction, for keys."""
        cameras = [(c.calibrated, c.rectified) for c in self.frames.cameras]
        told = {k: [[e.frame for e in piece] for piece in pieces] for k, pieces in self.parts.items()}
        return [self.digest, cameras, self.frames.masks is not None, told]


@dataclass(frozen=True)
class SavedPrior:
    """Predictions that something else made and wrote down. Picklable."""

    folder: Path

    def prepare(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> SavedContext:
        """Find out which frames the folder speaks of; arrays are read later, chunk by chunk."""
        files = [path for path in list_folder(self.folder, EXPECTED) if path.suffix == ".npz"]
        if not files:
            raise InputError(f"{place(self.folder)} holds no .npz, {EXPECTED} was expected: check the path")
        found = [entry for path in files for entry in read_index(path, _numbers(frames))]
        if not found:
            names = f"such as {frames.names[0]!r}" if len(frames) else "of an empty sequence"
            raise InputError(
                f"{place(self.folder)} names none of the frames, {names}: check `name` in its files"
            )
        pieces: dict[str, list[SavedFrame]] = {}
        for entry in found:
            pieces.setdefault(entry.piece, []).append(entry)
        for rows in pieces.values():
            if len({entry.frame for entry in rows}) < len(rows):
                where = place(rows[0].path)
                raise InputError(f"{where}: a frame is saved twice in one piece: give each its own `piece`")
        ordered = [tuple(sorted(rows, key=lambda e: e.frame)) for _, rows in sorted(pieces.items())]
        digest = digest_of([[path.name, file_digest(path)] for path in files])
        return SavedContext(frames, read_features, share_out(ordered, chunks), digest)

    def predict(self, chunk: Chunk, context: SavedContext) -> list[ChunkPrior]:
        """The pieces that this chunk tells of, judged by their features."""
        priors: list[ChunkPrior] = []
        for piece in context.parts.get(chunk.index, ()):
            priors += as_priors(read_rows(piece), context.frames, [entry.frame for entry in piece])
        return [believed(prior, context.read_features, context.frames.size) for prior in priors]

    def identity(self) -> Any:
        """The folder's place is not part of what it says."""
        return ["saved", VERSION]


def share_out(pieces: Sequence[Piece], chunks: Sequence[Chunk]) -> dict[int, tuple[Piece, ...]]:
    """Which chunk tells of which piece: whole ones are told once, so that a model's own chunks survive."""
    told: dict[int, list[Piece]] = {chunk.index: [] for chunk in chunks}
    sets = {chunk.index: set(chunk.frames) for chunk in chunks}
    every = set().union(*sets.values()) if sets else set()
    longest = max((len(frames) for frames in sets.values()), default=0)
    for piece in pieces:
        seen = tuple(entry for entry in piece if entry.frame in every)
        own = {k: tuple(e for e in seen if e.frame in frames) for k, frames in sets.items()}
        if len(seen) > _LONG * longest:
            for k, part in own.items():
                told[k].append(part)
        elif seen:
            told[max(own, key=lambda k: len(own[k]))].append(seen)
    return {k: _covering(parts) for k, parts in told.items()}


def _covering(parts: Sequence[Piece]) -> tuple[Piece, ...]:
    """The largest parts that each bring frames which no larger one has."""
    covered: set[int] = set()
    kept = []
    for part in sorted(parts, key=len, reverse=True):
        if {entry.frame for entry in part} - covered:
            covered |= {entry.frame for entry in part}
            kept.append(part)
    return tuple(kept)


def write_saved(path: Path, names: Sequence[str], prior: ChunkPrior) -> None:
    """Write one piece as one .npz: its frames share a coordinate system; `names` are their image names."""
    assert len(names) == len(prior), "one name per frame"
    arrays: dict[str, np.ndarray] = {
        "name": np.array(names, dtype=str),
        "depth": prior.depth.float().numpy(),
        "confidence": prior.confidence.float().numpy(),
        "cam_from_world": prior.cam_from_chunk.matrix().double().numpy(),
        "intrinsics": prior.intrinsics.double().numpy(),
    }
    with writing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mistakes the names


def _numbers(frames: Frames) -> dict[str, int]:
    """Frames by full name, and without folder, suffix or both where that is unique."""
    known: dict[str, set[int]] = {}
    for frame, name in enumerate(frames.names):
        path = PurePosixPath(name)
        for short in (path.with_suffix("").as_posix(), path.name, path.stem):
            known.setdefault(short, set()).add(frame)
    unique = {short: min(rows) for short, rows in known.items() if len(rows) == 1}
    return unique | {name: frame for frame, name in enumerate(frames.names)}

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
from geoweaver.priors.prediction import as_priors
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.saved_file import SavedFrame, read_index, read_rows
from geoweaver.store import digest_of, file_digest

EXPECTED = "a folder of saved priors (.npz, see docs/priors.md)"


@dataclass(frozen=True)
class SavedContext:
    """Where each frame's prediction lies."""

    frames: Frames
    pieces: tuple[tuple[SavedFrame, ...], ...]
    """Frames that share a coordinate system, in the sequence's order."""
    digest: str

    def identity(self) -> Any:
        """What of it can change a prediction, for keys."""
        cameras = [(c.calibrated, c.rectified) for c in self.frames.cameras]
        return [self.digest, cameras, self.frames.masks is not None]


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
        ordered = tuple(tuple(sorted(rows, key=lambda e: e.frame)) for _, rows in sorted(pieces.items()))
        digest = digest_of([[path.name, file_digest(path)] for path in files])
        return SavedContext(frames, ordered, digest)

    def predict(self, chunk: Chunk, context: SavedContext) -> list[ChunkPrior]:
        """The chunk's part of every piece that brings frames which no larger part has."""
        wanted = set(chunk.frames)
        parts = [[entry for entry in piece if entry.frame in wanted] for piece in context.pieces]
        priors: list[ChunkPrior] = []
        covered: set[int] = set()
        for part in sorted(parts, key=len, reverse=True):
            if {entry.frame for entry in part} - covered:
                covered |= {entry.frame for entry in part}
                priors += as_priors(read_rows(part), context.frames, [entry.frame for entry in part])
        return priors

    def identity(self) -> Any:
        """The folder's place is not part of what it says."""
        return ["saved"]


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
    """Frames by full name, and by the name without folder and suffix where that is unique."""
    stems: dict[str, list[int]] = {}
    for frame, name in enumerate(frames.names):
        stems.setdefault(PurePosixPath(name).stem, []).append(frame)
    unique = {stem: rows[0] for stem, rows in stems.items() if len(rows) == 1}
    return unique | {name: frame for frame, name in enumerate(frames.names)}

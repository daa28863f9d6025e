"""Your own prior model: anything that knows depth and cameras of a chunk; here, a recording's depth files.

python examples/own_prior.py SEQUENCE OUT      (SEQUENCE holds images/, depth/ and groundtruth.tum)
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from geoweaver.datatypes import Chunk, ChunkPrior, Frames
from geoweaver.formats.depth import read_depth
from geoweaver.formats.tum import read_tum
from geoweaver.pipeline import Config, reconstruct
from geoweaver.priors import PRIORS


@dataclass(frozen=True)
class OwnPrior:
    """Frozen and picklable: it travels to the workers."""

    folder: Path

    def prepare(self, frames: Frames, chunks: Sequence[Chunk], read_features: Any, workers: int = 1) -> Any:
        return [self.folder / "depth" / f"{Path(name).stem}.npz" for name in frames.names]

    def predict(self, chunk: Chunk, context: Any) -> list[ChunkPrior]:
        rows = torch.tensor(chunk.frames)
        depth = torch.stack([read_depth(context[frame]) for frame in chunk.frames])
        intrinsics = json.loads((self.folder / "sequence.json").read_text())["intrinsics"]
        cameras = read_tum(self.folder / "groundtruth.tum").cam_from_world[rows]
        return [
            ChunkPrior(rows, depth, (depth > 0).float(), cameras, torch.tensor(intrinsics).double()[rows])
        ]


PRIORS["own"] = lambda path: OwnPrior(Path(path))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    sequence, out = Path(sys.argv[1]), Path(sys.argv[2])
    result = reconstruct(sequence / "images", out, Config(prior=f"own:{sequence}"))
    print(f"{int(result.trusted.sum())} of {len(result)} cameras are trusted")

"""What can be seen of a run that is still going on: how far it is, and the chunks that have a prior."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from geoweaver.datatypes import ChunkPrior
from geoweaver.geometry.camera import lift, pixel_centres
from geoweaver.geometry.upright import up_direction
from geoweaver.store import Store, restore_prior
from geoweaver.store.artifact import DamagedError, read_header
from geoweaver.store.lock import is_locked
from geoweaver.store.workspace import LOCK
from geoweaver.viewer.scene_cloud import spread_over
from geoweaver.viewer.scene_colours import ramp_colours
from geoweaver.viewer.scene_place import RADIUS, view_from_world

_POINTS_PER_CHUNK = 40_000
_FRAMES_PER_CHUNK = 8
_MOST_CHUNKS = 24
"""Chunks drawn at once; the later ones of a longer run are counted only."""


@dataclass(frozen=True)
class Progress:
    """Finished pieces on disk by stage, in the order in which the stages were begun."""

    pieces: tuple[tuple[str, int], ...]
    running: bool = True
    """Whether a process works on it now."""

    def line(self, name: str) -> str:
        """What to say of a run of this name."""
        if self.running:
            return f"{name}: {self.words()}"
        again = "run the same geoweaver reconstruct again to go on"
        return f"{name} was ended before it was done: {again} ({self.words()})"

    def words(self) -> str:
        """One line for a person."""
        if not self.pieces:
            return "nothing is finished yet"
        return ", ".join(f"{stage} {count}" for stage, count in self.pieces)


def progress_of(folder: Path) -> Progress:
    """How many pieces each stage has left in a run's workspace; never waits for the run."""
    stages = [p for p in (folder / "work").glob("*") if p.is_dir()]
    found = [(p.name, files) for p in stages if (files := list(p.glob("*.safetensors")))]
    begun = sorted(found, key=lambda entry: min(_changed(file) for file in entry[1]))
    running = is_locked(folder / "work" / LOCK)
    return Progress(tuple((name, len(files)) for name, files in begun), running)


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # the run replaces its files as it goes
        return float("inf")


def finished_chunks(folder: Path) -> list[list[ChunkPrior]]:
    """Every chunk's sound pieces that are on disk, some frames of each."""
    if not (folder / "work" / "store.json").exists():
        return []
    store = Store.reader(folder / "work")
    chunks = []
    for file in sorted((store.folder / "priors").glob("*.safetensors"))[:_MOST_CHUNKS]:
        try:
            label = read_header(file).label
            artifact = store.load("priors", label["piece"], label["key"])
        except (DamagedError, FileNotFoundError):
            continue
        if "parts" not in artifact.meta:
            continue  # what all chunks share lies beside them
        parts = [restore_prior(artifact, part) for part in range(artifact.meta["parts"])]
        chunks.append([_some_frames(part) for part in parts])
    return chunks


def _some_frames(prior: ChunkPrior) -> ChunkPrior:
    rows = torch.tensor(spread_over(tuple(range(len(prior))), _FRAMES_PER_CHUNK), dtype=torch.long)
    return ChunkPrior(
        prior.frame[rows], prior.depth[rows], prior.confidence[rows],
        prior.cam_from_chunk[rows], prior.intrinsics[rows],
    )  # fmt: skip


def show_unfinished(server: Any, folders: list[Path]) -> None:
    """Chunks side by side, a row per run: nothing ties them together yet."""
    server.scene.reset()
    for row, folder in enumerate(folders):
        pieces = [piece for chunk in finished_chunks(folder) for piece in chunk if len(piece)]
        for k, piece in enumerate(pieces):
            points = chunk_points(piece)
            if not len(points):
                continue
            server.scene.add_point_cloud(
                f"/run{row}/chunk{k}", points.numpy(), _by_height(points).numpy(),
                point_size=0.006 * RADIUS, point_shading="flat",
                position=(2.2 * RADIUS * k, -2.2 * RADIUS * row, 0.0),
            )  # fmt: skip


def _by_height(points: Float32[Tensor, "P 3"]) -> UInt8[Tensor, "P 3"]:
    """The images are not asked yet: a ramp from floor to ceiling shows the shape."""
    low, high = points[:, 2].quantile(0.02), points[:, 2].quantile(0.98)
    return ramp_colours((points[:, 2] - low) / (high - low).clamp(min=1e-12))


def chunk_points(prior: ChunkPrior) -> Float32[Tensor, "P 3"]:
    """A chunk's points in the viewer's space, by themselves."""
    height, width = prior.depth.shape[1:]
    pixels = pixel_centres(width, height).reshape(-1, 2)
    generator = torch.Generator().manual_seed(0)
    parts = [torch.zeros(0, 3, dtype=torch.float64)]
    for k in range(len(prior)):
        depth = prior.depth[k].flatten().double()
        rows = (depth > 0).nonzero()[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)[: _POINTS_PER_CHUNK // len(prior)]]
        seen = lift(pixels[rows], depth[rows], prior.intrinsics[k].double())
        parts.append(prior.cam_from_chunk[k].inverse().act(seen))
    points, cameras = torch.cat(parts), prior.cam_from_chunk
    return view_from_world(cameras, points[:100_000], up_direction(cameras)).act(points).float()

"""One learned descriptor per frame: SALAD, with the user's weights, kept in the store frame by frame."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.engine import Engine, LocalEngine
from geoweaver.errors import InputError
from geoweaver.features.frame_features import FrameFeatures
from geoweaver.models import IMAGE_MEAN, IMAGE_STD, Salad, load_salad
from geoweaver.models.hub import fetch
from geoweaver.store import NOT_IN_KEY, artifact_key, file_digest

STAGE = "descriptors"
VERSION = 1
SIDE = 322
"""Pixels of a side that images are described at: the published size."""
BATCH = 8
"""Frames that are described at once."""


@dataclass(frozen=True)
class SaladRetriever:
    """Image retrieval on DINOv2; similarity is the dot product. Picklable: weights are loaded where used."""

    path: Path = field(metadata=NOT_IN_KEY)
    weights: str
    """The file's digest."""
    device: str = field(default="auto", metadata=NOT_IN_KEY)

    def describe(
        self, features: FrameFeatures, frames: Sequence[int], engine: Engine | None = None
    ) -> Float[Tensor, "F D"]:
        """Unit vectors, one row per listed frame."""
        blocks = [list(frames[k : k + BATCH]) for k in range(0, len(frames), BATCH)]
        crew = LocalEngine() if engine is None or self.most_workers == 1 else engine
        done = crew.map(_Describe(self, features), blocks, title="graph: salad")
        places = [place for block in done for place in block]
        rows = [features.store.load(STAGE, *place).tensors["salad"] for place in places]
        return torch.stack(rows) if rows else torch.zeros(0, 0)

    @property
    def chosen_device(self) -> str:
        """cpu or cuda."""
        return ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device

    @property
    def most_workers(self) -> int | None:
        """Processes that may describe at once: a GPU holds one copy of the network; None: any number."""
        return 1 if self.chosen_device == "cuda" else None


def salad_retriever(path: str) -> SaladRetriever:
    """From a weight file, else from what `geoweaver models fetch salad` left in the cache."""
    place = Path(path) if path else _cached()
    digest = file_digest(place)
    # hours before it is needed
    load_salad(place, device="meta")
    return SaladRetriever(place, digest)


def _cached() -> Path:
    try:
        return fetch("salad", accept_licence=True, offline=True)
    except InputError as error:
        raise InputError(
            "SALAD's weights are not in the local cache: geoweaver models fetch salad --accept-licence, "
            "or give --retriever salad:FILE"
        ) from error


@dataclass(frozen=True)
class _Describe:
    """What a worker does with a block of frames: those that the store lacks, in one batch."""

    retriever: SaladRetriever
    features: FrameFeatures

    def __call__(self, block: list[int]) -> list[tuple[str, str]]:
        store, frames = self.features.store, self.features.frames
        places = [(f"salad-{frame:06}", self._key(frame)) for frame in block]
        missing = [k for k, place in enumerate(places) if not store.has(STAGE, *place)]
        if missing:
            assert frames.pixels is not None, "frames without pixels cannot be described"
            asked = self.retriever
            network = _loaded(str(asked.path), asked.weights, asked.chosen_device)
            found = describe_images(network, [frames.pixels.read(block[k]) for k in missing])
            for k, row in zip(missing, found, strict=True):
                store.cached(STAGE, *places[k], partial(_kept, row))
        return places

    def _key(self, frame: int) -> str:
        # the features' key holds the digest of the frame's pixels
        return artifact_key(STAGE, VERSION, self.retriever, [self.features.key(frame)])


def _kept(row: Float[Tensor, "D"]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    return {"salad": row.clone()}, {}


def describe_images(network: Salad, images: Sequence[UInt8[np.ndarray, "_ _ 3"]]) -> Float[Tensor, "n D"]:
    """Descriptors of a batch of images of any size."""
    import cv2

    small = np.stack([cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for image in images])
    batch = torch.from_numpy(small).permute(0, 3, 1, 2).float() / 255
    mean, std = (batch.new_tensor(values)[:, None, None] for values in (IMAGE_MEAN, IMAGE_STD))
    device = next(network.parameters()).device
    with torch.inference_mode():
        found: Tensor = network(((batch - mean) / std).to(device))
    return found.float().cpu()


@lru_cache(maxsize=1)
def _loaded(path: str, weights: str, device: str) -> Salad:
    """A process keeps one network; the digest is part of the key: a replaced file is another network."""
    return load_salad(Path(path)).to(device)

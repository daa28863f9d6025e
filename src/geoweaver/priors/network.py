"""The prior of any feed-forward network, chunk by chunk: views in, prediction out; a model is a `Source`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from geoweaver.datatypes import Chunk, ChunkPrior, Frames
from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.priors.evidence import believed
from geoweaver.priors.known_cameras import known_cameras, warn_of_gaps
from geoweaver.priors.memory import Footprint, Room, check_fits, measure_room, saying_what_fits
from geoweaver.priors.prediction import VERSION, Prediction, anchored, as_priors
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.views import Views, read_views


@runtime_checkable
class Network(Protocol):
    """A loaded model, wrapped to speak our conventions."""

    def __call__(self, views: Views) -> Prediction: ...

    def footprint(self, size: tuple[int, int]) -> Footprint:
        """Bytes needed for images of (width, height)."""


@dataclass(frozen=True)
class Source:
    """Where a kind of network comes from; functions of a module, so that workers find them again."""

    size: Callable[[tuple[int, int]], tuple[int, int]]
    """The (width, height) that the network wants images of a given size at."""
    locate: Callable[[str], tuple[str, str]]
    """What follows the colon in --prior NAME:PATH to (what `load` takes, a digest of what it will load)."""
    load: Callable[[str, str], Network]
    """(located, device) to the network."""
    takes_cameras: bool = False
    """True where known cameras change what the network says."""


@dataclass(frozen=True)
class NetworkContext:
    """What all chunks share: names and numbers, no weights."""

    frames: Frames
    read_features: ReadFeatures
    located: str
    digest: str
    room: Room
    known: dict[int, SE3] = field(default_factory=dict)

    def identity(self) -> Any:
        """What of it can change a prediction, for keys; pixels have their own."""
        cameras = [(c.calibrated, c.rectified) for c in self.frames.cameras]
        known = [(frame, camera.matrix()) for frame, camera in sorted(self.known.items())]
        return [self.digest, cameras, known, self.frames.masks is not None]


@dataclass(frozen=True)
class NetworkPrior:
    """A network behind the prior protocol; `module` of this package holds its `SOURCE`. Picklable."""

    module: str
    path: str = ""
    device: str = "auto"
    poses: Path | None = None
    """A trajectory file of known cameras: told to networks that take them, refused by the others."""

    def prepare(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> NetworkContext:
        """Find the weights, the known cameras and the memory; nothing is loaded yet."""
        located, digest = self.source.locate(self.path)
        if self.poses is not None and not self.source.takes_cameras:
            raise ConfigError(f"the prior {self.module} takes no known cameras: leave them out")
        known = {} if self.poses is None else known_cameras(self.poses, frames)
        if known:
            warn_of_gaps(known, frames, chunks)
        # what an earlier run in this process left loaded would be counted as taken
        _loaded.cache_clear()
        room = measure_room(self.chosen_device, min(workers, len(chunks)))
        return NetworkContext(frames, read_features, located, digest, room, known)

    def predict(self, chunk: Chunk, context: NetworkContext) -> list[ChunkPrior]:
        """What the network says of a chunk, without views that it could not place; judged by its features."""
        frames, device = context.frames, self.chosen_device
        views, rows = read_views(frames, chunk, self.source.size(frames.size), context.known)
        if not rows:
            return []
        network = _loaded(self.module, context.located, context.digest, device)
        footprint = network.footprint(views.size)
        check_fits(len(rows), footprint, context.room)
        with saying_what_fits(len(rows), footprint, context.room), torch.inference_mode():
            prediction = network(views)
        if views.cam_from_world is not None:
            prediction = anchored(prediction, views.cam_from_world)
        pieces = as_priors(prediction, frames, rows)
        return [believed(piece, context.read_features, frames.size) for piece in pieces]

    def identity(self) -> Any:
        """What of it can change a prediction, for keys: where the weights lie and run is not."""
        return ["network", VERSION, self.module]

    @property
    def source(self) -> Source:
        source = import_module(f"geoweaver.priors.{self.module}").SOURCE
        assert isinstance(source, Source)
        return source

    @property
    def chosen_device(self) -> str:
        """cpu or cuda."""
        return ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device

    @property
    def most_workers(self) -> int | None:
        """Processes that may predict at once: a GPU holds one copy of the network; None: any number."""
        return 1 if self.chosen_device == "cuda" else None


@lru_cache(maxsize=1)
def _loaded(module: str, located: str, digest: str, device: str) -> Network:
    """A process keeps one network; the digest is part of the key: a replaced file is another network."""
    source: Source = import_module(f"geoweaver.priors.{module}").SOURCE
    return source.load(located, device)

"""What a prior model is: something that looks at a chunk and says depth, cameras and how sure it is."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from geoweaver.datatypes import Chunk, ChunkPrior, Features, Frames
from geoweaver.store.priors import Explained

ReadFeatures = Callable[[int], Features]
"""Features of a frame by its number; it travels to worker processes, so it must be picklable."""


@runtime_checkable
class PriorModel(Protocol):
    """A geometric prior: `prepare` once, then `predict` chunk by chunk, in any order and in parallel.

    The model and its context are sent to worker processes: both must be picklable.
    """

    def prepare(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> Any:
        """What all chunks share (a focal, loaded weights' names); anything picklable."""

    def predict(self, chunk: Chunk, context: Any) -> list[ChunkPrior]:
        """The sound pieces of a chunk: often one, none where the frames do not determine it."""


@runtime_checkable
class Explains(Protocol):
    """A prior that also says why frames are missing: it is asked so in place of `predict`."""

    def estimate(self, chunk: Chunk, context: Any) -> Explained:
        """The sound pieces, the reason for every frame that is in none, and other notes for the user."""


@runtime_checkable
class LearnsFirst(Protocol):
    """A prior whose preparation is worth keeping: a resumed run reads what was learnt."""

    @property
    def learnt(self) -> type[Any]:
        """The noun that `learn` gives: a frozen dataclass of tensors and plain values."""

    def learn(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> Any:
        """What the chunks have to agree on."""

    def context(self, frames: Frames, read_features: ReadFeatures, learnt: Any) -> Any:
        """What `prepare` gives, from what was learnt."""

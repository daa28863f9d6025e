"""What a retriever is, and the retrievers there are: one descriptor per frame."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from geoweaver.engine import Engine
from geoweaver.errors import ConfigError
from geoweaver.features.frame_features import FrameFeatures
from geoweaver.features.salad import SaladRetriever, salad_retriever
from geoweaver.features.vlad import DescriptorConfig, cached_descriptors


@runtime_checkable
class Retriever(Protocol):
    """Describes frames; a frozen dataclass, so that it can be part of a key."""

    def describe(
        self, features: FrameFeatures, frames: Sequence[int], engine: Engine | None = None
    ) -> Float[Tensor, "F D"]:
        """Unit vectors, one row per listed frame: their dot product says how alike two frames are."""


@dataclass(frozen=True)
class VladRetriever:
    """VLAD with the sequence's own vocabulary: needs no weights."""

    config: DescriptorConfig = field(default_factory=DescriptorConfig)

    def describe(
        self, features: FrameFeatures, frames: Sequence[int], engine: Engine | None = None
    ) -> Float[Tensor, "F D"]:
        return cached_descriptors(features, frames, self.config)


def _vlad(path: str) -> Retriever:
    if path:
        raise ConfigError(f"the vlad retriever needs no weights: give --retriever vlad without {path!r}")
    return VladRetriever()


RETRIEVERS: dict[str, Callable[[str], Retriever]] = {"vlad": _vlad, "salad": salad_retriever}
"""By the name that users give; the argument is what follows the colon in --retriever NAME:PATH."""


def find_retriever(name: str = "vlad", *, device: str = "auto") -> Retriever:
    """A retriever by the name that users give it, NAME or NAME:PATH; the device is for networks."""
    key, _, path = name.partition(":")
    if key not in RETRIEVERS:
        raise ConfigError(f"there is no retriever {key!r}: choose one of {', '.join(RETRIEVERS)}")
    retriever = RETRIEVERS[key](path)
    return replace(retriever, device=device) if isinstance(retriever, SaladRetriever) else retriever

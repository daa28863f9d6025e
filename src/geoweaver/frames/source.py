"""What a recording offers before rectification: its frames by place, upright, at their original size."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float64, UInt8
from torch import Tensor


@runtime_checkable
class OriginalSource(Protocol):
    """Original pixels by a frame's place in the whole recording; picklable, for workers read too."""

    def read(self, place: int) -> UInt8[np.ndarray, "height width 3"]: ...

    def mask(self, place: int) -> Bool[np.ndarray, "height width"] | None: ...


@dataclass(frozen=True)
class Recording:
    """A whole video or folder, before any frame is left out."""

    source: OriginalSource
    names: tuple[str, ...]
    folders: tuple[str, ...]
    """Sub-folder of each frame: one physical camera and one temporal chain each."""
    sizes: tuple[tuple[int, int] | None, ...]
    """(width, height) of each frame, upright; None where it cannot be read."""
    timestamps: Float64[Tensor, "n"]
    digests: tuple[str, ...]
    focals: tuple[float | None, ...] = ()
    """What the files say of the focal, in pixels."""
    masked: bool = False
    """True where some frame has a mask of its own (alpha)."""
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """Those of the notes that tell of frames which are missing altogether."""

    def __len__(self) -> int:
        return len(self.names)

    def choose(self, places: list[int]) -> "Recording":
        """The same recording with only these rows; `place` keeps counting in the whole one."""
        return Recording(
            source=Chosen(self.source, tuple(places)),
            names=tuple(self.names[i] for i in places),
            folders=tuple(self.folders[i] for i in places),
            sizes=tuple(self.sizes[i] for i in places),
            timestamps=self.timestamps[torch.tensor(places, dtype=torch.int64)],
            digests=tuple(self.digests[i] for i in places),
            focals=tuple(self.focals[i] for i in places) if self.focals else (),
            masked=self.masked,
            notes=self.notes,
            lost=self.lost,
        )


@dataclass(frozen=True)
class Chosen:
    """Some frames of another source."""

    source: OriginalSource
    places: tuple[int, ...]

    def read(self, place: int) -> UInt8[np.ndarray, "height width 3"]:
        """Pixels of the place-th chosen frame."""
        return self.source.read(self.places[place])

    def mask(self, place: int) -> Bool[np.ndarray, "height width"] | None:
        """Its own mask, if it has one."""
        return self.source.mask(self.places[place])

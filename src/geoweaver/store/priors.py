"""Priors in the store: depth and confidence in half precision, read chunk by chunk when somebody asks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import ChunkPrior
from geoweaver.geometry import SE3
from geoweaver.store.artifact import Artifact
from geoweaver.store.codec import decode_depth, encode_depth
from geoweaver.store.workspace import Store


@runtime_checkable
class Explained(Protocol):
    """A chunk's sound pieces, and in words what kept the others away."""

    @property
    def priors(self) -> Sequence[ChunkPrior]: ...
    @property
    def reason(self) -> Mapping[int, str]: ...
    @property
    def notes(self) -> Sequence[str]: ...


def flatten_priors(
    priors: Sequence[ChunkPrior], reason: Mapping[int, str] | None = None, notes: Sequence[str] = ()
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The sound pieces made of one chunk, as one artifact; confidence goes the same way as depth."""
    tensors: dict[str, Tensor] = {}
    for i, prior in enumerate(priors):
        depth, depth_exponent = encode_depth(prior.depth)
        confidence, confidence_exponent = encode_depth(prior.confidence)
        part = {
            "frame": prior.frame,
            "depth": depth,
            "depth_exponent": depth_exponent,
            "confidence": confidence,
            "confidence_exponent": confidence_exponent,
            "rotation": prior.cam_from_chunk.rotation,
            "translation": prior.cam_from_chunk.translation,
            "intrinsics": prior.intrinsics,
        }
        tensors |= {f"{i}.{name}": tensor for name, tensor in part.items()}
    return tensors, {"parts": len(priors), "reason": sorted((reason or {}).items()), "notes": list(notes)}


def restore_prior(
    artifact: Artifact, part: int, rows: slice | Int[Tensor, "rows"] = slice(None)
) -> ChunkPrior:
    """One sound piece, or some of its frames: only theirs are read and decoded."""
    prefix = f"{part}."
    t = {n.removeprefix(prefix): v[rows] for n, v in artifact.tensors.items() if n.startswith(prefix)}
    return ChunkPrior(
        frame=t["frame"],
        depth=decode_depth(t["depth"], t["depth_exponent"]),
        confidence=decode_depth(t["confidence"], t["confidence_exponent"]),
        cam_from_chunk=SE3(t["rotation"], t["translation"]),
        intrinsics=t["intrinsics"],
    )


def cached_priors(
    store: Store, stage: str, piece: str, key: str, compute: Callable[[], Sequence[ChunkPrior] | Explained]
) -> str:
    """Make sure that a chunk's priors are in the store, and give their digest; `PriorStore` reads them."""

    def flat() -> tuple[dict[str, Tensor], dict[str, Any]]:
        made = compute()
        if isinstance(made, Explained):
            return flatten_priors(made.priors, made.reason, made.notes)
        return flatten_priors(made)

    return store.cached(stage, piece, key, flat).digest


@dataclass(frozen=True)
class PriorStore:
    """All sound pieces of a run by their number k, in chunk order; nothing is in memory until it is read."""

    store: Store
    stage: str
    places: tuple[tuple[str, str, int], ...]
    """Piece, key and part of each."""
    reason: dict[int, str] = field(default_factory=dict)
    """Why a frame is in no piece, as far as the prior said so."""
    notes: tuple[str, ...] = ()
    """What else the prior said."""

    @classmethod
    def index(
        cls, store: Store, stage: str, artifacts: Iterable[tuple[str, str]], notes: Sequence[str] = ()
    ) -> "PriorStore":
        """From the (piece, key) of every chunk, in order: a chunk may have become several pieces, or none."""
        places: list[tuple[str, str, int]] = []
        reason: dict[int, str] = {}
        held: set[int] = set()
        said = list(notes)
        for piece, key in artifacts:
            artifact = store.load(stage, piece, key)
            parts = range(artifact.meta["parts"])
            places += [(piece, key, part) for part in parts]
            held |= {frame for part in parts for frame in artifact.tensors[f"{part}.frame"].tolist()}
            # what an earlier version kept says nothing
            reason |= dict(artifact.meta.get("reason", ()))
            said += artifact.meta.get("notes", ())
        # a frame that two chunks share may be in a piece of the other one
        return cls(
            store, stage, tuple(places), {f: w for f, w in reason.items() if f not in held}, tuple(said)
        )

    def __len__(self) -> int:
        return len(self.places)

    def read(self, chunk: int, rows: slice | Int[Tensor, "rows"] = slice(None)) -> ChunkPrior:
        """The prior of sound piece k, or of some of its frames."""
        piece, key, part = self.places[chunk]
        return restore_prior(self.store.load(self.stage, piece, key), part, rows)

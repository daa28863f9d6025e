"""The nouns of a finished run: what exports, report and viewer look at; the large ones are read on demand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Features, Frames, Matches, Reconstruction, ViewGraph
from geoweaver.geometry import SE3


@dataclass(frozen=True)
class DepthMap:
    """One frame's final depth, affine correction applied."""

    depth: Float[Tensor, "H W"]
    """z in world units; 0 = unknown."""
    confidence: Float[Tensor, "H W"]
    """In [0, 1], as the prior's adapter normalised it."""
    intrinsics: Float[Tensor, "4"]
    """(fx, fy, cx, cy) in pixels of this depth map."""


@runtime_checkable
class DepthSource(Protocol):
    """Final depth by frame; frames that no prior saw are not among `frames`."""

    @property
    def frames(self) -> tuple[int, ...]: ...

    def read(self, frame: int) -> DepthMap: ...


@runtime_checkable
class MatchSource(Protocol):
    """All matches of one edge of the view graph, as the matcher found them."""

    def read(self, edge: int) -> Matches: ...


@runtime_checkable
class FeatureSource(Protocol):
    """A keyframe's local features, positions in the rectified image."""

    def read(self, frame: int) -> Features: ...


@dataclass(frozen=True)
class StageView:
    """What a stage left behind: every frame's camera, and by how much a sample of the matches misses."""

    name: str
    cam_from_world: SE3
    """One per frame; each stage's world may differ by a similarity."""
    pixel_error: Float[Tensor, "n"]
    """In pixels of the rectified images."""
    depth_error: Float[Tensor, "m"]
    """3D distance of the two points of a match relative to their depth."""


@dataclass(frozen=True)
class FinishedRun:
    """A run folder, opened: everything that can be exported, drawn or looked at."""

    folder: Path
    frames: Frames
    """`frames.pixels` reads keyframes from the run folder, others and originals from the input."""
    result: Reconstruction
    graph: ViewGraph
    rejected: Bool[Tensor, "E"]
    """Edges that the weave did not believe."""
    chunk: Int[Tensor, "F"]
    """Chunk of each frame's canonical observation; -1 where no prior saw it."""
    depth_scale: Float[Tensor, "F"]
    depth_shift: Float[Tensor, "F"]
    views: tuple[StageView, ...]
    """After Stage 1, 2 and 3."""
    depths: DepthSource
    matches: MatchSource
    features: FeatureSource
    summary: dict[str, Any]
    """run.json."""

"""The nouns: frozen values that the stages exchange (docs/conventions.md).

Letters in shapes: F frames, N observations, K chunks, E edges, M matches, G cameras, n frames of a chunk."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.distortion import Lens


@dataclass(frozen=True)
class Camera:
    """One physical camera: COLMAP's model and parameters at the original size, and how it was rectified."""

    model: str
    params: tuple[float, ...]
    width: int
    height: int
    calibrated: bool = False
    """True where the user gave the intrinsics: then no focal is ever corrected."""
    rectified: tuple[float, float, float, float] | None = None
    """(fx, fy, cx, cy) of the pinhole images that later stages see; None where they are the originals."""
    focal_hint: bool = False
    """True where the focal comes from the image files (EXIF); neither this nor `calibrated`: a mere guess."""

    @property
    def lens(self) -> Lens:
        """How it sees at its original size."""
        return Lens(self.model, self.params, (self.width, self.height))


@runtime_checkable
class PixelSource(Protocol):
    """Where a frame's pixels come from; reads are lazy and independent of each other."""

    def read(self, frame: int) -> UInt8[np.ndarray, "height width 3"]: ...


@runtime_checkable
class MaskSource(Protocol):
    """Which pixels of a frame show the static world: True = usable."""

    def read(self, frame: int) -> Bool[np.ndarray, "height width"]: ...


@dataclass(frozen=True)
class Frames:
    """An ordered sequence: names, times, cameras, keyframes; pixels on demand (I_i, g(i))."""

    names: tuple[str, ...]
    timestamps: Float[Tensor, "F"]
    camera: Int[Tensor, "F"]
    keyframe: Bool[Tensor, "F"]
    cameras: tuple[Camera, ...]
    size: tuple[int, int]
    """(width, height) of the rectified images."""
    pixels: PixelSource | None = None
    masks: MaskSource | None = None
    """None where every pixel of every frame counts."""
    broken: tuple[int, ...] = ()
    """Frames whose pixels cannot be read: they keep their place, and their cameras are interpolated."""
    digests: tuple[str, ...] = ()
    """One per frame, part of every key made from its pixels: changes when they do."""
    notes: tuple[str, ...] = ()
    """What the user should know about the input, one line each."""
    lost: tuple[str, ...] = field(default=(), metadata={"in_key": False})
    """Those of the notes that tell of frames which are missing altogether."""
    chosen: tuple[int, ...] = field(default=(), metadata={"in_key": False})
    """Index of each frame among all images of the input; empty where these are all."""
    folder: Int[Tensor, "F"] | None = field(default=None, metadata={"in_key": False})
    """Number of each frame's sub-folder, which the names tell; None: one for every camera."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def places(self) -> tuple[int, ...]:
        """How users count the frames: among all images of the input."""
        return self.chosen or tuple(range(len(self)))

    @property
    def chain(self) -> Int[Tensor, "F"]:
        """Frames that follow each other: of one sub-folder, also where a phone was turned meanwhile."""
        return self.camera if self.folder is None else self.folder


@dataclass(frozen=True)
class Features:
    """One frame's local features: positions in the rectified image, RootSIFT times 512 in a byte."""

    keypoints: Float[Tensor, "n 2"]
    descriptors: UInt8[Tensor, "n 128"]
    scale: Float[Tensor, "n"]
    """Radius in pixels (SIFT's sigma)."""
    orientation: Float[Tensor, "n"]
    """Radians from +x towards +y."""

    def __len__(self) -> int:
        return len(self.keypoints)


@dataclass(frozen=True)
class Chunk:
    """A run of frames of one physical camera, in order; neighbours share one frame (C_k)."""

    index: int
    frames: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True)
class ChunkPrior:
    """What a prior says of a chunk, or of a sound piece of it; depth 0 = unknown (G_i, Eq. local_priors)."""

    frame: Int[Tensor, "n"]
    depth: Float[Tensor, "n H W"]
    confidence: Float[Tensor, "n H W"]
    cam_from_chunk: SE3
    intrinsics: Float[Tensor, "n 4"]
    """(fx, fy, cx, cy) in pixels of the depth map's size."""

    def __post_init__(self) -> None:
        assert len(self.cam_from_chunk) == len(self.frame), "one camera per frame"

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True)
class Observations:
    """The index over all chunks: a frame shared by two chunks is observed twice (c(i), T_i^loc)."""

    frame: Int[Tensor, "N"]
    chunk: Int[Tensor, "N"]
    cam_from_chunk: SE3
    intrinsics: Float[Tensor, "N 4"]
    confidence: Float[Tensor, "N"]
    """Mean of the valid confidence, normalised by the prior's adapter: elects the canonical observation."""
    size: tuple[int, int]
    """(width, height) that intrinsics and matched pixels refer to."""

    def __post_init__(self) -> None:
        assert len(self.cam_from_chunk) == len(self.frame), "one camera per observation"

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def chunks(self) -> int:
        """How many chunks there are (K)."""
        return int(self.chunk.max()) + 1 if len(self) else 0


class EdgeKind(IntEnum):
    """Why two frames are matched with each other."""

    TEMPORAL = 0
    CROSS_CHUNK = 1
    LONG_RANGE = 2


@dataclass(frozen=True)
class ViewGraph:
    """Pairs of physical frames worth matching, i < j (H = (V, E))."""

    edges: Int[Tensor, "E 2"]
    kind: Int[Tensor, "E"]

    def __len__(self) -> int:
        return len(self.edges)


@dataclass(frozen=True)
class Matches:
    """Dense matches, sorted by edge: pixel_i in the edge's first frame, pixel_j in its second (M_ij)."""

    edge: Int[Tensor, "M"]
    pixel_i: Float[Tensor, "M 2"]
    pixel_j: Float[Tensor, "M 2"]
    score: Float[Tensor, "M"]
    """The matcher's own confidence s_m in [0, 1]."""

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class Correspondences:
    """All that the optimiser needs: one table, sorted by edge, depth already read (Eq. match_weight)."""

    edge: Int[Tensor, "M"]
    observation_i: Int[Tensor, "M"]
    observation_j: Int[Tensor, "M"]
    pixel_i: Float[Tensor, "M 2"]
    pixel_j: Float[Tensor, "M 2"]
    depth_i: Float[Tensor, "M"]
    """Prior depth at pixel_i in the units of its chunk; 0 where the prior has none."""
    depth_j: Float[Tensor, "M"]
    weight: Float[Tensor, "M"]

    def __len__(self) -> int:
        return len(self.edge)

    def __getitem__(self, rows: Tensor | slice) -> "Correspondences":
        return Correspondences(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class ChunkLayout:
    """Where each chunk lies: one similarity per chunk (S_k); components are not tied to each other."""

    world_from_chunk: Sim3
    component: Int[Tensor, "K"]

    def __len__(self) -> int:
        return len(self.component)


@dataclass(frozen=True)
class FrameState:
    """Stage 3's variables (Theta_i, Phi_g; Eq. variables)."""

    cam_from_world: SE3
    depth_scale: Float[Tensor, "F"]
    """a_i, on top of the globally scaled depth."""
    depth_shift: Float[Tensor, "F"]
    """b_i, in world units."""
    focal_delta: Float[Tensor, "G 2"]
    """Delta f in pixels, added to the focal of every frame of the group."""
    depth_bend: Float[Tensor, "F r c"] | None = None
    """Log of a factor on the depth, before a_i and b_i, at nodes over the image; None: not bent (paper)."""


@dataclass(frozen=True)
class StageReport:
    """What a stage did and why it stopped."""

    name: str
    objective: tuple[float, ...] = ()
    seconds_at: tuple[float, ...] = ()
    """Wall-clock seconds at each entry of `objective`; `median_at`: pixels, the paper's test to stop."""
    median_px: float = float("nan")
    iterations: int = 0
    why_stopped: str = ""
    seconds: float = 0.0
    rejected_edges: tuple[int, ...] = ()
    """Indices into the view graph's edges."""
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """What it found that casts doubt on the whole map."""
    median_at: tuple[float, ...] = ()


@dataclass(frozen=True)
class Reconstruction:
    """The answer: a camera for every frame, and which of them the data support."""

    names: tuple[str, ...]
    timestamps: Float[Tensor, "F"]
    cam_from_world: SE3
    intrinsics: Float[Tensor, "F 4"]
    size: tuple[int, int]
    trusted: Bool[Tensor, "F"]
    sigma: Float[Tensor, "F 2"]
    """One sigma of the camera centre (world units) and of the rotation (radians)."""
    reason: dict[int, str] = field(default_factory=dict)
    """Why an untrusted frame is not trusted, in words."""
    reports: tuple[StageReport, ...] = ()

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Trajectory:
    """Cameras of some frames, as files hold them: matched to others by name, else by time, else by index."""

    cam_from_world: SE3
    index: Int[Tensor, "n"]
    """Place in the sequence, counted from 0."""
    names: tuple[str, ...] | None = None
    timestamps: Float[Tensor, "n"] | None = None
    trusted: Bool[Tensor, "n"] | None = None
    """None where the file does not say."""

    def __post_init__(self) -> None:
        assert len(self.cam_from_world) == len(self.index), "one camera per frame"

    def __len__(self) -> int:
        return len(self.index)

    def choose(self, rows: Int[Tensor, "m"]) -> "Trajectory":
        """Some of the frames."""
        names = None if self.names is None else tuple(self.names[i] for i in rows.tolist())
        times, trusted = (None if x is None else x[rows] for x in (self.timestamps, self.trusted))
        return Trajectory(self.cam_from_world[rows], self.index[rows], names, times, trusted)

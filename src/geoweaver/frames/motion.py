"""How far the image moves from frame to frame, and how sharp each frame is: cheap, on small grey images."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.datatypes import Frames
from geoweaver.engine import Engine, LocalEngine
from geoweaver.frames.images import UnreadableFrameError
from geoweaver.store import Store, artifact_key, cached_noun, digest_of

STAGE = "motion"
VERSION = 1
BLOCK = 64
"""Frames measured as one piece: a killed run repeats at most these."""
SMALL = 320
"""Long side of the images that are tracked."""
_FEWEST, _LOST = 12, 0.3


@dataclass(frozen=True)
class Motion:
    """Of each frame: displacement since the frame before it in its chain, and sharpness."""

    displacement: Float[Tensor, "n"]
    """Relative to the image's long side; infinite where the track is lost, 0 for the first of a chain."""
    sharpness: Float[Tensor, "n"]
    """Variance of the Laplacian; NaN where the frame cannot be read."""


def measure_motion(frames: Frames, store: Store | None = None, engine: Engine | None = None) -> Motion:
    """All frames' motion, block by block; with a store, finished blocks are kept."""
    blocks = [chain[i : i + BLOCK] for chain in chains(frames) for i in range(0, len(chain), BLOCK)]
    before = {b: a for chain in chains(frames) for a, b in pairwise(chain)}
    pieces = [((before[block[0]],) if block[0] in before else (), tuple(block)) for block in blocks]
    displacement = torch.zeros(len(frames), dtype=torch.float64)
    sharpness = torch.zeros(len(frames), dtype=torch.float64)
    results = (engine or LocalEngine()).map(_Measure(frames, store), pieces, title="frames: motion")
    for block, motion in zip(blocks, results, strict=True):
        displacement[block], sharpness[block] = motion.displacement, motion.sharpness
    return Motion(displacement, sharpness)


def chains(frames: Frames) -> list[list[int]]:
    """The frames that follow each other, in order: those of each sub-folder."""
    return frames_by(frames.chain)


def frames_by(number: Int[Tensor, "F"]) -> list[list[int]]:
    """The frames of each number, in order."""
    told = number.tolist()
    return [[i for i, c in enumerate(told) if c == g] for g in sorted(set(told))]


@dataclass(frozen=True)
class _Measure:
    frames: Frames
    store: Store | None

    def __call__(self, piece: tuple[tuple[int, ...], tuple[int, ...]]) -> Motion:
        before, block = piece
        if self.store is None or not self.frames.digests:
            return _measure(self.frames, before, block)
        inputs = digest_of([self.frames.digests[i] for i in (*before, *block)])
        key = artifact_key(STAGE, VERSION, [SMALL, list(before), list(block)], [inputs])
        name = f"block-{block[0]:06}"
        return cached_noun(
            self.store, Motion, STAGE, name, key, lambda: _measure(self.frames, before, block)
        )[0]


def _measure(frames: Frames, before: Sequence[int], block: Sequence[int]) -> Motion:
    last = None
    displacement, sharpness = [], []
    for i in (*before, *block):
        grey = _small_grey(frames, i)
        moved = 0.0 if grey is None or last is None else image_motion(last, grey)
        last = last if grey is None else grey
        if i in block:
            displacement.append(moved)
            sharpness.append(float("nan") if grey is None else image_sharpness(grey))
    real = torch.float64
    return Motion(torch.tensor(displacement, dtype=real), torch.tensor(sharpness, dtype=real))


def image_motion(one: Any, two: Any) -> float:
    """Upper-quartile displacement of tracked corners over the long side; infinite where most are lost.

    The quartile, not the median: driving forward, the far half of the picture hardly moves.
    """
    import cv2

    corners = cv2.goodFeaturesToTrack(one, 200, 0.01, 6)
    if corners is None or len(corners) < _FEWEST:
        return float("inf")
    window: dict[str, Any] = {"winSize": (15, 15), "maxLevel": 4}
    there, found, _ = cv2.calcOpticalFlowPyrLK(one, two, corners, None, **window)
    back, returned, _ = cv2.calcOpticalFlowPyrLK(two, one, there, None, **window)
    kept = (found & returned).ravel() > 0
    kept &= np.linalg.norm((back - corners).reshape(-1, 2), axis=-1) < 1
    if kept.sum() < max(_FEWEST, _LOST * len(corners)):
        return float("inf")
    moved = np.linalg.norm((there - corners).reshape(-1, 2)[kept], axis=-1)
    return float(np.quantile(moved, 0.75) / max(one.shape))


def image_sharpness(grey: Any) -> float:
    """Variance of the Laplacian."""
    import cv2

    return float(cv2.Laplacian(grey, cv2.CV_32F).var())


def _small_grey(frames: Frames, frame: int) -> Any:
    import cv2

    cv2.setNumThreads(1)
    assert frames.pixels is not None, "frames without pixels do not move"
    try:
        grey = cv2.cvtColor(frames.pixels.read(frame), cv2.COLOR_RGB2GRAY)
    except UnreadableFrameError:
        return None
    scale = min(1.0, SMALL / max(grey.shape))
    return cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else grey

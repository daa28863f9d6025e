"""Rectified images kept in the store: a video's frames at random without decoding it again and again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8

from geoweaver.datatypes import Frames
from geoweaver.engine import Engine, LocalEngine
from geoweaver.errors import InputError
from geoweaver.frames.pixels import RectifiedPixels
from geoweaver.store import Flat, Store, artifact_key

STAGE = "pixels"
VERSION = 1
BLOCK = 16
"""Consecutive frames that one worker decodes."""


@runtime_checkable
class Rectified(Protocol):
    """Where images come from that are not in the store."""

    def read(self, frame: int) -> UInt8[np.ndarray, "height width 3"]: ...

    def read_original(self, frame: int) -> UInt8[np.ndarray, "height width 3"]: ...


@dataclass(frozen=True)
class KeptPixels:
    """Reads what is in the store, without loss, and everything else from where it came."""

    source: Rectified
    store: Store
    digests: tuple[str, ...]

    def read(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        """The rectified image."""
        piece, key = f"frame-{frame:06}", self.key(frame)
        if not self.store.has(STAGE, piece, key):
            return self.source.read(frame)
        return _decode(self.store.load(STAGE, piece, key).tensors["png"])

    def read_original(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        """Upright, at the original size, not rectified."""
        return self.source.read_original(frame)

    def key(self, frame: int) -> str:
        """Of the kept image."""
        return artifact_key(STAGE, VERSION, None, [self.digests[frame]])

    def keep(self, block: Sequence[int]) -> int:
        """Decode a block of frames into the store; those that cannot be read are left out."""
        kept = 0
        for frame in block:
            try:
                self.store.cached(STAGE, f"frame-{frame:06}", self.key(frame), partial(self._flat, frame))
            except InputError:
                continue
            kept += 1
        return kept

    def _flat(self, frame: int) -> Flat:
        import cv2

        fast = [cv2.IMWRITE_PNG_COMPRESSION, 1]
        _, data = cv2.imencode(".png", self.source.read(frame)[..., ::-1], fast)
        return {"png": torch.from_numpy(data.ravel())}, {}


def keep_pixels(
    frames: Frames, store: Store, engine: Engine | None = None, which: Sequence[int] | None = None
) -> Frames:
    """Frames whose listed images (else all keyframes) are read from the store: about 0.3 MB each.

    Keyframes that turn out unreadable join the broken ones.
    """
    source = frames.pixels.source if isinstance(frames.pixels, KeptPixels) else frames.pixels
    assert isinstance(source, RectifiedPixels), "only opened frames can be kept"
    kept = KeptPixels(source, store, frames.digests)
    rows = frames.keyframe.nonzero()[:, 0].tolist() if which is None else sorted(which)
    missing = [i for i in rows if not store.has(STAGE, f"frame-{i:06}", kept.key(i))]
    blocks = [missing[i : i + BLOCK] for i in range(0, len(missing), BLOCK)]
    for _ in (engine or LocalEngine()).map(kept.keep, blocks, title="frames"):
        pass
    frames = replace(frames, pixels=kept)
    lost = [
        i for i in missing if bool(frames.keyframe[i]) and not store.has(STAGE, f"frame-{i:06}", kept.key(i))
    ]
    if not lost:
        return frames
    keyframe = frames.keyframe.clone()
    keyframe[lost] = False
    return replace(frames, keyframe=keyframe, broken=tuple(sorted({*frames.broken, *lost})))


def _decode(png: torch.Tensor) -> UInt8[np.ndarray, "height width 3"]:
    import cv2

    image = cv2.imdecode(png.numpy(), cv2.IMREAD_COLOR)
    assert image is not None, "the store checks what it keeps"
    return np.ascontiguousarray(image[..., ::-1])

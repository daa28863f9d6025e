"""Every frame's features, computed once and kept in the store."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from geoweaver.datatypes import Features, Frames
from geoweaver.engine import Engine, LocalEngine
from geoweaver.errors import InputError
from geoweaver.features.sift import DEFAULTS, FeatureConfig, extract_features, no_features
from geoweaver.store import Store, artifact_key, cached_noun, digest_of, tensor_digest

STAGE = "features"
VERSION = 1
BLOCK = 8
"""Consecutive frames that one worker reads: a video is decoded from its last keyframe on."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FrameFeatures:
    """Reads a frame's features from the store; a frame that is not there is computed and kept. Picklable."""

    frames: Frames
    store: Store
    config: FeatureConfig = DEFAULTS

    def read(self, frame: int) -> Features:
        """The features of one frame, memory-mapped."""
        piece = f"frame-{frame:06}"
        return cached_noun(self.store, Features, STAGE, piece, self.key(frame), lambda: self._compute(frame))[
            0
        ]

    def key(self, frame: int) -> str:
        """Changes when the frame's features do: for the keys of whatever is made from them."""
        return artifact_key(STAGE, VERSION, self.config, [self._digest(frame)])

    def _digest(self, frame: int) -> str:
        if self.frames.digests:
            return self.frames.digests[frame]
        import torch

        assert self.frames.pixels is not None, "frames without pixels have no features"
        return tensor_digest(torch.from_numpy(self.frames.pixels.read(frame)))

    def _compute(self, frame: int) -> Features:
        assert self.frames.pixels is not None, "frames without pixels have no features"
        if frame in self.frames.broken:
            return no_features()
        try:
            image = self.frames.pixels.read(frame)
        except InputError as error:
            log.warning("%s", error)
            return no_features()
        usable = None if self.frames.masks is None else self.frames.masks.read(frame)
        return extract_features(image, usable, self.config)


def compute_features(
    frames: Frames,
    store: Store,
    config: FeatureConfig = DEFAULTS,
    engine: Engine | None = None,
    which: Sequence[int] | None = None,
) -> FrameFeatures:
    """Features of these frames (else of all keyframes), kept one by one, so that a killed run goes on."""
    features = FrameFeatures(frames, store, config)
    rows = frames.keyframe.nonzero()[:, 0].tolist() if which is None else sorted(which)
    missing = [i for i in rows if not store.has(STAGE, f"frame-{i:06}", features.key(i))]
    blocks = [missing[i : i + BLOCK] for i in range(0, len(missing), BLOCK)]
    for _ in (engine or LocalEngine()).map(_Keep(features), blocks, title=STAGE):
        pass
    return features


@dataclass(frozen=True)
class _Keep:
    """What a worker does with a block of frames."""

    features: FrameFeatures

    def __call__(self, block: list[int]) -> int:
        return sum(len(self.features.read(frame)) for frame in block)


def features_digest(features: FrameFeatures, which: Sequence[int]) -> str:
    """One digest of several frames' features."""
    return digest_of([features.key(frame) for frame in which])

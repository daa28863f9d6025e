"""The classical matcher: every edge's dense matches from pixels and local features, on a CPU."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from geoweaver.datatypes import Frames, Matches
from geoweaver.matching.classical_config import ClassicalConfig
from geoweaver.matching.classical_pair import REJECTED, PairMatches, match_pair
from geoweaver.matching.two_view import ReadFeatures

__all__ = ["ClassicalConfig", "ClassicalMatcher", "PairMatches", "match_pair"]


@dataclass(frozen=True)
class ClassicalMatcher:
    """Flow on images aligned by verified features; deterministic, one thread. Picklable."""

    config: ClassicalConfig = field(default_factory=ClassicalConfig)
    name: str = "classical"
    version: int = 1

    def match(
        self, frames: Frames, read_features: ReadFeatures, edge_pairs: Sequence[tuple[int, int, int]]
    ) -> Matches:
        """Matches of (edge, frame_i, frame_j), sorted by edge; an edge without matches is rejected."""
        found = [(edge, self._pair(frames, read_features, i, j)) for edge, i, j in sorted(edge_pairs)]
        return _joined(found)

    def _pair(self, frames: Frames, read_features: ReadFeatures, i: int, j: int) -> PairMatches:
        if i in frames.broken or j in frames.broken:
            return REJECTED
        assert frames.pixels is not None, "frames without pixels cannot be matched"
        images = [frames.pixels.read(k) for k in (i, j)]
        masks = [None if frames.masks is None else frames.masks.read(k) for k in (i, j)]
        return match_pair(images[0], images[1], read_features(i), read_features(j), self.config, *masks)


def _joined(found: list[tuple[int, PairMatches]]) -> Matches:
    """One table of many pairs, in their order."""
    edge = np.concatenate([np.zeros(0, np.int64), *(np.full(len(p), e) for e, p in found)])
    pixel_i, pixel_j = (
        np.concatenate([np.zeros((0, 2)), *(getattr(p, side) for _, p in found)])
        for side in ("pixel_i", "pixel_j")
    )
    score = np.concatenate([np.zeros(0), *(p.score for _, p in found)])
    return Matches(*(torch.from_numpy(column) for column in (edge, pixel_i, pixel_j, score)))

"""The classical matcher: every edge's dense matches from pixels and local features, on a CPU."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch

from geoweaver.datatypes import Features, Frames, Matches
from geoweaver.matching.classical_config import ClassicalConfig
from geoweaver.matching.classical_pair import REJECTED, PairMatches, match_pair
from geoweaver.matching.two_view import ReadFeatures

__all__ = ["ClassicalConfig", "ClassicalMatcher", "PairMatches", "match_pair"]

_KEPT = 12
"""Frames kept while edges are matched: neighbours in the list share them."""


class _View(NamedTuple):
    """All that a frame brings to a pair."""

    image: np.ndarray
    features: Features
    mask: np.ndarray | None


@dataclass(frozen=True)
class ClassicalMatcher:
    """Flow on images aligned by verified features; deterministic, one thread. Picklable."""

    config: ClassicalConfig = field(default_factory=ClassicalConfig)
    name: str = "classical"
    version: int = 3

    def match(
        self, frames: Frames, read_features: ReadFeatures, edge_pairs: Sequence[tuple[int, int, int]]
    ) -> Matches:
        """Matches of (edge, frame_i, frame_j), sorted by edge; an edge without matches is rejected."""
        assert frames.pixels is not None or not edge_pairs, "frames without pixels cannot be matched"
        view = lru_cache(maxsize=_KEPT)(partial(_view, frames, read_features))
        found = [
            (edge, REJECTED if {i, j} & set(frames.broken) else self._pair(view(i), view(j)))
            for edge, i, j in sorted(edge_pairs)
        ]
        return _joined(found)

    def _pair(self, i: _View, j: _View) -> PairMatches:
        return match_pair(i.image, j.image, i.features, j.features, self.config, i.mask, j.mask)


def _view(frames: Frames, read_features: ReadFeatures, frame: int) -> _View:
    assert frames.pixels is not None
    mask = None if frames.masks is None else frames.masks.read(frame)
    return _View(frames.pixels.read(frame), read_features(frame), mask)


def _joined(found: list[tuple[int, PairMatches]]) -> Matches:
    """One table of many pairs, in their order."""
    edge = np.concatenate([np.zeros(0, np.int64), *(np.full(len(p), e) for e, p in found)])
    pixel_i, pixel_j = (
        np.concatenate([np.zeros((0, 2)), *(getattr(p, side) for _, p in found)])
        for side in ("pixel_i", "pixel_j")
    )
    score = np.concatenate([np.zeros(0), *(p.score for _, p in found)])
    return Matches(*(torch.from_numpy(column) for column in (edge, pixel_i, pixel_j, score)))

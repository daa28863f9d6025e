"""The RoMa matchers: dense warps by a network, on a GPU if there is one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from geoweaver.datatypes import Frames, Matches
from geoweaver.errors import ConfigError, MissingExtraError
from geoweaver.matching.roma_networks import COARSE, LOADERS, Warper
from geoweaver.matching.roma_warp import Warp, WarpConfig, WarpMatches, no_matches, sample_warp
from geoweaver.matching.two_view import ReadFeatures
from geoweaver.models.weights import read_state
from geoweaver.store import NOT_IN_KEY, file_digest

_KEPT = 32
"""Images kept while edges are matched: neighbours in the list share them."""
_SIDE = {"roma": COARSE, "romav2": 640}
"""Pixels of a side that each network gets its images at."""


class _View(NamedTuple):
    """All that a frame brings to a pair."""

    image: Tensor
    mask: np.ndarray | None


@dataclass(frozen=True)
class RomaMatcher:
    """RoMa (`romatch`) or RoMa v2 (`romav2`). Picklable: the network is loaded where it is used."""

    name: str = "roma"
    path: str = field(default="", metadata=NOT_IN_KEY)
    """outdoor, indoor, or a weight file."""
    weights: str = ""
    """What the path stands for: a name, or the file's digest."""
    config: WarpConfig = field(default_factory=WarpConfig)
    device: str = field(default="auto", metadata=NOT_IN_KEY)
    batch: int = field(default=8, metadata=NOT_IN_KEY)
    """Pairs at once on a GPU; halved where its memory does not hold them."""
    seed: int = 0
    version: int = 1

    def match(
        self, frames: Frames, read_features: ReadFeatures, edge_pairs: Sequence[tuple[int, int, int]]
    ) -> Matches:
        """Matches of (edge, frame_i, frame_j), sorted by edge; an edge without matches is rejected."""
        assert frames.pixels is not None or not edge_pairs, "frames without pixels cannot be matched"
        broken = set(frames.broken)
        edges = sorted(edge_pairs)
        whole = [edge for edge in edges if not broken & set(edge[1:])]
        view = lru_cache(maxsize=_KEPT)(partial(_view, frames, _SIDE[self.name]))
        found = {edge[0]: no_matches() for edge in edges}
        step = self._first_batch()
        while whole:
            block, whole = whole[:step], whole[step:]
            pairs = [(view(i), view(j)) for _, i, j in block]
            warps, step = self._warps(pairs, step)
            # what did not fit goes back in front
            whole = block[len(warps) :] + whole
            for (edge, i, j), warp, (first, second) in zip(block, warps, pairs, strict=False):
                rng = np.random.default_rng((self.seed, i, j))
                masks = (first.mask, second.mask)
                found[edge] = sample_warp(warp, frames.size, frames.size, rng, self.config, *masks)
        return _joined(found)

    def _warps(self, pairs: list[tuple[_View, _View]], step: int) -> tuple[list[Warp], int]:
        """Warps of the first pairs that fit into memory, and how many at once to try from now on."""
        warper = _loaded(self.name, self.path, self.weights, self._device)
        while True:
            use = pairs[:step]
            images = [torch.stack([pair[side].image for pair in use]) for side in (0, 1)]
            try:
                with torch.inference_mode():
                    return warper(*images), step
            except torch.OutOfMemoryError as error:
                if step == 1:
                    raise ConfigError(
                        f"the GPU has too little memory for one pair of the matcher {self.name}: "
                        "use --device cpu or --matcher classical"
                    ) from error
                torch.cuda.empty_cache()
                step //= 2

    def _first_batch(self) -> int:
        return self.batch if self._device == "cuda" else 1

    @property
    def _device(self) -> str:
        return ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device

    @property
    def most_workers(self) -> int | None:
        """Processes that may match at once: a GPU holds one copy of the network; None: any number."""
        return 1 if self._device == "cuda" else None


def roma(name: str, path: str | None) -> RomaMatcher:
    """A RoMa matcher from what follows the colon in --matcher NAME:PATH."""
    package = "romatch" if name == "roma" else name
    if find_spec(package) is None:
        # said before hours of other work, not when the first pair is matched
        raise MissingExtraError(package, "matchers", f"the matcher {name}")
    where = path or ""
    if not where or (name == "roma" and where in ("outdoor", "indoor")):
        return RomaMatcher(name, where, where)
    # damaged files show now too
    read_state(Path(where), "meta")
    return RomaMatcher(name, where, file_digest(Path(where)))


@lru_cache(maxsize=1)
def _loaded(name: str, path: str, weights: str, device: str) -> Warper:
    """A process keeps one network."""
    return LOADERS[name](path, device)


def _view(frames: Frames, side: int, frame: int) -> _View:
    import cv2

    assert frames.pixels is not None
    cv2.setNumThreads(1)
    image = frames.pixels.read(frame)
    how = cv2.INTER_AREA if min(image.shape[:2]) > side else cv2.INTER_CUBIC
    square = torch.from_numpy(cv2.resize(image, (side, side), interpolation=how))
    mask = None if frames.masks is None else frames.masks.read(frame)
    return _View(square.permute(2, 0, 1).float() / 255, mask)


def _joined(found: dict[int, WarpMatches]) -> Matches:
    """One table of many pairs, by edge."""
    parts = [found[edge] for edge in sorted(found)]
    edge = torch.cat(
        [torch.zeros(0, dtype=torch.long), *(torch.full((len(found[e]),), e) for e in sorted(found))]
    )
    columns = (
        torch.cat([getattr(no_matches(), c), *(getattr(p, c) for p in parts)])
        for c in ("pixel_i", "pixel_j", "score")
    )
    return Matches(edge, *columns)

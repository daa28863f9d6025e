"""Point cloud against point cloud: accuracy, completeness, and F-score at a distance."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.errors import ConfigError, DegenerateError

NEAR = 4.0
"""Median depths: what lies farther off, outside of windows, is scored apart."""
_BLOCK = 200_000
"""Points asked for at a time: bounds what the search holds in memory."""


@dataclass(frozen=True)
class CloudScores:
    """How close the estimate is to the reference, and how much of the reference it covers."""

    accuracy: float
    """Mean distance from an estimated point to the reference."""
    completeness: float
    """Mean distance from a reference point to the estimate."""
    precision: float
    """Percent of the estimate within the threshold of the reference."""
    recall: float
    """Percent of the reference within the threshold of the estimate."""
    fscore: float
    """Harmonic mean of precision and recall, in percent."""
    threshold: float


def score_cloud(
    estimate: Float[Tensor, "n 3"],
    reference: Float[Tensor, "m 3"],
    threshold: float,
    max_points: int | None = None,
    generator: torch.Generator | None = None,
) -> CloudScores:
    """Compare clouds of one world and unit; `max_points` draws that many of each at random, unweighted."""
    if not threshold > 0:
        raise ConfigError(f"the distance threshold is {threshold:g}: give a positive one")
    estimate, reference = (_subsample(cloud, max_points, generator) for cloud in (estimate, reference))
    for side, cloud in (("estimated", estimate), ("reference", reference)):
        if not len(cloud) or not bool(cloud.isfinite().all()):
            raise DegenerateError(
                f"the {side} cloud is empty or holds points that are not finite: clean it first"
            )
    to_reference = nearest_distances(estimate, reference)
    to_estimate = nearest_distances(reference, estimate)
    precision = 100 * float((to_reference <= threshold).double().mean())
    recall = 100 * float((to_estimate <= threshold).double().mean())
    total = precision + recall
    fscore = 2 * precision * recall / total if total else 0.0
    return CloudScores(
        float(to_reference.mean()), float(to_estimate.mean()), precision, recall, fscore, threshold
    )


def near_cameras(
    points: Float[Tensor, "n 3"], centre: Float[Tensor, "c 3"], median_depth: float
) -> Bool[Tensor, "n"]:
    """Within `NEAR` median depths of some camera."""
    return nearest_distances(points, centre) <= NEAR * median_depth


def nearest_distances(points: Float[Tensor, "n 3"], cloud: Float[Tensor, "m 3"]) -> Float[Tensor, "n"]:
    """Distance from each point to the nearest point of the cloud."""
    from scipy.spatial import cKDTree  # a third of a second that other scores need not wait for

    tree = cKDTree(cloud.double().numpy())
    queries = points.double().numpy()
    blocks = [tree.query(queries[i : i + _BLOCK])[0] for i in range(0, len(queries), _BLOCK)]
    return torch.from_numpy(np.concatenate(blocks))


def _subsample(
    cloud: Float[Tensor, "n 3"], most: int | None, generator: torch.Generator | None
) -> Float[Tensor, "k 3"]:
    if most is None or len(cloud) <= most:
        return cloud
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    return cloud[torch.randperm(len(cloud), generator=generator)[:most]]

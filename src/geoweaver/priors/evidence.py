"""Does a prediction know anything? It must explain the features' motion better than a camera at rest."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.datatypes import ChunkPrior
from geoweaver.geometry.camera import lift, project_with_depth, sample_nearest
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.sfm_pairs import match_descriptors, pixel_array, verify_pair

log = logging.getLogger(__name__)

_PAIRS = 12
"""Pairs of frames that are asked, spread over the piece."""
_OFFSETS = (4, 2, 1)
"""Frames between the two of a pair: the first that still has common features."""
_MOVED = 0.01
"""Motion in image diagonals below which a pair says nothing."""
_UNEXPLAINED = 0.5
"""Share of the motion that may be left over."""


def believed(prior: ChunkPrior, read_features: ReadFeatures, size: tuple[int, int]) -> ChunkPrior:
    """The same piece; without any confidence where its features move in another way than it says.

    Its cameras stay as a guess, but nothing is woven by them: the frames end up as not trusted.
    """
    left = unexplained_motion(prior, read_features, size)
    if not left > _UNEXPLAINED:
        return prior
    first, last = int(prior.frame[0]), int(prior.frame[-1])
    log.warning(
        "frames %d to %d: the prior leaves %.0f %% of the features' motion unexplained, it is not believed",
        first, last, 100 * min(left, 9.99),
    )  # fmt: skip
    return replace(prior, confidence=torch.zeros_like(prior.confidence))


def unexplained_motion(prior: ChunkPrior, read_features: ReadFeatures, size: tuple[int, int]) -> float:
    """Median over pairs: how far features are from where the piece puts them, over how far they moved.

    0: all of the motion is explained; 1: no better than a camera at rest; nan: no pair moved enough to tell.
    """
    shares = [_pair_share(prior, k, read_features, size) for k in _spread(len(prior))]
    told = [share for share in shares if not math.isnan(share)]
    return float(np.median(told)) if told else math.nan


def _spread(count: int) -> Sequence[int]:
    """Places where pairs begin, evenly over the piece."""
    most = max(count - 1, 0)
    return sorted({round(k) for k in np.linspace(0, most - 1, min(_PAIRS, most))}) if most else ()


def _pair_share(prior: ChunkPrior, row: int, read_features: ReadFeatures, size: tuple[int, int]) -> float:
    for offset in _OFFSETS:
        if row + offset < len(prior):
            found = _common(prior, row, row + offset, read_features)
            if len(found[0]):
                return _share(prior, (row, row + offset), *found, size)
    return math.nan


def _common(
    prior: ChunkPrior, a: int, b: int, read_features: ReadFeatures
) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, "n 2"]]:
    """Features of two frames that one epipolar geometry explains."""
    features = [read_features(int(prior.frame[k])) for k in (a, b)]
    matches = match_descriptors(*features)
    first, second = (pixel_array(f) for f in features)
    pair = verify_pair((a, b), first, second, matches).matches
    return first[pair[:, 0]], second[pair[:, 1]]


def _share(
    prior: ChunkPrior,
    pair: tuple[int, int],
    first: Float[np.ndarray, "n 2"],
    second: Float[np.ndarray, "n 2"],
    size: tuple[int, int],
) -> float:
    """Median miss over median motion of one pair; nan where the features hardly move or have no depth."""
    a, b = pair
    height, width = prior.depth.shape[-2:]
    scale = torch.tensor([width / size[0], height / size[1]], dtype=torch.float64)
    seen, wanted = torch.from_numpy(first) * scale, torch.from_numpy(second) * scale
    depth, known = sample_nearest(prior.depth[a].double(), seen)
    moved = (wanted - seen).norm(dim=-1).median()
    if int(known.sum()) < 8 or float(moved) < _MOVED * math.hypot(width, height):
        return math.nan
    points = lift(seen, depth, prior.intrinsics[a].double())
    there = prior.cam_from_chunk[b] @ prior.cam_from_chunk[a].inverse()
    pixel, z = project_with_depth(there.act(points), prior.intrinsics[b].double())
    miss: Tensor = torch.where(z > 0, (pixel - wanted).norm(dim=-1), torch.inf)
    return float(miss[known].median() / moved)

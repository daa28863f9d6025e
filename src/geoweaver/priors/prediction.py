"""From what a model says of some views to sound chunk priors: one contract for every source.

Cameras are OpenCV cam_from_chunk, depth is z, intrinsics count from the depth map's corner. Confidence comes
on any positive scale and leaves in [0, 1], 0.5 being the chunk's typical pixel: whatever comes later cannot
know its source.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.datatypes import ChunkPrior, Frames
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import intrinsic_matrix
from geoweaver.models import plausible_cameras
from geoweaver.models.camera_head import encode_cameras
from geoweaver.priors.views import known_intrinsics, usable_pixels

log = logging.getLogger(__name__)

VERSION = 2
"""Goes up when adapters make other priors of the same predictions: part of the artifacts' keys."""
_ORTHONORMAL = 0.05
"""Largest entry of R R^T - I that half precision explains."""
_MAX_SORTED = 1_000_000
"""Confidences that the median is taken of."""


@dataclass(frozen=True)
class Prediction:
    """A model's answer to n views in our conventions, its confidence still on its own scale."""

    depth: Float[Tensor, "n H W"]
    """Not positive or not finite = unknown."""
    confidence: Float[Tensor, "n H W"] | None
    """Positive, larger is surer, any scale; None where the model does not say."""
    cam_from_chunk: SE3
    intrinsics: Float[Tensor, "n 4"]
    sound: Bool[Tensor, "n"]
    """False where the model gave no camera that could be one."""
    separate: bool = False
    """True where views do not share a coordinate system: each becomes a piece of its own."""


def as_priors(prediction: Prediction, frames: Frames, rows: Sequence[int]) -> list[ChunkPrior]:
    """The sound pieces of a prediction for these frames; views without a believable camera are left out."""
    height, width = prediction.depth.shape[-2:]
    depth = _known_depth(prediction.depth, usable_pixels(frames, rows, (width, height)))
    sound = prediction.sound & sound_cameras(
        prediction.cam_from_chunk, prediction.intrinsics, (width, height)
    )
    keep = (sound & (depth > 0).any(-1).any(-1)).nonzero().flatten()
    if len(keep) < len(rows):
        log.info("%d of %d views have no believable camera: left out", len(rows) - len(keep), len(rows))
    if not len(keep):
        return []
    confidence = None if prediction.confidence is None else prediction.confidence[keep]
    whole = ChunkPrior(
        torch.tensor([rows[k] for k in keep.tolist()]),
        depth[keep],
        contract_confidence(confidence, depth[keep]),
        prediction.cam_from_chunk[keep].to(torch.float64).orthonormalised(),
        _calibrated(prediction.intrinsics.double(), frames, rows, (width, height))[keep],
    )
    return [_some(whole, [k]) for k in range(len(keep))] if prediction.separate else [whole]


def contract_confidence(
    confidence: Float[Tensor, "n H W"] | None, depth: Float[Tensor, "n H W"]
) -> Float[Tensor, "n H W"]:
    """c / (c + the chunk's median c): in [0, 1], the same whatever the scale; 0 where depth is unknown."""
    known = depth > 0
    if confidence is None:
        return known.float() / 2
    positive = torch.nan_to_num(confidence.float(), nan=0.0, posinf=3e38, neginf=0.0).clamp(min=0)
    values = positive[known & (positive > 0)]
    if not len(values):
        return known.float() / 2
    median = values[:: -(-len(values) // _MAX_SORTED)].median()
    # the ratio first: two huge numbers must not add up to infinity
    odds = (positive / median).clamp(max=1e6)
    return torch.where(known, odds / (1 + odds), 0.0)


def sound_cameras(
    cam_from_chunk: SE3, intrinsics: Float[Tensor, "n 4"], size: tuple[int, int]
) -> Bool[Tensor, "n"]:
    """Which cameras could be cameras: finite, a rotation, a lens that exists, its axis within the image."""
    rotation, translation = cam_from_chunk.rotation.double(), cam_from_chunk.translation.double()
    finite = (
        rotation.isfinite().all((-2, -1)) & translation.isfinite().all(-1) & intrinsics.isfinite().all(-1)
    )
    R = torch.where(finite[:, None, None], rotation, torch.eye(3, dtype=torch.float64))
    t = torch.where(finite[:, None], translation, 0)
    K = torch.where(finite[:, None], intrinsics.double(), torch.ones(4, dtype=torch.float64))
    straight = (R @ R.mT - torch.eye(3, dtype=torch.float64)).abs().amax((-2, -1)) < _ORTHONORMAL
    encoding = encode_cameras(torch.cat([R, t[..., None]], -1), intrinsic_matrix(K), (size[1], size[0]))
    centred = (K[:, 2:] > 0).all(-1) & (K[:, 2:] < K.new_tensor(size)).all(-1) & (K[:, :2] > 0).all(-1)
    proper: Tensor = torch.linalg.det(R) > 0
    return finite & straight & proper & centred & plausible_cameras(encoding)


def anchored(prediction: Prediction, cam_from_world: SE3) -> Prediction:
    """The given cameras instead of the predicted ones, and depth scaled to their unit.

    Where the predicted path says nothing about the scale (too few views, no motion) the prediction stays.
    """
    told, given = prediction.cam_from_chunk.centre.double(), cam_from_world.centre.double()
    # the median over pairs: also a straight path has a scale, and a few wrong cameras do not spoil it
    ratio = torch.pdist(given) / torch.pdist(told)
    ratio = ratio[ratio.isfinite() & (ratio > 0)]
    if not len(ratio) or not bool(prediction.sound.all()):
        return prediction
    return replace(prediction, depth=prediction.depth * float(ratio.median()), cam_from_chunk=cam_from_world)


def _known_depth(
    depth: Float[Tensor, "n H W"], usable: Bool[Tensor, "n H W"] | None
) -> Float[Tensor, "n H W"]:
    depth = torch.where(depth.isfinite() & (depth > 0), depth, 0).float()
    return depth if usable is None else torch.where(usable, depth, 0)


def _calibrated(
    intrinsics: Float[Tensor, "n 4"], frames: Frames, rows: Sequence[int], size: tuple[int, int]
) -> Float[Tensor, "n 4"]:
    """What the user gave wins over what the model says: a calibrated focal is never corrected later."""
    given, known = known_intrinsics(frames, rows, size)
    return torch.where(known[:, None], given, intrinsics)


def _some(prior: ChunkPrior, rows: list[int]) -> ChunkPrior:
    return ChunkPrior(
        prior.frame[rows], prior.depth[rows], prior.confidence[rows], prior.cam_from_chunk[rows],
        prior.intrinsics[rows],
    )  # fmt: skip

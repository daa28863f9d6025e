"""The GPM's loss: geometry in each camera and in the clip, weighed by confidence, and relative cameras.

The truth is brought to the unit in which its points lie at distance 1 on average; the prediction, whose unit
is its own, is brought there by the one scale s* of the clip. Letters: B clips, S views, H W pixels.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import intrinsics_from_matrix, lift, pixel_centres
from geoweaver.models import GPMOutput
from geoweaver.training.batch import Batch
from geoweaver.training.scale import clip_scale, clip_unit
from geoweaver.training.settings import LossWeights

_COSINE_MARGIN = 1e-6
"""The cosine stays this far from 1 and -1, where the arc cosine has no finite slope."""


@dataclass(frozen=True)
class Losses:
    """The loss and its parts, each the mean over the clips."""

    total: Float[Tensor, ""]
    local: Float[Tensor, ""]
    overall: Float[Tensor, ""]
    rotation: Float[Tensor, ""]
    """Mean angle between predicted and true relative rotations, radians."""
    translation: Float[Tensor, ""]

    def row(self) -> dict[str, float]:
        """The parts as numbers."""
        return {key: float(value.detach()) for key, value in vars(self).items()}


def front_loss(output: GPMOutput, truth: Batch, weights: LossWeights) -> Losses:
    """All terms together (Eq. front_loss)."""
    if output.confidence is None or output.cam_from_world is None or output.intrinsics is None:
        raise ConfigError("a GPM without cameras or confidence cannot be trained: choose one with both")
    valid = (truth.depth > 0) & truth.depth.isfinite()
    points = camera_points(torch.where(valid, truth.depth, 0), truth.intrinsics)
    unit = clip_unit(points, valid)
    points = points / unit[:, None, None, None, None]
    cameras = _scaled(SE3.from_matrix(truth.cam_from_world), 1 / unit)
    local = camera_points(output.depth, intrinsics_from_matrix(output.intrinsics))
    scale = clip_scale(local.detach(), points, valid)
    local = local * scale[:, None, None, None, None]
    guessed = _scaled(SE3.from_matrix(output.cam_from_world), scale)

    near = geometry_loss(local, points, output.confidence, valid, weights.alpha)
    far = geometry_loss(
        clip_points(local, guessed), clip_points(points, cameras), output.confidence, valid, weights.alpha
    )
    # without a single known depth a clip has no unit: then only rotations can be compared
    known = valid.flatten(1).any(1)
    turn, move = camera_terms(guessed, cameras, weights.huber)
    move = torch.where(known, move, 0)
    camera = turn + weights.translation * move
    total = weights.local * near + weights.overall * far + weights.camera * camera
    return Losses(total.mean(), near.mean(), far.mean(), turn.mean(), move.mean())


def camera_points(
    depth: Float[Tensor, "B S H W"], intrinsics: Float[Tensor, "B S 4"]
) -> Float[Tensor, "B S H W 3"]:
    """Every pixel's point in its own camera."""
    height, width = depth.shape[-2:]
    pixel = pixel_centres(width, height, depth.dtype).to(depth.device)
    return lift(pixel.expand(*depth.shape, 2), depth, intrinsics[:, :, None, None])


def clip_points(points: Float[Tensor, "B S H W 3"], cam_from_world: SE3) -> Float[Tensor, "B S H W 3"]:
    """Points of all cameras in the clip's own coordinates, those of its first camera."""
    first_from_cam = cam_from_world[:, :1] @ cam_from_world.inverse()
    return first_from_cam[:, :, None, None].act(points)


def geometry_loss(
    points: Float[Tensor, "B S H W 3"],
    truth: Float[Tensor, "B S H W 3"],
    confidence: Float[Tensor, "B S H W"],
    valid: Bool[Tensor, "B S H W"],
    alpha: float,
) -> Float[Tensor, "B"]:
    """Distances weighed by confidence, less its logarithm, over all pixels, known or not (Eq. geo_loss)."""
    distance = (points - truth).abs().sum(-1)
    term = confidence * distance - alpha * confidence.log()
    return torch.where(valid, term, 0).flatten(1).mean(1)


def relative_cameras(cam_from_world: SE3) -> SE3:
    """T_j T_i^-1 of all ordered pairs, (B S S): row i, column j (Eq. relative_pose)."""
    return cam_from_world[:, None, :] @ cam_from_world.inverse()[:, :, None]


def camera_terms(guessed: SE3, truth: SE3, huber: float) -> tuple[Float[Tensor, "B"], Float[Tensor, "B"]]:
    """Rotation and translation terms, each the mean over the pairs i != j (Eq. camera_loss)."""
    views = guessed.translation.shape[1]
    predicted, wanted = relative_cameras(guessed), relative_cameras(truth)
    apart = ~torch.eye(views, dtype=torch.bool, device=guessed.translation.device)
    turn = rotation_loss(predicted.rotation, wanted.rotation)
    move = translation_loss(predicted.translation, wanted.translation, huber)
    pairs = max(views * (views - 1), 1)
    return (turn * apart).sum((1, 2)) / pairs, (move * apart).sum((1, 2)) / pairs


def rotation_loss(guessed: Float[Tensor, "*b 3 3"], truth: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b"]:
    """The angle between two rotations (Eq. rotation_loss)."""
    cosine = ((guessed * truth).sum((-2, -1)) - 1) / 2
    return cosine.clamp(-1 + _COSINE_MARGIN, 1 - _COSINE_MARGIN).arccos()


def translation_loss(
    guessed: Float[Tensor, "*b 3"], truth: Float[Tensor, "*b 3"], huber: float
) -> Float[Tensor, "*b"]:
    """Huber's penalty, the mean over the three coordinates (Eq. translation_loss)."""
    return torch.nn.functional.huber_loss(guessed, truth, reduction="none", delta=huber).mean(-1)


def _scaled(cameras: SE3, factor: Float[Tensor, "B"]) -> SE3:
    return SE3(cameras.rotation, cameras.translation * factor[:, None, None])

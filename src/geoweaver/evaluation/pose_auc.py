"""Pairwise pose AUC: the worse of rotation and translation angle, over ordered pairs (Eq. supp_pose_auc).

Relative rotations and translation directions do not feel a similarity, so nothing has to be aligned first.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.evaluation.alignment import extent
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import rotation_angle

MAX_PAIRS = 20_000
SEED = 42
_NO_DIRECTION = 90.0
"""Error in degrees of a direction that is not there: the worst that the sign-invariant angle can be."""


def ordered_pairs(frames: int) -> Int[Tensor, "p 2"]:
    """All (i, j) with i != j in row-major order; above 20,000 a sample by numpy's default_rng(42)."""
    total = frames * (frames - 1)
    if total > MAX_PAIRS:
        chosen = np.random.default_rng(SEED).choice(total, MAX_PAIRS, replace=False)
    else:
        chosen = np.arange(total)
    i, place = np.divmod(chosen, max(frames - 1, 1))
    # the diagonal is left out, so places from i on stand one further right
    return torch.from_numpy(np.stack([i, place + (place >= i)], -1))


def pair_errors_deg(
    estimate: SE3, reference: SE3, found: Bool[Tensor, "F"] | None = None
) -> Float[Tensor, "p"]:
    """Pairs' errors in degrees, inf without a frame (Eqs. supp_relative_pose, supp_translation_angle)."""
    pairs = ordered_pairs(len(reference))
    found = torch.ones(len(reference), dtype=torch.bool) if found is None else found
    i, j = pairs.unbind(-1)
    rotation = rotation_angle(_relative(reference, i, j) @ _relative(estimate, i, j).mT).rad2deg()
    translation = _direction_error(estimate, reference, found, i, j)
    errors = torch.maximum(rotation, translation)
    return errors.masked_fill(~(found[i] & found[j]), torch.inf)


def pose_auc(errors_deg: Float[Tensor, "p"], threshold_deg: float) -> float:
    """Area under the recall curve in percent: the mean of max(0, 1 - e / threshold) (Eq. supp_pose_auc)."""
    return 100 * float((1 - errors_deg / threshold_deg).clamp(min=0).mean())


def _relative(cam_from_world: SE3, i: Int[Tensor, "p"], j: Int[Tensor, "p"]) -> Float[Tensor, "p 3 3"]:
    """R_ij = R_j R_i^T (Eq. supp_relative_pose)."""
    return cam_from_world.rotation[j] @ cam_from_world.rotation[i].mT


def _direction_error(
    estimate: SE3, reference: SE3, found: Bool[Tensor, "F"], i: Int[Tensor, "p"], j: Int[Tensor, "p"]
) -> Float[Tensor, "p"]:
    """Angle between t_ij and its estimate up to sign (Eq. supp_translation_angle); 0 where t_ij is zero."""
    truth, truth_length = _direction(reference, reference.centre, i, j)
    guess, guess_length = _direction(estimate, estimate.centre, i, j)
    sine = torch.linalg.cross(truth, guess).norm(dim=-1)
    angle = torch.atan2(sine, (truth * guess).sum(-1).abs()).rad2deg()
    angle = angle.masked_fill(guess_length <= _rounding(estimate.centre[found]), _NO_DIRECTION)
    return angle.masked_fill(truth_length <= _rounding(reference.centre), 0.0)


def _direction(
    cam_from_world: SE3, centre: Float[Tensor, "F 3"], i: Int[Tensor, "p"], j: Int[Tensor, "p"]
) -> tuple[Float[Tensor, "p 3"], Float[Tensor, "p"]]:
    """Unit vector along t_ij = R_j (c_i - c_j), and |t_ij|; from centres, to be true far from the origin."""
    t = (cam_from_world.rotation[j] @ (centre[i] - centre[j])[..., None]).squeeze(-1)
    length = t.norm(dim=-1)
    return t / length.clamp(min=torch.finfo(t.dtype).tiny)[..., None], length


def _rounding(centres: Float[Tensor, "n 3"]) -> float:
    """Distance at which two centres are one place: far below the trajectory's extent, or lost in float64."""
    if not len(centres):
        return 0.0
    return 1e-9 * extent(centres) + 1e-14 * float(centres.norm(dim=-1).max())

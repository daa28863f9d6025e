"""Errors of single frames after the one alignment: ATE and RRE (Eq. supp_ate, supp_rre)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.so3 import rotation_angle


@dataclass(frozen=True)
class FrameErrors:
    """How far each matched frame's camera is from the reference."""

    translation: Float[Tensor, "m"]
    """In the reference's units."""
    rotation_deg: Float[Tensor, "m"]
    """By atan2, which equals Eq. supp_rotation_error and stays true for small angles."""

    def ate(self) -> float:
        """Absolute trajectory error: root of the mean square (Eq. supp_ate)."""
        return float(self.translation.square().mean().sqrt())

    def rre_deg(self) -> float:
        """Mean rotation registration error in degrees (Eq. supp_rre)."""
        return float(self.rotation_deg.mean())


def frame_errors(estimate: SE3, reference: SE3, reference_from_estimate: Sim3) -> FrameErrors:
    """Errors of the aligned camera centres and rotations (Eqs. supp_aligned_pose, supp_rotation_error)."""
    centres = reference_from_estimate.act(estimate.centre)
    rotation = estimate.rotation @ reference_from_estimate.rotation.mT
    angle = rotation_angle(rotation @ reference.rotation.mT)
    return FrameErrors((centres - reference.centre).norm(dim=-1), angle.rad2deg())

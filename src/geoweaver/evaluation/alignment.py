"""One Sim(3) for the whole sequence, by Umeyama over the camera centres (Eq. supp_sim3_alignment)."""

from jaxtyping import Float
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.evaluation.association import MAX_TIME_DIFF, Association, associate
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.geometry.registration import umeyama

__all__ = ["MAX_TIME_DIFF", "Association", "align", "aligned_cameras", "associate", "extent"]

MIN_FRAMES = 3
"""Fewer centres lie on a line and leave the rotation about it open."""
_ROUNDING = 1e-12
"""Spread over distance from the origin, below which centres differ by rounding alone."""


def extent(centres: Float[Tensor, "n 3"]) -> float:
    """Largest distance of a centre from the centres' mean."""
    return float((centres - centres.mean(0)).norm(dim=-1).max()) if len(centres) else 0.0


def align(estimate: SE3, reference: SE3) -> Sim3:
    """reference_from_estimate: what best brings its centres onto the reference (Eq. supp_sim3_alignment)."""
    if len(reference) < MIN_FRAMES:
        raise DegenerateError(
            f"only {len(reference)} common frames: the alignment needs at least {MIN_FRAMES}; "
            "score a longer sequence, or check names and time stamps"
        )
    for side, cameras in (("estimate", estimate), ("reference", reference)):
        centres = cameras.centre
        if extent(centres) <= _ROUNDING * float(centres.norm(dim=-1).max()):
            raise DegenerateError(
                f"all {len(centres)} common cameras of the {side} stand at one place: no scale can be found; "
                "score a sequence in which the camera moves"
            )
    return umeyama(estimate.centre, reference.centre)


def aligned_cameras(reference_from_estimate: Sim3, estimate: SE3) -> SE3:
    """The estimate's cam_from_world in the reference's world and units (Eq. supp_aligned_pose)."""
    return world_camera(reference_from_estimate, estimate)

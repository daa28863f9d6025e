"""All scores of one trajectory against one reference: associate, align once, measure."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from geoweaver.datatypes import Trajectory
from geoweaver.errors import DegenerateError
from geoweaver.evaluation.alignment import MAX_TIME_DIFF, Association, align, aligned_cameras, associate
from geoweaver.evaluation.pose_auc import pair_errors_deg, pose_auc
from geoweaver.evaluation.trajectory import FrameErrors, frame_errors
from geoweaver.geometry import SE3, Sim3

Missing = Literal["fail", "ignore"]
"""What a reference frame that the estimate lacks does to its pairs: fail them all, or leave them out."""


@dataclass(frozen=True)
class TrajectoryScores:
    """The scores of a table's row, and what they were made of."""

    frames: int
    """Frames of the reference."""
    matched: int
    """Frames of the reference that the estimate has."""
    ate: float
    rre_deg: float
    auc3: float
    auc5: float
    auc30: float
    reference_from_estimate: Sim3
    aligned: SE3
    """cam_from_world of the matched frames, in the reference's world and order."""
    association: Association
    """Rows of the reference and of the frames that were scored."""
    errors: FrameErrors
    """Of the matched frames, in the reference's order."""

    @property
    def scale(self) -> float:
        """Reference units per unit of the estimate."""
        return float(self.reference_from_estimate.scale)

    def row(self) -> dict[str, float | int]:
        """The scores under their names in `geoweaver evaluate --json`."""
        names = ("frames", "matched", "ate", "rre_deg", "auc3", "auc5", "auc30", "scale")
        return {name: getattr(self, name) for name in names}


def score_trajectory(
    estimate: Trajectory,
    reference: Trajectory,
    missing: Missing = "fail",
    max_time_diff: float = MAX_TIME_DIFF,
    trusted_only: bool = False,
) -> TrajectoryScores:
    """Score an estimate by the paper's protocol; `trusted_only` drops the frames it does not trust."""
    if trusted_only:
        estimate = trusted_part(estimate)
    association = associate(estimate, reference, max_time_diff)
    cameras = estimate.cam_from_world[association.estimate]
    truth = reference.cam_from_world[association.reference]
    similarity = align(cameras, truth)
    errors = frame_errors(cameras, truth, similarity)
    if missing == "ignore":
        pairs = pair_errors_deg(cameras, truth)
    else:
        pairs = pair_errors_deg(*_on_all_frames(estimate, reference, association))
    auc3, auc5, auc30 = (pose_auc(pairs, threshold) for threshold in (3, 5, 30))
    return TrajectoryScores(
        len(reference), len(association), errors.ate(), errors.rre_deg(), auc3, auc5, auc30,
        similarity, aligned_cameras(similarity, cameras), association, errors,
    )  # fmt: skip


def trusted_part(trajectory: Trajectory) -> Trajectory:
    """The frames that the trajectory trusts; all of them where it does not say."""
    if trajectory.trusted is None:
        return trajectory
    keep = trajectory.trusted.nonzero().squeeze(-1)
    if not len(keep):
        raise DegenerateError(
            "no frame is trusted: nothing is left to score; drop --trusted-only to score all"
        )
    return trajectory.choose(keep)


def _on_all_frames(
    estimate: Trajectory, reference: Trajectory, association: Association
) -> tuple[SE3, SE3, Bool[Tensor, "F"]]:
    """The estimate row by row with the whole reference, and which rows are real."""
    row = torch.zeros(len(reference), dtype=torch.long)
    found = torch.zeros(len(reference), dtype=torch.bool)
    row[association.reference] = association.estimate
    found[association.reference] = True
    return estimate.cam_from_world[row], reference.cam_from_world, found

"""Scores to the paper's letter: ATE, RRE, pairwise pose AUC, depth, clouds (docs/evaluation.md)."""

from geoweaver.evaluation.alignment import Association, align, associate
from geoweaver.evaluation.cloud import CloudScores, score_cloud
from geoweaver.evaluation.depth import DepthScores, score_depth
from geoweaver.evaluation.doubts import score_doubts
from geoweaver.evaluation.pose_auc import pair_errors_deg, pose_auc
from geoweaver.evaluation.scores import TrajectoryScores, score_trajectory, trusted_part
from geoweaver.evaluation.trajectory import FrameErrors, frame_errors

__all__ = [
    "Association",
    "CloudScores",
    "DepthScores",
    "FrameErrors",
    "TrajectoryScores",
    "align",
    "associate",
    "frame_errors",
    "pair_errors_deg",
    "pose_auc",
    "score_cloud",
    "score_depth",
    "score_doubts",
    "score_trajectory",
    "trusted_part",
]

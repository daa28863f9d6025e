"""When figures say little: hardly any common frames, or two paths that do not resemble each other."""

from geoweaver.datatypes import Trajectory
from geoweaver.evaluation.scores import TrajectoryScores

_OVERLAP = 0.25
"""Share of the shorter trajectory's frames below which what they have in common may be chance."""
_UNLIKE = 0.5
"""ATE in spreads of the reference: 0.52 to 0.97 for real paths of other recordings, 1 at the worst."""


def score_doubts(scores: TrajectoryScores, estimate: Trajectory, reference: Trajectory) -> tuple[str, ...]:
    """Why the scores of an estimate may mean nothing, one line each; none without a reason."""
    return (*_overlap_doubt(scores, len(estimate), len(reference)), *_likeness_doubt(scores, reference))


def _overlap_doubt(scores: TrajectoryScores, estimate: int, reference: int) -> tuple[str, ...]:
    if scores.matched >= _OVERLAP * min(estimate, reference):
        return ()
    return (
        f"only {scores.matched} frames are in both estimate ({estimate}) and reference ({reference}), "
        f"matched by {scores.association.by}: check that both are of one recording and one clock",
    )


def _likeness_doubt(scores: TrajectoryScores, reference: Trajectory) -> tuple[str, ...]:
    """The best alignment can always shrink a path to a point, whose ATE is the reference's spread."""
    centre = reference.cam_from_world.centre[scores.association.reference]
    spread = float((centre - centre.mean(0)).norm(dim=-1).square().mean().sqrt())
    if scores.ate < _UNLIKE * spread:
        return ()
    return (
        f"the paths do not resemble each other: even aligned, the ATE ({scores.ate:.3g}) is "
        f"{100 * scores.ate / spread:.0f} % of the reference's own spread ({spread:.3g}): "
        "check that both are of one recording, or take the estimate as failed",
    )

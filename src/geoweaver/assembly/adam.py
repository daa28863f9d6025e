"""The paper's optimiser as written, on the same objective: the reference that lm is measured against.

The pair sums give the exact gradient in each pair's local parameters. It is handed to autograd through a
linear stand-in with the same gradient, so Adam steps in the paper's own variables without keeping a graph of
millions of matches.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from geoweaver.assembly.pairs import PairGeometry
from geoweaver.assembly.stopping import Progress, StopRule
from geoweaver.assembly.sums import pair_sums
from geoweaver.datatypes import FrameState
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.so3 import matrix_from_6d, r6_from_matrix

if TYPE_CHECKING:
    from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig, ChunkProblem
    from geoweaver.assembly.frame_problem import FrameProblem


def align(
    problem: "ChunkProblem",
    start: Sim3,
    config: "ChunkAlignmentConfig",
    watch: Callable[[Sim3, float], None] | None,
) -> tuple[Sim3, Progress, str]:
    """Stage 2 in alpha = log s, 6D rotation and translation (Eq. sim3)."""
    alpha, r6, t = (
        x.clone().requires_grad_()
        for x in (start.scale.log(), r6_from_matrix(start.rotation), start.translation)
    )

    def state() -> Sim3:
        held = problem.held
        keep = Sim3(alpha.exp(), matrix_from_6d(r6), t)
        return Sim3(
            torch.where(held, start.scale, keep.scale),
            torch.where(held[:, None, None], start.rotation, keep.rotation),
            torch.where(held[:, None], start.translation, keep.translation),
        )

    return _descend(
        problem, state, [{"params": [alpha, r6, t], "lr": config.learning_rate}], config.adam_rule, 7, watch
    )


def refine(
    problem: "FrameProblem", start: FrameState, learning_rate: float, rule: StopRule,
    watch: Callable[[FrameState, float], None] | None,
) -> tuple[FrameState, Progress, str]:  # fmt: skip
    """Stage 3 in 6D rotation, translation, affine depth and focal corrections (Eq. variables), and bends."""
    r6, t, a, b, focal = (
        x.clone().requires_grad_()
        for x in (
            r6_from_matrix(start.cam_from_world.rotation), start.cam_from_world.translation,
            start.depth_scale, start.depth_shift, start.focal_delta,
        )
    )  # fmt: skip

    bend = None if start.depth_bend is None else start.depth_bend.clone().requires_grad_()

    def state() -> FrameState:
        return FrameState(SE3(matrix_from_6d(r6), t), a, b, focal, bend)

    # Focal lengths are hundreds of pixels: their rate is relative to them, as MBA's is larger for intrinsics.
    pixels = float(problem.intrinsics[:, :2].mean())
    depth = [a, b] if bend is None or problem.bending is None else [a, b, bend]
    groups: list[dict[str, Any]] = [{"params": [r6, t, *depth], "lr": learning_rate}]
    if not problem.calibrated:
        groups.append({"params": [focal], "lr": learning_rate * pixels})
    return _descend(problem, state, groups, rule, problem.parameters, watch)


def _descend(
    problem: Any, state: Callable[[], Any], groups: list[dict[str, Any]], rule: StopRule, parameters: int,
    watch: Callable[[Any, float], None] | None,
) -> tuple[Any, Progress, str]:  # fmt: skip
    begun, progress = time.perf_counter(), Progress(rule)
    optimiser = torch.optim.Adam(groups)
    while True:
        current = state()
        loss, stand_in = _objective(problem, current, parameters)
        frozen = _detached(current)
        progress.record(loss, problem.median_px(frozen), time.perf_counter() - begun)
        if watch is not None:
            watch(frozen, progress.seconds[-1])
        if why := progress.why_stop():
            # no further step: what is returned is what the trace ends with
            return frozen, progress, why
        optimiser.zero_grad()
        stand_in.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _objective(problem: Any, state: Any, parameters: int) -> tuple[float, Tensor]:
    """The loss, and a tensor whose gradient is the loss's."""
    regulariser = (
        problem.regulariser(state)
        if hasattr(problem, "regulariser")
        else torch.zeros((), dtype=torch.float64)
    )
    geometry: PairGeometry = problem.geometry(state)
    if not problem.objective.relative:
        sums = pair_sums(problem.matches, geometry, problem.objective, problem.norm, 0)
        total = (sums.pixels + sums.points).sum() + regulariser
        return float(total.detach()), total
    fixed = PairGeometry(
        *(_detached(getattr(geometry, f)) for f in ("z", "intrinsics_i", "intrinsics_j", "affine"))
    )
    frozen = _detached(state)
    matches = problem.matches_at(frozen) if isinstance(state, FrameState) else problem.matches
    sums = pair_sums(matches, fixed, problem.objective, problem.norm, parameters, curvature=False)
    assert sums.gradient is not None
    moved = geometry.z @ fixed.z.inverse()
    R = moved.rotation
    omega = torch.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], -1) / 2
    local = [moved.translation, omega, moved.scale[:, None]]
    if parameters > 7:
        local.append(geometry.affine)
    if parameters > 11:
        local += [geometry.intrinsics_i[:, :2], geometry.intrinsics_j[:, :2]]
    stand_in = (torch.cat(local, -1) * sums.gradient).sum() + regulariser
    if isinstance(state, FrameState) and state.depth_bend is not None and problem.bending is not None:
        stand_in = stand_in + (state.depth_bend * problem.bend_gradient(frozen)).sum()
    return sums.loss() + float(regulariser.detach()), stand_in


def _detached(value: Any) -> Any:
    if value is None or isinstance(value, Tensor):
        # Adam steps in place
        return value if value is None else value.detach().clone()
    return type(value)(*(_detached(getattr(value, name)) for name in value.__dataclass_fields__))

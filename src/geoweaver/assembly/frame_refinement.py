"""Stage 3: each frame's pose and affine depth, each camera's focal; frames vote first, then matches."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.assembly import adam, lm
from geoweaver.assembly.bend import bend_grid
from geoweaver.assembly.frame_priors import FrameSetup
from geoweaver.assembly.frame_problem import frame_problem
from geoweaver.assembly.frame_settings import FrameRefinementConfig, Phase
from geoweaver.assembly.pairs import PairMatches, thin_pairs
from geoweaver.assembly.stopping import Progress
from geoweaver.datatypes import FrameState, StageReport


def refine_frames(
    matches: PairMatches,
    setup: FrameSetup,
    start: FrameState,
    config: FrameRefinementConfig,
    phases: tuple[Phase, ...] | None = None,
    watch: Callable[[FrameState, float], None] | None = None,
) -> tuple[FrameState, list[StageReport]]:
    """All phases, or some of them, one report each."""
    if not matches.rows:
        return start, [StageReport("frame refinement", why_stopped="nothing to refine")]
    state, reports, spent = start, [], 0.0
    for phase in config.phases if phases is None else phases:
        shifted = None if watch is None else _later(watch, spent)
        if phase.bend and state.depth_bend is None:
            state = replace(state, depth_bend=_flat(setup, config))
        state, progress, why = _run_phase(matches, setup, state, config, phase, shifted)
        spent += progress.seconds[-1]
        reports.append(
            StageReport(
                phase.name,
                tuple(progress.losses),
                tuple(progress.seconds),
                progress.medians[-1],
                len(progress.losses) - 1,
                why,
                progress.seconds[-1],
                notes=_bend_note(state) if phase.bend else (),
                median_at=tuple(progress.medians),
            )
        )
    return replace(state, cam_from_world=state.cam_from_world.orthonormalised()), reports


def _bend_note(state: FrameState) -> tuple[str, ...]:
    assert state.depth_bend is not None, "the phase bends"
    size = 100 * float(state.depth_bend.square().mean().sqrt())
    return (f"depth bends by {size:.1f} % (root mean square of all nodes)",)


def _flat(setup: FrameSetup, config: FrameRefinementConfig) -> Float[Tensor, "F r c"]:
    """No bend at all."""
    nodes = bend_grid(setup.size, config.bend_nodes).nodes
    return torch.zeros(len(setup.group), *nodes, dtype=torch.float64)


def _run_phase(
    matches: PairMatches, setup: FrameSetup, state: FrameState, config: FrameRefinementConfig, phase: Phase,
    watch: Callable[[FrameState, float], None] | None,
) -> tuple[FrameState, Progress, str]:  # fmt: skip
    if config.solver == "adam":
        problem = frame_problem(matches, setup, config, phase)
        return adam.refine(problem, state, config.learning_rate, config.adam_rule, watch)
    few = thin_pairs(matches, config.matches_first)
    early = Progress(config.lm_rule)
    if few.rows < matches.rows // 2:
        state, early, why = lm.minimise(
            frame_problem(few, setup, config, phase), state, config.lm_rule, watch
        )
        if not phase.all_matches:
            return state, early, why
        watch = None if watch is None else _later(watch, early.seconds[-1])
    state, late, why = lm.minimise(frame_problem(matches, setup, config, phase), state, config.lm_rule, watch)
    return state, early.followed_by(late), why


def _later(watch: Callable[[FrameState, float], None], spent: float) -> Callable[[FrameState, float], None]:
    return lambda state, seconds: watch(state, seconds + spent)

"""Iteratively re-weighted Levenberg-Marquardt.

Every step minimises a quadratic that lies above the CDF objective, and is accepted on the true one.
"""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from numpy.linalg import LinAlgError

from geoweaver.assembly.blocks import BlockSystem
from geoweaver.assembly.stopping import Progress, StopRule

S = TypeVar("S")

FIRST_DAMPING = 1e-4
MOST_DAMPING = 1e6


@runtime_checkable
class Problem(Protocol[S]):
    """What a stage tells the solver."""

    def loss(self, state: S) -> float: ...

    def linearise(self, state: S) -> tuple[float, BlockSystem]: ...

    def step(self, state: S, system: BlockSystem, damping: float) -> S:
        """The state after the damped step; LinAlgError where the system has none."""
        ...

    def median_px(self, state: S) -> float: ...


def minimise(
    problem: Problem[S],
    state: S,
    rule: StopRule,
    watch: Callable[[S, float], None] | None = None,
) -> tuple[S, Progress, str]:
    """The state reached, its trace, and why it stopped; `watch` sees every accepted state and its time."""
    begun, progress, damping = time.perf_counter(), Progress(rule), FIRST_DAMPING
    loss, system = problem.linearise(state)
    progress.record(loss, problem.median_px(state), time.perf_counter() - begun)
    while not (why := progress.why_stop()):
        trial, damping, stuck = _descended(problem, state, system, loss, damping)
        if stuck:
            return state, progress, stuck
        damping = max(damping / 5, 1e-10)
        state = trial
        loss, system = problem.linearise(state)
        progress.record(loss, problem.median_px(state), time.perf_counter() - begun)
        if watch is not None:
            watch(state, progress.seconds[-1])
    return state, progress, why


def _descended(
    problem: Problem[S], state: S, system: BlockSystem, loss: float, damping: float
) -> tuple[S, float, str]:
    """The first step that lowers the loss, damped more after each that fails; or why there is none."""
    stuck = "normal equations have no solution"
    while damping <= MOST_DAMPING:
        try:
            trial = problem.step(state, system, damping)
        except LinAlgError:
            pass  # not positive definite, by rounding or for want of matches
        else:
            if problem.loss(trial) < loss:
                return trial, damping, ""
            stuck = "no descent left"
        damping *= 8
    return state, damping, stuck

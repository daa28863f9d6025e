"""Stage 2: one similarity per chunk, the first of each component held (Eqs. sim3, aligned_pose)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from geoweaver.assembly import adam, lm
from geoweaver.assembly.blocks import BlockSystem, unique_pairs
from geoweaver.assembly.kernel import Kernel
from geoweaver.assembly.pairs import (
    Normalisation,
    Objective,
    PairGeometry,
    PairMatches,
    global_normalisation,
    require_jacobian,
    thin_pairs,
)
from geoweaver.assembly.stopping import Progress, StopRule
from geoweaver.assembly.sums import pair_sums, residual_median
from geoweaver.datatypes import ChunkLayout, Observations, StageReport
from geoweaver.geometry import Sim3


@dataclass(frozen=True)
class ChunkAlignmentConfig:
    """Settings of Stage 2; the paper's table where it gives a value."""

    solver: Literal["lm", "adam"] = "lm"
    """lm: re-weighted Levenberg-Marquardt. adam: the paper's recipe."""
    learning_rate: float = 1e-2
    """Adam only."""
    pixels: Kernel = field(default_factory=lambda: Kernel(15.0, 250, 2.0, "log1p"))
    """2D CDF range in mapped units, bins, smoothing."""
    points_range: float = 0.8
    """3D CDF range, as a share of depth (or in world units with residual=world)."""
    points_weight: float = 2.0
    """Weight of the 3D term."""
    residual: Literal["relative", "world"] = "relative"
    """world: the paper's literal 3D residual, which a strong solver shrinks; adam only."""
    both_directions: bool = True
    """Carry every match both ways; False is the paper's text."""
    matches_first: int = 16
    """Matches per pair in lm's first iterations; more come in when these have settled."""
    matches_most: int = 512
    """Matches per pair in lm's last iterations: seven unknowns a chunk need no more."""
    lm_rule: StopRule = field(default_factory=lambda: StopRule(most=60))
    """When lm stops."""
    adam_rule: StopRule = field(default_factory=lambda: StopRule(most=5000, window=200, median_only=True))
    """When Adam stops: its objective jitters, so only the median counts, over a long window."""

    def __post_init__(self) -> None:
        require_jacobian(self.solver, self.residual, "Stage 2")

    def objective(self) -> Objective:
        relative = self.residual == "relative"
        points = Kernel(self.points_range, 250, 2.0)
        return Objective(self.pixels, points, self.points_weight, self.both_directions, relative)


@dataclass(frozen=True)
class ChunkProblem:
    """The objective as a function of the chunks' similarities."""

    matches: PairMatches
    observations: Observations
    objective: Objective
    norm: Normalisation
    held: Bool[Tensor, "K"]

    def geometry(self, layout: Sim3) -> PairGeometry:
        """cam_j_from_cam_i of every pair by way of its chunks' places (Eq. aligned_pose)."""
        i, j, obs = self.matches.observation_i, self.matches.observation_j, self.observations
        to_j = Sim3.from_se3(obs.cam_from_chunk[j])
        from_i = Sim3.from_se3(obs.cam_from_chunk[i].inverse())
        target = layout[obs.chunk[j]]
        z = to_j @ target.inverse() @ layout[obs.chunk[i]] @ from_i
        affine = torch.tensor([1.0, 0, 1, 0], dtype=torch.float64).expand(len(i), 4)
        return PairGeometry(z, obs.intrinsics[i], obs.intrinsics[j], affine, target.scale)

    def loss(self, layout: Sim3) -> float:
        return pair_sums(self.matches, self.geometry(layout), self.objective, self.norm, 0).loss()

    def median_px(self, layout: Sim3) -> float:
        return residual_median(self.matches, self.geometry(layout), self.objective)

    def linearise(self, layout: Sim3) -> tuple[float, BlockSystem]:
        """Increments S <- S exp(delta): a chunk far from the origin is as well conditioned as one at it."""
        geometry, obs = self.geometry(layout), self.observations
        sums = pair_sums(self.matches, geometry, self.objective, self.norm, 7)
        assert sums.gradient is not None and sums.normal is not None
        i, j = self.matches.observation_i, self.matches.observation_j
        from_i = Sim3.from_se3(obs.cam_from_chunk[i].inverse())
        source = (geometry.z @ from_i.inverse()).adjoint()
        target = -Sim3.from_se3(obs.cam_from_chunk[j]).adjoint()
        return sums.loss(), self._system(sums.gradient, sums.normal, source, target)

    def _system(self, g: Tensor, H: Tensor, source: Tensor, target: Tensor) -> BlockSystem:
        a, b = (
            self.observations.chunk[self.matches.observation_i],
            self.observations.chunk[self.matches.observation_j],
        )
        K = len(self.held)
        diagonal, gradient = torch.zeros(K, 7, 7, dtype=H.dtype), torch.zeros(K, 7, dtype=H.dtype)
        for chunk, move in ((a, source), (b, target)):
            diagonal.index_add_(0, chunk, move.mT @ H @ move)
            gradient.index_add_(0, chunk, (move.mT @ g[..., None]).squeeze(-1))
        cross = source.mT @ H @ target
        swap = a > b
        cross = torch.where(swap[:, None, None], cross.mT, cross)
        pair, which = unique_pairs(torch.minimum(a, b), torch.maximum(a, b), K)
        off = torch.zeros(len(pair), 7, 7, dtype=H.dtype).index_add_(0, which, cross)
        free = (~self.held)[:, None].expand(K, 7)
        none = torch.zeros(0, dtype=H.dtype)
        return BlockSystem(
            diagonal, pair, off, gradient, torch.zeros(K, 7, 0, dtype=H.dtype), none.reshape(0, 0), none, free
        )

    def step(self, layout: Sim3, system: BlockSystem, damping: float) -> Sim3:
        delta, _ = system.solve(damping)
        return layout @ Sim3.exp(delta)


def align_chunks(
    matches: PairMatches,
    observations: Observations,
    start: ChunkLayout,
    config: ChunkAlignmentConfig,
    watch: Callable[[Sim3, float], None] | None = None,
) -> tuple[ChunkLayout, StageReport]:
    """The layout under which the matches across chunks agree best, from Stage 1's."""
    held = first_of_each(start.component)
    state, notes = start.world_from_chunk, ()
    if not matches.rows or bool(held.all()):
        return start, StageReport("chunk alignment", why_stopped="nothing to align", notes=notes)
    if config.solver == "adam":
        state, progress, why = adam.align(
            chunk_problem(matches, observations, held, config), state, config, watch
        )
    else:
        state, progress, why = _by_lm(matches, observations, held, config, state, watch)
    report = StageReport(
        "chunk alignment", tuple(progress.losses), tuple(progress.seconds), progress.medians[-1],
        len(progress.losses) - 1, why, progress.seconds[-1], median_at=tuple(progress.medians),
    )  # fmt: skip
    return ChunkLayout(state.orthonormalised(), start.component), report


def chunk_problem(
    matches: PairMatches, observations: Observations, held: Tensor, config: ChunkAlignmentConfig
) -> ChunkProblem:
    objective = config.objective()
    return ChunkProblem(matches, observations, objective, global_normalisation(matches, objective), held)


def _by_lm(
    matches: PairMatches,
    observations: Observations,
    held: Tensor,
    config: ChunkAlignmentConfig,
    state: Sim3,
    watch: Callable[[Sim3, float], None] | None,
) -> tuple[Sim3, Progress, str]:
    """Few matches per pair until they settle, then more."""
    progress, why = Progress(config.lm_rule), ""
    budgets = sorted({config.matches_first, max(config.matches_first, config.matches_most)})
    for budget in budgets:
        table = thin_pairs(matches, budget)
        if why and table.rows < 2 * thin_pairs(matches, config.matches_first).rows:
            break
        spent = progress.seconds[-1] if progress.seconds else 0.0
        later = None if watch is None else _later(watch, spent)
        state, more, why = lm.minimise(
            chunk_problem(table, observations, held, config), state, config.lm_rule, later
        )
        progress = progress.followed_by(more)
    return state, progress, why


def _later(watch: Callable[[Sim3, float], None], spent: float) -> Callable[[Sim3, float], None]:
    return lambda state, seconds: watch(state, seconds + spent)


def first_of_each(component: Tensor) -> Tensor:
    """True for the first chunk of every component: it holds the gauge."""
    held = torch.zeros(len(component), dtype=torch.bool)
    seen: set[int] = set()
    for chunk, c in enumerate(component.tolist()):
        held[chunk] = c not in seen
        seen.add(c)
    return held

"""Test-Time Adaptation: independent chunk priors and dense matches in, one consistent sequence out."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from geoweaver.assembly.alignment import AlignmentConfig, align_with_loops
from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig
from geoweaver.assembly.frame_priors import FrameSetup
from geoweaver.assembly.frame_problem import corrected_intrinsics, frame_problem
from geoweaver.assembly.frame_refinement import refine_frames
from geoweaver.assembly.frame_settings import FrameRefinementConfig, paper_phases
from geoweaver.assembly.frames_start import FrameStart, start_frames
from geoweaver.assembly.links import LinkConfig
from geoweaver.assembly.loops import LoopConfig, fitting_share, long_range_pairs, wide_pairs
from geoweaver.assembly.pairs import PairMatches, group_pairs, select_pairs, tied_frames
from geoweaver.assembly.sequential import initialise_chunks
from geoweaver.assembly.stopping import StopRule
from geoweaver.assembly.tears import TearConfig, gather_evidence, torn_frames
from geoweaver.assembly.trust import Trust, TrustConfig, judge_frames
from geoweaver.assembly.units import chunk_units, from_units, in_units
from geoweaver.datatypes import (
    ChunkLayout,
    ChunkPrior,
    Correspondences,
    EdgeKind,
    FrameState,
    Matches,
    Observations,
    StageReport,
    ViewGraph,
)
from geoweaver.engine import one_thread
from geoweaver.errors import DegenerateError
from geoweaver.lens_field import LensFields
from geoweaver.matching import (
    SamplingConfig,
    SamplingReport,
    build_table,
    canonical_observation,
    chunk_pairs,
    frame_pairs,
)


@dataclass(frozen=True)
class WeaveConfig:
    """Settings of the three stages."""

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    links: LinkConfig = field(default_factory=LinkConfig)
    alignment: AlignmentConfig = field(default_factory=AlignmentConfig)
    refinement: FrameRefinementConfig = field(default_factory=FrameRefinementConfig)
    trust: TrustConfig = field(default_factory=TrustConfig)
    stages: Literal[1, 2, 3] = 3
    """The last stage that is run: what comes after it keeps what it left."""
    shared_focal: bool = True
    """Start Stage 3 from each camera's median focal; False: from each frame's own, as the paper's text."""


def paper_config() -> WeaveConfig:
    """The paper to the letter: Adam, 3D residuals in world units, matches carried one way, no edge judged."""
    literal = ChunkAlignmentConfig(solver="adam", residual="world", both_directions=False)
    return WeaveConfig(
        sampling=SamplingConfig(lateral=False),
        links=LinkConfig(rule=StopRule(most=0)),
        alignment=AlignmentConfig(literal, LoopConfig(inlier_share=0.0, wide_share=0.0, rounds=0)),
        refinement=FrameRefinementConfig(
            solver="adam",
            residual="world",
            both_directions=False,
            phases=paper_phases(),
            aspect_prior=0.0,
            scale_prior=0.0,
            chunk_scale_prior=1e-2,
        ),
        trust=TrustConfig(tears=TearConfig(share=0.0)),
        shared_focal=False,
    )


@dataclass(frozen=True)
class Tables:
    """The correspondences of both levels, every chunk in its own unit."""

    crossing: PairMatches
    """Pairs of observations in different chunks: Stages 1 and 2."""
    frames: Correspondences
    """Pairs of canonical observations: Stage 3."""
    observations: Observations
    canonical: Int[Tensor, "F"]
    units: Tensor
    reports: tuple[SamplingReport, SamplingReport]


@dataclass(frozen=True)
class Woven:
    """The result of each stage; the world's unit is the first chunk's median depth."""

    stage1: ChunkLayout
    stage2: ChunkLayout
    start: FrameState
    state: FrameState
    setup: FrameSetup
    matches: PairMatches
    """What Stage 3 ended on; its depths are those of the prior, in world units."""
    trust: Trust
    tables: Tables
    reports: tuple[StageReport, ...]


@one_thread()
def weave(
    observations: Observations,
    graph: ViewGraph,
    matches: Matches,
    read: Callable[[int], ChunkPrior],
    group: Int[Tensor, "F"],
    calibrated: bool,
    config: WeaveConfig,
    seed: int = 0,
    lenses: LensFields | None = None,
    device: torch.device | str = "cpu",
) -> Woven:
    """Stages 1 to 3 of the paper on one sequence; matches are straightened where lenses bend them.

    Stages 2 and 3 sum over matches on `device`; all else is of the CPU (docs/decisions/0005).
    """
    _require_cameras(observations)
    tables = make_tables(observations, graph, matches, read, group, config.sampling, seed, lenses)
    local = tables.observations

    stage1, _, report1 = initialise_chunks(tables.crossing, local, graph.kind, config.links, seed)
    stage2, report2 = stage1, StageReport("chunk alignment", why_stopped="left out")
    if config.stages > 1:
        stage2, report2 = align_with_loops(
            tables.crossing, local, graph.kind, stage1, config.alignment, seed, device
        )
    begin = start_frames(
        tables.frames, local, stage2, tables.canonical, group, calibrated, config.shared_focal
    )
    state, kept, reports3 = begin.state, begin.matches, [StageReport("refinement", why_stopped="left out")]
    if config.stages > 2:
        state, kept, reports3 = _refine(begin, graph, report2.rejected_edges, local.size, config, device)

    trust = _judge(begin, kept, state, stage2, tables, graph, matches, config)
    return Woven(
        stage1, stage2, begin.state, state, begin.setup, kept, trust, tables, (report1, report2, *reports3)
    )


def _judge(
    begin: FrameStart,
    kept: PairMatches,
    state: FrameState,
    layout: ChunkLayout,
    tables: Tables,
    graph: ViewGraph,
    matches: Matches,
    config: WeaveConfig,
) -> Trust:
    """Which frames the matches support, sampled or not."""
    # the literal 3D residual has no Jacobian: trust is judged with the relative one
    judged = replace(config.refinement, residual="relative")
    reached = [phase for phase in judged.phases if state.depth_bend is not None or not phase.bend]
    problem = frame_problem(kept, begin.setup, judged, reached[-1])
    seen, local, group = tables.canonical >= 0, tables.observations, begin.setup.group
    component = torch.where(seen, layout.component[local.chunk[tables.canonical.clamp(min=0)]], -1)
    far = long_range_pairs(kept, graph.kind) | wide_pairs(kept, graph.kind, group, config.alignment.loops)
    torn = torch.zeros_like(seen)
    # before Stage 3 rigid chunks meet at borders where lines miss by more than matches do
    if config.stages > 2 and config.trust.tears.share > 0:
        tied = seen & tied_frames(kept, len(group))
        torn = _torn(graph, matches, begin.setup, state, tied, component, config)
    return judge_frames(problem, state, component, ~far, torn, local.size, config.trust)


def _torn(
    graph: ViewGraph,
    matches: Matches,
    setup: FrameSetup,
    state: FrameState,
    tied: Bool[Tensor, "F"],
    component: Int[Tensor, "F"],
    config: WeaveConfig,
) -> Bool[Tensor, "F"]:
    """Frames of the main component that all matches, and not only those that were sampled, contradict."""
    if not bool(tied.any()):
        return tied
    main = tied & (component == torch.bincount(component[tied]).argmax())
    tears, intrinsics = config.trust.tears, corrected_intrinsics(setup, state)
    evidence = gather_evidence(graph.edges, matches, state.cam_from_world, intrinsics, setup.size, tears)
    return torn_frames(
        graph.edges, graph.kind == int(EdgeKind.LONG_RANGE), evidence, setup.group, main, tears
    )


def _require_cameras(observations: Observations) -> None:
    if not len(observations):
        raise DegenerateError(
            "the prior placed no frame at all: the camera may have moved too little or only turned, or what "
            "it sees mostly moves or is one flat wall; walk sideways as you film, or try another --prior"
        )
    local, intrinsics = observations.cam_from_chunk, observations.intrinsics
    sound = local.rotation.isfinite().all((-2, -1)) & local.translation.isfinite().all(-1)
    sound &= intrinsics.isfinite().all(-1) & (intrinsics[:, :2] > 0).all(-1)
    if not bool(sound.all()):
        worst = int((~sound).nonzero()[0])
        frame, chunk = int(observations.frame[worst]), int(observations.chunk[worst])
        raise DegenerateError(
            f"the prior's camera of frame {frame} in chunk {chunk} is no camera, {int((~sound).sum())} such "
            "in all: leave these frames out, or try another --prior"
        )


def make_tables(
    observations: Observations,
    graph: ViewGraph,
    matches: Matches,
    read: Callable[[int], ChunkPrior],
    group: Int[Tensor, "F"],
    config: SamplingConfig,
    seed: int,
    lenses: LensFields | None = None,
) -> Tables:
    """Matches read at the observations that each stage needs, sampled, in units of their chunks."""
    generator = torch.Generator().manual_seed(seed)
    crossing, report_chunks = build_table(
        chunk_pairs(graph, observations), matches, observations, read, config, generator, "chunks"
    )
    canonical = canonical_observation(observations, len(group))
    inner, report_frames = build_table(
        frame_pairs(graph, observations, canonical), matches, observations, read, config, generator, "frames"
    )
    both = Correspondences(
        *(torch.cat([getattr(crossing, n), getattr(inner, n)]) for n in Correspondences.__dataclass_fields__)
    )
    units = chunk_units(both, observations)
    if lenses is not None:
        # depth was read where the image shows it
        crossing, inner = (_straightened(t, observations, group, lenses) for t in (crossing, inner))
    crossing, local = in_units(crossing, observations, units)
    inner, _ = in_units(inner, observations, units)
    return Tables(group_pairs(crossing), inner, local, canonical, units, (report_chunks, report_frames))


def _straightened(
    table: Correspondences, observations: Observations, group: Int[Tensor, "F"], lenses: LensFields
) -> Correspondences:
    """Matches where lenses that are as their models say would have shown them."""
    camera = group[observations.frame]
    return replace(
        table,
        pixel_i=lenses.straight(table.pixel_i, camera[table.observation_i]),
        pixel_j=lenses.straight(table.pixel_j, camera[table.observation_j]),
    )


def _refine(
    begin: FrameStart, graph: ViewGraph, rejected: tuple[int, ...], size: tuple[int, int],
    config: WeaveConfig, device: torch.device | str,
) -> tuple[FrameState, PairMatches, list[StageReport]]:  # fmt: skip
    """Stage 3; after its coarse phase all edges but neighbours' are judged anew, rejected ones too."""
    refinement, every, loops = config.refinement, begin.matches, config.alignment.loops
    coarse, fine = refinement.phases[:1], refinement.phases[1:]
    if not every.rows:
        state, reports = refine_frames(every, begin.setup, begin.state, refinement, coarse)
        return state, every, reports
    problem = frame_problem(every, begin.setup, refinement, coarse[0])
    long = long_range_pairs(every, graph.kind)
    wide = wide_pairs(every, graph.kind, begin.setup.group, loops)

    def fits(state: FrameState, tolerance: float) -> Tensor:
        share = fitting_share(every, problem.geometry(state), size, tolerance)
        return share >= torch.where(wide, loops.wide_share, loops.inlier_share)

    wrong = torch.isin(every.edge, torch.tensor(rejected, dtype=torch.long))
    kept = select_pairs(every, ~wrong & (~wide | fits(begin.state, loops.pixel_tolerance)))
    state, reports = refine_frames(kept.to(device), begin.setup, begin.state, refinement, coarse)
    if fine:
        keep = ~(long | wide) | fits(state, loops.refined_tolerance)
        reports[-1] = replace(reports[-1], rejected_edges=tuple(torch.unique(every.edge[~keep]).tolist()))
        kept = select_pairs(every, keep)
        state, more = refine_frames(kept.to(device), begin.setup, state, refinement, fine)
        reports += more
    return state, kept, reports


def input_layouts(woven: Woven) -> tuple[ChunkLayout, ChunkLayout]:
    """Stage 1's and Stage 2's layouts for chunks in the units they came in."""
    return from_units(woven.stage1, woven.tables.units), from_units(woven.stage2, woven.tables.units)

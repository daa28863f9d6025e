"""Test-Time Adaptation: independent chunk priors and dense matches in, one consistent sequence out."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.assembly.alignment import AlignmentConfig, align_with_loops
from geoweaver.assembly.frame_refinement import FrameRefinementConfig, FrameSetup, refine_frames
from geoweaver.assembly.frames_start import start_frames
from geoweaver.assembly.links import LinkConfig
from geoweaver.assembly.pairs import PairMatches, group_pairs, select_pairs
from geoweaver.assembly.sequential import initialise_chunks
from geoweaver.assembly.units import chunk_units, from_units, in_units
from geoweaver.datatypes import (
    ChunkLayout,
    ChunkPrior,
    Correspondences,
    FrameState,
    Matches,
    Observations,
    StageReport,
    ViewGraph,
)
from geoweaver.matching import SamplingConfig, build_table, canonical_observation, chunk_pairs, frame_pairs


@dataclass(frozen=True)
class WeaveConfig:
    """Settings of the three stages."""

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    links: LinkConfig = field(default_factory=LinkConfig)
    alignment: AlignmentConfig = field(default_factory=AlignmentConfig)
    refinement: FrameRefinementConfig = field(default_factory=FrameRefinementConfig)
    shared_focal: bool = True
    """Start Stage 3 from each camera's median focal; False: from each frame's own, as the paper's text."""


@dataclass(frozen=True)
class Woven:
    """The result of each stage, in units of the first chunk."""

    stage1: ChunkLayout
    stage2: ChunkLayout
    start: FrameState
    state: FrameState
    setup: FrameSetup
    matches: PairMatches
    canonical: Int[Tensor, "F"]
    reports: tuple[StageReport, ...]


def weave(
    observations: Observations,
    graph: ViewGraph,
    matches: Matches,
    read: Callable[[int], ChunkPrior],
    group: Int[Tensor, "F"],
    calibrated: bool,
    config: WeaveConfig,
    seed: int = 0,
) -> Woven:
    """Stages 1 to 3 of the paper on one sequence."""
    generator = torch.Generator().manual_seed(seed)
    chunk_table, _ = build_table(chunk_pairs(graph, observations), matches, observations, read, config.sampling, generator, "chunks")
    canonical = canonical_observation(observations, len(group))
    frame_table, _ = build_table(frame_pairs(graph, observations, canonical), matches, observations, read, config.sampling, generator, "frames")
    units = chunk_units(_both(chunk_table, frame_table), observations)
    chunk_table, local = in_units(chunk_table, observations, units)
    frame_table, _ = in_units(frame_table, observations, units)

    crossing = group_pairs(chunk_table)
    stage1, _, report1 = initialise_chunks(crossing, local, graph.kind, config.links, seed)
    stage2, report2 = align_with_loops(crossing, local, graph.kind, stage1, config.alignment, seed)

    begin = start_frames(frame_table, local, stage2, canonical, group, calibrated, config.shared_focal)
    wrong = torch.isin(begin.matches.edge, torch.tensor(report2.rejected_edges, dtype=torch.long))
    kept = select_pairs(begin.matches, ~wrong)
    state, reports3 = refine_frames(kept, begin.setup, begin.state, config.refinement)
    return Woven(
        from_units(stage1, units), from_units(stage2, units), begin.state, state, begin.setup, kept, canonical,
        (report1, report2, *reports3),
    )  # fmt: skip


def _both(a: Correspondences, b: Correspondences) -> Correspondences:
    return Correspondences(*(torch.cat([getattr(a, n), getattr(b, n)]) for n in Correspondences.__dataclass_fields__))

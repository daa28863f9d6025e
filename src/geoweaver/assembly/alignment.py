"""Stage 2 with judgement: solve, look which long-range edges the solution bears out, and solve again."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig, align_chunks
from geoweaver.assembly.loops import (
    LoopConfig,
    believed_pairs,
    edge_inliers,
    gather_claims,
    in_one_component,
    link_tolerances,
    mutual_support,
    tie_components,
)
from geoweaver.assembly.pairs import PairMatches, select_pairs
from geoweaver.datatypes import ChunkLayout, Observations, StageReport


@dataclass(frozen=True)
class AlignmentConfig:
    """Stage 2's solver and its judgement of long-range edges."""

    solver: ChunkAlignmentConfig = field(default_factory=ChunkAlignmentConfig)
    loops: LoopConfig = field(default_factory=LoopConfig)


def align_with_loops(
    matches: PairMatches,
    observations: Observations,
    kind: Int[Tensor, "E"],
    start: ChunkLayout,
    config: AlignmentConfig,
    seed: int,
    device: torch.device | str = "cpu",
) -> tuple[ChunkLayout, StageReport]:
    """Globally aligned chunks; the report names the edges that were not believed.

    Matches are judged on the CPU, where they are, and solved on the device.
    """
    loops = config.loops
    claims = gather_claims(matches, observations, kind, loops, seed)
    support = mutual_support(claims, start, loops)
    start = tie_components(claims, claims.fitted & (support > 0), start)
    tied = in_one_component(matches, observations, start)
    pairs = select_pairs(matches, claims.pair)
    fits_start = edge_inliers(pairs, observations, start.world_from_chunk, *link_tolerances(loops))
    believed = claims.fitted & ((support > 0) | (fits_start >= loops.inlier_share))
    quick = replace(config.solver, matches_most=config.solver.matches_first)
    layout, reports = start, []
    for _ in range(loops.rounds):
        kept = select_pairs(matches, tied & believed_pairs(matches, kind, claims, believed))
        layout, report = align_chunks(kept.to(device), observations, layout, quick)
        reports.append(report)
        inliers = edge_inliers(pairs, observations, layout.world_from_chunk, *link_tolerances(loops))
        verdict = inliers >= loops.inlier_share
        if bool((verdict == believed).all()):
            break
        believed = verdict
    kept = select_pairs(matches, tied & believed_pairs(matches, kind, claims, believed))
    layout, report = align_chunks(kept.to(device), observations, layout, config.solver)
    reports.append(report)
    rejected = torch.unique(pairs.edge[~believed])
    accepted = torch.unique(pairs.edge[believed])
    rejected = rejected[~torch.isin(rejected, accepted)]
    return layout, _joined(reports, rejected)


def _joined(reports: list[StageReport], rejected: Tensor) -> StageReport:
    """One report of several rounds."""
    seconds, offset = [], 0.0
    for r in reports:
        seconds += [offset + s for s in r.seconds_at]
        offset += r.seconds
    notes = (f"{len(rejected)} long-range edges rejected",) if len(rejected) else ()
    return replace(
        reports[-1],
        objective=tuple(x for r in reports for x in r.objective),
        seconds_at=tuple(seconds),
        median_at=tuple(x for r in reports for x in r.median_at),
        iterations=sum(r.iterations for r in reports),
        seconds=offset,
        rejected_edges=tuple(rejected.tolist()),
        notes=tuple(n for r in reports for n in r.notes) + notes,
    )

"""Stage 1: neighbouring chunks linked, verified, composed along the sequence; the rest stays loose."""

import time
from collections.abc import Iterable

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig, chunk_problem
from geoweaver.assembly.links import Link, LinkConfig, estimate_link
from geoweaver.assembly.loops import in_one_component, long_range_pairs
from geoweaver.assembly.pairs import PairMatches, select_pairs
from geoweaver.datatypes import ChunkLayout, Observations, StageReport
from geoweaver.geometry import Sim3


def initialise_chunks(
    matches: PairMatches, observations: Observations, kind: Int[Tensor, "E"], config: LinkConfig, seed: int
) -> tuple[ChunkLayout, tuple[Link, ...], StageReport]:
    """A forest of chains: every chunk in the frame of the first chunk of its component."""
    begun = time.perf_counter()
    # what retrieval found is a claim, even between neighbouring chunks: doors of one corridor look alike
    near = select_pairs(matches, ~long_range_pairs(matches, kind))
    links = []
    for a, b in adjacent_chunks(near, observations):
        generator = torch.Generator().manual_seed(seed + 7919 * a + b)
        links.append(estimate_link(near, observations, a, b, config, generator))
    layout = compose(links, observations.chunks)
    loose = int(layout.component.max()) if len(layout) else 0
    notes = [
        f"chunks {k.a} and {k.b}: link not verified ({100 * k.inliers:.0f} % of {k.matches} matches agree)"
        for k in links
        if not k.verified
    ]
    if loose:
        notes.append(f"{loose + 1} loose pieces after the chain")
    seconds = time.perf_counter() - begun
    report = StageReport(
        "sequential initialisation",
        median_px=_median_px(near, observations, layout),
        iterations=len(links),
        why_stopped="one pass",
        seconds=seconds,
        notes=tuple(notes),
    )
    return layout, tuple(links), report


def _median_px(near: PairMatches, observations: Observations, layout: ChunkLayout) -> float:
    """Of the matches between chunks that hang together."""
    within = select_pairs(near, in_one_component(near, observations, layout))
    held = torch.ones(len(layout), dtype=torch.bool)
    problem = chunk_problem(within, observations, held, ChunkAlignmentConfig())
    return problem.median_px(layout.world_from_chunk)


def adjacent_chunks(near: PairMatches, observations: Observations) -> list[tuple[int, int]]:
    """Chunk pairs that share a frame or a near edge, in order."""
    a, b = observations.chunk[near.observation_i], observations.chunk[near.observation_j]
    pairs = torch.stack([torch.minimum(a, b), torch.maximum(a, b)], 1)
    return [(int(x), int(y)) for x, y in torch.unique(pairs, dim=0).tolist()] if len(pairs) else []


def compose(links: Iterable[Link], chunks: int) -> ChunkLayout:
    """Grow each component from its first chunk along the best verified links."""
    verified = [k for k in links if k.verified]
    placed: dict[int, Sim3] = {}
    component = torch.full((chunks,), -1)
    for first in range(chunks):
        if first in placed:
            continue
        placed[first], component[first] = Sim3.identity(), int(component.max()) + 1
        while frontier := [k for k in verified if (k.a in placed) != (k.b in placed)]:
            link = max(frontier, key=lambda k: (k.inliers * min(k.matches, 1000), -k.b))
            known, new = (link.a, link.b) if link.a in placed else (link.b, link.a)
            step = link.a_from_b if known == link.a else link.a_from_b.inverse()
            placed[new], component[new] = placed[known] @ step, component[known]
    stack = [placed[k] for k in range(chunks)]
    parts = (torch.stack([getattr(s, n) for s in stack]) for n in ("scale", "rotation", "translation"))
    return ChunkLayout(Sim3(*parts), component)

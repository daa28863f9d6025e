"""The view graph: which pairs of frames are worth matching."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from geoweaver.datatypes import Chunk, EdgeKind, ViewGraph
from geoweaver.graph.retrieval import Candidates, RetrievalConfig, find_candidates
from geoweaver.graph.selection import SelectionConfig, select_edges
from geoweaver.graph.temporal import (
    TemporalConfig,
    as_pairs,
    frame_chains,
    mending_pairs,
    temporal_kind,
    temporal_pairs,
)

Verify = Callable[[Int[Tensor, "p 2"]], Shaped[Tensor, "p"]]
"""Pairs of frames to the number of feature pairs that agree with a common geometry, 0 where there is none."""


@dataclass(frozen=True)
class GraphConfig:
    """Which pairs of frames are matched; the number of edges is linear in the frames."""

    temporal: TemporalConfig = field(default_factory=TemporalConfig)
    """Neighbours in time."""
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    """Candidates that look alike."""
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    """Which candidates become edges."""
    min_inliers: int = 32
    """A verified candidate has at least so many agreeing feature pairs: unlike rooms reach 30 by chance."""
    weak_inliers: int = 16
    """A link of the temporal chain with fewer is weak: more pairs are tried around it."""
    sure_inliers: int = 100
    """So many agreeing feature pairs count half of what any number can."""


def build_graph(
    chunks: Sequence[Chunk],
    chain: Int[Tensor, "F"],
    descriptors: Float[Tensor, "F D"],
    config: GraphConfig | None = None,
    verify: Verify | None = None,
) -> ViewGraph:
    """Temporal edges and the chosen non-local ones, i < j, sorted; frames outside all chunks have none.

    With `verify`, candidates without a common geometry are dropped and weak links of the chain are mended.
    """
    config = config or GraphConfig()
    chains = frame_chains(chunks, chain)
    near, links = temporal_pairs(chunks, chain, config.temporal), _links(chains)
    if verify is not None and len(links):
        weak = verify(links) < config.weak_inliers
        near = as_pairs(_set(near) | _set(mending_pairs(links[weak], chunks, chain, config.temporal)))
        links = links[~weak]
    found, selection = (
        _without(find_candidates(descriptors, chains, config.retrieval), near),
        config.selection,
    )
    if verify is not None and len(found):
        found, selection = _verified(found, verify(found.pairs), config), replace(selection, min_rank=0.0)
    chosen = found.pairs[select_edges(len(chain), links, found.pairs, found.rank, selection)]
    kind = torch.full((len(chosen),), int(EdgeKind.LONG_RANGE))
    return _sorted(torch.cat([near, chosen]), torch.cat([temporal_kind(near, chunks), kind]))


def _links(chains: Sequence[Sequence[int]]) -> Int[Tensor, "s 2"]:
    """Each chain's frames tied to their next ones."""
    return as_pairs({pair for chain in chains for pair in pairwise(chain)})


def _set(pairs: Int[Tensor, "p 2"]) -> set[tuple[int, int]]:
    return {(i, j) for i, j in pairs.tolist()}


def _without(found: Candidates, taken: Int[Tensor, "p 2"]) -> Candidates:
    """Candidates that are no edges yet."""
    there = _set(taken)
    new = torch.tensor([(i, j) not in there for i, j in found.pairs.tolist()], dtype=torch.bool)
    return Candidates(found.pairs[new], found.rank[new])


def _verified(found: Candidates, inliers: Shaped[Tensor, "c"], config: GraphConfig) -> Candidates:
    """Candidates with a common geometry, ranked by how sure it is."""
    real = inliers >= config.min_inliers
    count = inliers[real].double()
    return Candidates(found.pairs[real], count / (count + config.sure_inliers))


def _sorted(edges: Int[Tensor, "E 2"], kind: Int[Tensor, "E"]) -> ViewGraph:
    order = edges[:, 1].argsort(stable=True)
    order = order[edges[order, 0].argsort(stable=True)]
    return ViewGraph(edges[order], kind[order])

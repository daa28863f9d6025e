"""Which candidates become edges: maximum spanning trees that favour pairs far apart in the graph so far."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.errors import ConfigError
from geoweaver.graph.hops import hop_distance


@dataclass(frozen=True)
class SelectionConfig:
    """How many non-local edges are kept, and which."""

    trees: int = 2
    """Spanning trees over the candidates: at most so many edges per frame."""
    far: float = 0.4
    """What distance in the graph so far counts against likeness: 0 ignores it, 1 sees nothing else."""
    min_rank: float = 0.9
    """Candidates of lower rank are left out, unless they join what is not joined otherwise."""

    def __post_init__(self) -> None:
        if self.trees < 0 or not (0 <= self.far <= 1 and 0 <= self.min_rank <= 1):
            raise ConfigError("graph selection: trees must be 0 or more, far and min_rank between 0 and 1")


def select_edges(
    frames: int,
    chain: Int[Tensor, "s 2"],
    pairs: Int[Tensor, "c 2"],
    rank: Float[Tensor, "c"],
    config: SelectionConfig,
) -> Bool[Tensor, "c"]:
    """Which are chosen: k spanning trees by s = (1 - far) rank + far hops, seeded by the temporal chain."""
    chosen = torch.zeros(len(pairs), dtype=torch.bool)
    allowed = (rank >= config.min_rank) | _joining(frames, chain, pairs, rank, config)
    for _ in range(config.trees):
        free = allowed & ~chosen
        if not free.any():
            break
        rows = free.nonzero().flatten()
        hops = hop_distance(frames, torch.cat([chain, pairs[chosen]]), pairs[rows])
        score = (1 - config.far) * rank[rows] + config.far * _normalised(hops)
        chosen[rows[spanning_tree(frames, pairs[rows], score)]] = True
    return chosen


def spanning_tree(
    frames: int,
    pairs: Int[Tensor, "c 2"],
    score: Float[Tensor, "c"],
    joined: Int[Tensor, "s 2"] | None = None,
) -> Int[Tensor, "t"]:
    """Rows of a maximum spanning forest (Kruskal) over frames of which some are joined already."""
    parent = list(range(frames))
    for i, j in [] if joined is None else joined.tolist():
        parent[_root(parent, i)] = _root(parent, j)
    ends, kept = pairs.tolist(), []
    for row in score.argsort(descending=True, stable=True).tolist():
        i, j = (_root(parent, k) for k in ends[row])
        if i != j:
            parent[i] = j
            kept.append(row)
    return torch.tensor(sorted(kept), dtype=torch.long)


def _joining(
    frames: int, chain: Int[Tensor, "s 2"], pairs: Int[Tensor, "c 2"], rank: Float[Tensor, "c"],
    config: SelectionConfig,
) -> Bool[Tensor, "c"]:  # fmt: skip
    """Candidates below the threshold without which the graph would fall apart."""
    good = rank >= config.min_rank
    joined = torch.cat([chain, pairs[good]])
    needed = torch.zeros(len(pairs), dtype=torch.bool)
    rows = (~good).nonzero().flatten()
    needed[rows[spanning_tree(frames, pairs[rows], rank[rows], joined)]] = True
    return needed


def _normalised(hops: Float[Tensor, "c"]) -> Float[Tensor, "c"]:
    """Hops over the largest finite number of them; 1 where there is no way."""
    finite = hops[hops.isfinite()]
    largest = float(finite.max()) if len(finite) else 1.0
    return (hops / max(largest, 1.0)).clamp(max=1.0)


def _root(parent: list[int], node: int) -> int:
    """The representative of a node's component; shortens the way for the next who asks."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node

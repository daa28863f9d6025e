"""How many edges lie between two frames: breadth-first search, compiled."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numba import njit
from torch import Tensor


def hop_distance(frames: int, edges: Int[Tensor, "e 2"], pairs: Int[Tensor, "p 2"]) -> Float[Tensor, "p"]:
    """Edges on the shortest way between the ends of each pair; infinite where there is none."""
    both = torch.cat([edges, edges.flip(1)])
    both = both[both[:, 0].argsort(stable=True)]
    start = torch.searchsorted(both[:, 0].contiguous(), torch.arange(frames + 1))
    order = pairs[:, 0].argsort(stable=True)
    hops = _search(start.numpy(), both[:, 1].contiguous().numpy(), pairs[order].numpy(), frames)
    result = torch.empty(len(pairs), dtype=torch.float64)
    result[order] = torch.from_numpy(np.where(hops < 0, np.inf, hops))
    return result


@njit(cache=True)
def _search(start: Any, neighbour: Any, pairs: Any, frames: int) -> Any:
    """One search from each first frame (pairs are sorted by it), until all its partners are met."""
    hops = np.full(len(pairs), -1, np.int64)
    depth, queue = np.full(frames, -1, np.int64), np.empty(frames, np.int64)
    first = 0
    while first < len(pairs):
        source, last = pairs[first, 0], first
        while last < len(pairs) and pairs[last, 0] == source:
            last += 1
        depth[source], queue[0], head, tail = 0, source, 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for k in range(start[node], start[node + 1]):
                if depth[neighbour[k]] < 0:
                    depth[neighbour[k]] = depth[node] + 1
                    queue[tail] = neighbour[k]
                    tail += 1
        for row in range(first, last):
            hops[row] = depth[pairs[row, 1]]
        depth[queue[:tail]] = -1
        first = last
    return hops

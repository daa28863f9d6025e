"""Depth that bends inside a frame: a smooth factor on a grid of nodes, beyond the paper's affine depth.

What a prior gets wrong over a region of the image, a bulged wall or a tilted floor, no scale and shift of the
whole frame can mend, and cameras must absorb it (docs/decisions/0028).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.assembly.bend_tensors import bend_sums_of_rows
from geoweaver.assembly.fused import ErrorModel, kernel_settings, match_columns, pair_estimate
from geoweaver.assembly.fused_bend import bend_depths, sum_bend_forces, sum_bends
from geoweaver.assembly.pairs import Normalisation, Objective, PairGeometry, PairMatches
from geoweaver.geometry.grid import bilinear_nodes

FRAMES = 128
"""Frames per block: bounds the memory of their coupling to neighbours to about 200 MB."""
FEWEST_NODES = 3


@dataclass(frozen=True)
class BendGrid:
    """Nodes over an image."""

    size: tuple[int, int]
    """Width and height of the image."""
    nodes: tuple[int, int]
    """Rows and columns."""

    def __len__(self) -> int:
        return self.nodes[0] * self.nodes[1]

    @property
    def place(self) -> tuple[Any, int, int]:
        return np.array(self.size, dtype=np.float64), *self.nodes


def bend_grid(size: tuple[int, int], longer: int) -> BendGrid:
    """So many nodes along the longer side, about as far apart along the other."""
    width, height = size
    apart = max(width, height) / (longer - 1)
    rows, columns = (max(FEWEST_NODES, 1 + round(side / apart)) for side in (height, width))
    return BendGrid(size, (rows, columns))


def bent_matches(
    matches: PairMatches, bend: Float[Tensor, "F r c"] | None, size: tuple[int, int]
) -> PairMatches:
    """The matches with the depth that a bend of their frames leaves them."""
    if bend is None:
        return matches
    ends = (
        (matches.observation_i, matches.pixel_i, matches.depth_i),
        (matches.observation_j, matches.pixel_j, matches.depth_j),
    )
    depth_i, depth_j = (_bent(matches, *end, bend, size) for end in ends)
    return replace(matches, depth_i=depth_i, depth_j=depth_j)


def _bent(
    matches: PairMatches, frame: Tensor, pixel: Tensor, depth: Tensor, bend: Tensor, size: tuple[int, int]
) -> Float[Tensor, "M"]:
    nodes = (bend.shape[1], bend.shape[2])
    if depth.device.type != "cpu":
        index, share = bilinear_nodes(pixel, size, nodes)
        own = bend.to(depth.device).flatten(1)[frame.to(depth.device)[matches.pair_of_row]]
        factor = (own.gather(1, index) * share).sum(1).exp()
        return (depth.double() * factor).to(depth.dtype)
    out, grid = np.empty(len(depth), np.float32), BendGrid(size, nodes)
    bend_depths(
        matches.start.numpy(), np.ascontiguousarray(pixel.numpy()), np.ascontiguousarray(depth.numpy()),
        frame.numpy(), np.ascontiguousarray(bend.detach().flatten(1).double().numpy()), *grid.place, out,
    )  # fmt: skip
    return torch.from_numpy(out)


@dataclass(frozen=True)
class BendSums:
    """What matches say about the nodes of some frames."""

    frame: Int[Tensor, "f"]
    gradient: Float[Tensor, "f K"]
    normal: Float[Tensor, "f K K"]
    end: Int[Tensor, "e"]
    """Ends of pairs at these frames: 2 p for the first frame of pair p, 2 p + 1 for the second."""
    owner: Int[Tensor, "e"]
    """Which of the frames each end is at."""
    mixed: Float[Tensor, "e K n"]
    """Coupling of the nodes to the local parameters of each end's pair."""


@dataclass(frozen=True)
class Bending:
    """The sums of Eq. final_objective in the nodes of every frame, some frames at a time."""

    grid: BendGrid
    observation_i: Int[Tensor, "P"]
    observation_j: Int[Tensor, "P"]
    frames: int

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        """First end of each frame, and the ends frame by frame."""
        owner = torch.stack([self.observation_i, self.observation_j], 1).flatten()
        first = np.concatenate([[0], np.cumsum(np.bincount(owner.numpy(), minlength=self.frames))])
        return first, torch.argsort(owner, stable=True).numpy()

    def _blocks(self) -> Iterator[tuple[Tensor, Any, Any, Tensor]]:
        first, ends = self._ends
        for low in range(0, self.frames, FRAMES):
            high = min(low + FRAMES, self.frames)
            own = first[low : high + 1]
            owner = torch.repeat_interleave(torch.arange(high - low), torch.from_numpy(np.diff(own)))
            yield torch.arange(low, high), own - own[0], ends[own[0] : own[-1]], owner

    def sums(
        self, matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation,
        parameters: int,
    ) -> Iterator[BendSums]:  # fmt: skip
        """Sums of all frames, block by block; `matches` have bent depth already."""
        K, fused = len(self.grid), matches.device.type == "cpu"
        every = () if fused else self._elsewhere(matches, geometry, objective, norm, parameters)
        for frame, first, ends, owner in self._blocks():
            end = torch.from_numpy(ends)
            if not fused:
                yield BendSums(frame, every[0][frame], every[1][frame], end, owner, every[2][end])
                continue
            gradient, normal = np.zeros((len(frame), K)), np.zeros((len(frame), K, K))
            mixed = np.zeros((len(ends), K, parameters))
            sum_bends(
                *match_columns(matches), *pair_estimate(geometry), norm.pixels.numpy(),
                kernel_settings(objective.pixels), objective.both_directions, parameters,
                first, ends, *self.grid.place, gradient, normal, mixed,
            )  # fmt: skip
            sums = (torch.from_numpy(x) for x in (gradient, normal, mixed))
            yield BendSums(frame, next(sums), next(sums), end, owner, next(sums))

    def _elsewhere(
        self, matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation,
        parameters: int,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        there = geometry.to(matches.device)
        sums = bend_sums_of_rows(
            matches, there, objective, norm, parameters, self.frames, self.grid.size, self.grid.nodes
        )
        return tuple(x.cpu() for x in sums)

    def forces(
        self, matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation,
        parameters: int, run: Tensor, model: ErrorModel,
    ) -> Float[Tensor, "F K d"]:  # fmt: skip
        """How the random errors of `fused.error_forces` pull at the nodes."""
        first, ends = self._ends
        out = np.zeros((self.frames, len(self.grid), model.draws))
        sum_bend_forces(
            *match_columns(matches), *pair_estimate(geometry), norm.pixels.numpy(),
                    kernel_settings(objective.pixels),
            objective.both_directions, parameters, run[matches.observation_i].numpy(),
            run[matches.observation_j].numpy(), model.region, model.cell, model.depth, model.pixel,
            first, ends, *self.grid.place, out,
        )  # fmt: skip
        return torch.from_numpy(out)

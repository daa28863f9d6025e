"""Long-range edges are claims, not facts: judged by their own fits, by each other, and by where they lead."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.fused import row_errors
from geoweaver.assembly.links import LinkConfig, chunk_points, inlier_rows
from geoweaver.assembly.pairs import PairGeometry, PairMatches, select_pairs, thin_pairs
from geoweaver.datatypes import ChunkLayout, EdgeKind, Observations
from geoweaver.errors import DegenerateError
from geoweaver.geometry import Sim3
from geoweaver.geometry.registration import robust_sim3


@dataclass(frozen=True)
class LoopConfig:
    """When a long-range edge is believed."""

    agreement: float = 0.25
    """Two edges support each other when their similarities differ by less than this share of depth."""
    reach: int = 1
    """Chunks that two supporting edges may lie apart at either end."""
    inlier_share: float = 0.2
    """Share of an edge's matches that must fit the layout for the edge to stay."""
    pixel_tolerance: float = 0.04
    """Reprojection error of such a match, as a share of the image diagonal."""
    depth_tolerance: float = 0.4
    """Relative depth disagreement of such a match."""
    refined_tolerance: float = 0.02
    """The same once Stage 3 has moved the frames, which then fit far better than rigid chunks."""
    near: int = 4
    """Frames so many steps apart in time at most are neighbours, whose matches are many and seldom wrong."""
    wide_share: float = 0.5
    """Share of its matches by which a temporal edge that is wider than that must fit the cameras."""
    rounds: int = 4
    """Solve and judge again at most so often."""
    matches_per_pair: int = 128
    """Matches that an edge's own fit is made on."""


@dataclass(frozen=True)
class Claims:
    """What each long-range pair of observations says of its two chunks (rows: pairs of the table)."""

    pair: Int[Tensor, "L"]
    chunk_i: Int[Tensor, "L"]
    chunk_j: Int[Tensor, "L"]
    i_from_j: Sim3
    fitted: Bool[Tensor, "L"]
    """The edge's own matches agree on a similarity at all."""
    probe: Float[Tensor, "L n 3"]
    """Points of chunk j that the claim was made on: where two claims are compared."""


def long_range_pairs(matches: PairMatches, kind: Int[Tensor, "E"]) -> Bool[Tensor, "P"]:
    """Pairs that stem from long-range edges."""
    return torch.isin(matches.edge, (kind == int(EdgeKind.LONG_RANGE)).nonzero().squeeze(1))


def gather_claims(
    matches: PairMatches, observations: Observations, kind: Int[Tensor, "E"], config: LoopConfig, seed: int
) -> Claims:
    """Each long-range pair's own robust similarity between its two chunks."""
    pairs = long_range_pairs(matches, kind).nonzero().squeeze(1)
    few = thin_pairs(select_pairs(matches, pairs), config.matches_per_pair)
    point_i, point_j, solid = chunk_points(few, observations)
    fits, fitted, probes = [], [], []
    for number in range(len(pairs)):
        rows = torch.arange(int(few.start[number]), int(few.start[number + 1]))
        rows = rows[solid[rows]]
        generator = torch.Generator().manual_seed(seed + 104729 * number)
        try:
            fit = robust_sim3(
                point_j[rows], point_i[rows], few.weight[rows].double(), generator,
                few.depth_i[rows].double(), samples=128,
            )  # fmt: skip
        except DegenerateError:
            fits.append(Sim3.identity())
            fitted.append(False)
            probes.append(torch.zeros(8, 3, dtype=torch.float64))
            continue
        inside = rows[fit.inlier]
        fits.append(fit.transform)
        fitted.append(True)
        probes.append(point_j[inside[torch.linspace(0, len(inside) - 1, 8).long()]])
    i, j = observations.chunk[matches.observation_i[pairs]], observations.chunk[matches.observation_j[pairs]]
    empty = Sim3.identity(0)
    stacked = (
        Sim3(*(torch.stack([getattr(f, n) for f in fits]) for n in empty.__dataclass_fields__))
        if fits
        else empty
    )
    probe = torch.stack(probes) if probes else torch.zeros(0, 8, 3, dtype=torch.float64)
    return Claims(pairs, i, j, stacked, torch.tensor(fitted, dtype=torch.bool), probe)


def mutual_support(claims: Claims, layout: ChunkLayout, config: LoopConfig) -> Int[Tensor, "L"]:
    """How many other claims, at the same or neighbouring chunks, say the same.

    Neighbouring chunks are bridged by the layout: it is good over short distances, whatever its drift.
    """
    support = torch.zeros(len(claims.pair), dtype=torch.long)
    order = torch.argsort(claims.chunk_i * (int(layout.component.numel()) + 1) + claims.chunk_j)
    for row in range(len(order)):
        near = (claims.chunk_i - claims.chunk_i[row]).abs() <= config.reach
        near &= (claims.chunk_j - claims.chunk_j[row]).abs() <= config.reach
        near &= claims.fitted & claims.fitted[row]
        near[row] = False
        others = near.nonzero().squeeze(1)
        if len(others):
            support[row] = int((_disagreement(claims, layout, row, others) < config.agreement).sum())
    return support


def _disagreement(claims: Claims, layout: ChunkLayout, row: int, others: Tensor) -> Float[Tensor, "o"]:
    """Distance between where two claims put the same points, over their extent, seen from `row`."""
    world = layout.world_from_chunk
    mine, theirs = claims.i_from_j[row], claims.i_from_j[others]
    i, j = claims.chunk_i, claims.chunk_j
    to_their_j = world[j[others]].inverse() @ world[j[row]]
    from_their_i = world[i[row]].inverse() @ world[i[others]]
    same = (layout.component[j[others]] == layout.component[j[row]]) & (
        layout.component[i[others]] == layout.component[i[row]]
    )
    same |= (j[others] == j[row]) & (i[others] == i[row])
    through = from_their_i @ theirs @ to_their_j
    points = claims.probe[row]
    here, there = mine.act(points), through[:, None].act(points)
    size = (points - points.mean(0)).norm(dim=-1).mean() * mine.scale + 1e-12
    # Chunks are in units of their median depth: half a unit is a fair lower bound for what is seen.
    apart = (here - there).norm(dim=-1).mean(-1) / torch.clamp(size, min=0.5)
    return torch.where(same, apart, torch.inf)


def edge_inliers(
    matches: PairMatches,
    observations: Observations,
    layout: Sim3,
    pixel_tolerance: float,
    depth_tolerance: float,
) -> Float[Tensor, "P"]:
    """Share of each pair's rows that fit a layout."""
    good = inlier_rows(matches, observations, layout, pixel_tolerance, depth_tolerance).double()
    count = matches.start.diff().clamp(min=1)
    return torch.zeros(len(matches), dtype=torch.float64).index_add_(0, matches.pair_of_row, good) / count


def tie_components(claims: Claims, trusted: Bool[Tensor, "L"], layout: ChunkLayout) -> ChunkLayout:
    """Loose pieces joined by the long-range claims that support each other most."""
    world, component = layout.world_from_chunk, layout.component.clone()
    for row in trusted.nonzero().squeeze(1).tolist():
        i, j = int(claims.chunk_i[row]), int(claims.chunk_j[row])
        if component[i] == component[j]:
            continue
        keep, move = (i, j) if component[i] < component[j] else (j, i)
        link = claims.i_from_j[row] if keep == i else claims.i_from_j[row].inverse()
        shift = world[keep] @ link @ world[move].inverse()
        members = component == component[move]
        moved = shift[None] @ world
        world = Sim3(
            torch.where(members, moved.scale, world.scale),
            torch.where(members[:, None, None], moved.rotation, world.rotation),
            torch.where(members[:, None], moved.translation, world.translation),
        )
        component[members] = component[keep]
    return ChunkLayout(world, torch.unique(component, return_inverse=True)[1])


def in_one_component(
    matches: PairMatches, observations: Observations, layout: ChunkLayout
) -> Bool[Tensor, "P"]:
    """Pairs whose chunks hang together: between others places are arbitrary, and so is what matches miss."""
    i, j = (layout.component[observations.chunk[x]] for x in (matches.observation_i, matches.observation_j))
    same: Tensor = i == j
    return same


def believed_pairs(
    matches: PairMatches, kind: Int[Tensor, "E"], claims: Claims, believed: Bool[Tensor, "L"]
) -> Bool[Tensor, "P"]:
    """All near pairs, and the long-range ones that are believed."""
    keep = ~long_range_pairs(matches, kind)
    keep[claims.pair[believed]] = True
    return keep


def link_tolerances(config: LoopConfig | LinkConfig) -> tuple[float, float]:
    """Pixel and depth tolerance."""
    return config.pixel_tolerance, config.depth_tolerance


def wide_pairs(
    matches: PairMatches, kind: Int[Tensor, "E"], group: Int[Tensor, "F"], config: LoopConfig
) -> Bool[Tensor, "P"]:
    """Pairs in time, but farther apart than neighbours, counted in the camera's frames that have matches."""
    i, j = matches.observation_i, matches.observation_j
    seen = torch.zeros(len(group), dtype=torch.bool)
    seen[i], seen[j] = True, True
    step = torch.zeros(len(group), dtype=torch.long)
    for camera in torch.unique(group):
        own = seen & (group == camera)
        step[own] = torch.arange(int(own.sum()))
    every = seen.long().cumsum(0)
    # cameras with pairs in time between them take turns in one sub-folder
    apart = torch.where(group[i] == group[j], step[i] - step[j], every[i] - every[j]).abs()
    return ~long_range_pairs(matches, kind) & (apart > config.near)


def fitting_share(
    matches: PairMatches, geometry: PairGeometry, size: tuple[int, int], tolerance: float
) -> Float[Tensor, "P"]:
    """Share of each pair's matches that miss by no more than a share of the image diagonal."""
    pixels, _ = row_errors(matches, geometry)
    good = (pixels <= tolerance * (size[0] ** 2 + size[1] ** 2) ** 0.5).double()
    count = matches.start.diff().clamp(min=1)
    return torch.zeros(len(matches), dtype=torch.float64).index_add_(0, matches.pair_of_row, good) / count

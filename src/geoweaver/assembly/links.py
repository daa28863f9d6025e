"""A similarity between two chunks, from the matches that cross between them, and whether to believe it."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.assembly import lm
from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig, chunk_problem
from geoweaver.assembly.fused import row_errors
from geoweaver.assembly.pairs import PairMatches, select_pairs, thin_pairs
from geoweaver.assembly.stopping import StopRule
from geoweaver.datatypes import Observations
from geoweaver.errors import DegenerateError
from geoweaver.geometry import Sim3
from geoweaver.geometry.camera import lift
from geoweaver.geometry.registration import robust_scale, robust_sim3

TIE = -1
"""The edge number of a shared frame tied to itself."""


@dataclass(frozen=True)
class LinkConfig:
    """Settings of Stage 1's links and of what counts as verified."""

    confident_share: float = 0.5
    """Stage 1 fits on this share of the matches, the most confident ones."""
    pixel_tolerance: float = 0.03
    """Reprojection error of an inlier, as a share of the image diagonal."""
    depth_tolerance: float = 0.2
    """Relative depth disagreement of an inlier where only the shared frame ties two chunks."""
    inlier_share: float = 0.15
    """Share of the confident matches that must be inliers for a link to be verified: chance gives below 1 %,
    a mediocre prior's rigid chunks 30 %."""
    least_matches: int = 30
    """Matches below which a link is never verified."""
    matches_per_pair: int = 400
    """Matches per pair that a link is estimated on."""
    rule: StopRule = field(default_factory=lambda: StopRule(most=15))
    """When a link's refinement stops."""


@dataclass(frozen=True)
class Link:
    """An estimated a_from_b between two chunks."""

    a: int
    b: int
    a_from_b: Sim3
    inliers: float
    """Share of the confident matches that agree."""
    matches: int
    verified: bool
    source: str
    """Which estimate won: the shared frame's scale, or the matches across the border."""


def most_confident(matches: PairMatches, share: float) -> PairMatches:
    """The most confident share of all rows, pair boundaries kept."""
    if not matches.rows:
        return matches
    threshold = torch.quantile(_at_most(matches.weight, 1_000_000).double(), 1 - share)
    keep = matches.weight >= threshold
    count = torch.zeros(len(matches), dtype=torch.long).index_add_(0, matches.pair_of_row, keep.long())
    start = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)])
    columns = ("pixel_i", "pixel_j", "depth_i", "depth_j", "weight")
    return replace(matches, start=start, **{name: getattr(matches, name)[keep] for name in columns})


def _at_most(values: Tensor, count: int) -> Tensor:
    return values[:: max(1, -(-len(values) // count))]


def estimate_link(
    matches: PairMatches,
    observations: Observations,
    a: int,
    b: int,
    config: LinkConfig,
    generator: torch.Generator,
) -> Link:
    """The better of two estimates (shared frame, crossing matches), refined and verified."""
    chunk_i, chunk_j = observations.chunk[matches.observation_i], observations.chunk[matches.observation_j]
    between = ((chunk_i == a) & (chunk_j == b)) | ((chunk_i == b) & (chunk_j == a))
    mine = most_confident(
        thin_pairs(select_pairs(matches, between), config.matches_per_pair), config.confident_share
    )
    candidates = _candidates(mine, observations, a, b, generator)
    if not candidates:
        return Link(a, b, Sim3.identity(), 0.0, mine.rows, False, "none")
    local = replace(observations, chunk=(observations.chunk == b).long())
    crossing = select_pairs(mine, mine.edge != TIE)
    problem = chunk_problem(mine, local, torch.tensor([True, False]), ChunkAlignmentConfig())
    layouts = {name: _two(fit) for name, fit in candidates.items()}
    name = min(layouts, key=lambda n: problem.loss(layouts[n]))
    layout, _, _ = lm.minimise(problem, layouts[name], config.rule)
    judged = crossing if crossing.rows >= config.least_matches else mine
    tolerances = (config.pixel_tolerance, config.depth_tolerance)
    good = inlier_rows(judged, local, layout, *tolerances)
    share = float(good.double().mean()) if len(good) else 0.0
    verified = share >= config.inlier_share and int(good.sum()) >= config.least_matches
    return Link(a, b, layout[1], share, mine.rows, verified, name)


def _two(a_from_b: Sim3) -> Sim3:
    one = Sim3.identity()
    parts = ((getattr(one, n), getattr(a_from_b, n)) for n in ("scale", "rotation", "translation"))
    return Sim3(*(torch.stack(pair) for pair in parts))


def _candidates(
    matches: PairMatches, observations: Observations, a: int, b: int, generator: torch.Generator
) -> dict[str, Sim3]:
    """Estimates of a_from_b; those that the data cannot give are left out."""
    found = {}
    for name, estimate in (("shared frame", _by_tie), ("matches", _by_matches)):
        try:
            found[name] = estimate(matches, observations, a, b, generator)
        except DegenerateError:
            continue
    return found


def _by_tie(
    matches: PairMatches, observations: Observations, a: int, b: int, generator: torch.Generator
) -> Sim3:
    """One camera, one pose: only the scale is unknown, the robust ratio of two depths of the same pixels."""
    ties = select_pairs(matches, matches.edge == TIE)
    if not ties.rows:
        raise DegenerateError(f"chunks {a} and {b} share no frame")
    pair = ties.pair_of_row
    from_b = observations.chunk[ties.observation_i][pair] == b
    depth_a = torch.where(from_b, ties.depth_j, ties.depth_i).double()
    depth_b = torch.where(from_b, ties.depth_i, ties.depth_j).double()
    scale = robust_scale(depth_a, depth_b, ties.weight.double()).scale
    first = bool(observations.chunk[ties.observation_i[0]] == b)
    i, j = int(ties.observation_i[0]), int(ties.observation_j[0])
    in_a, in_b = (j, i) if first else (i, j)
    same = Sim3(
        torch.tensor(scale, dtype=torch.float64),
        torch.eye(3, dtype=torch.float64),
        torch.zeros(3, dtype=torch.float64),
    )
    camera_a, camera_b = observations.cam_from_chunk[in_a], observations.cam_from_chunk[in_b]
    return Sim3.from_se3(camera_a.inverse()) @ same @ Sim3.from_se3(camera_b)


def _by_matches(
    matches: PairMatches, observations: Observations, a: int, b: int, generator: torch.Generator
) -> Sim3:
    """Robust fit of the matched points in the two chunks' coordinates, errors relative to depth."""
    crossing = select_pairs(matches, matches.edge != TIE)
    point_i, point_j, solid = chunk_points(crossing, observations)
    from_b = (observations.chunk[crossing.observation_i] == b)[crossing.pair_of_row][:, None]
    source, target = torch.where(from_b, point_i, point_j), torch.where(from_b, point_j, point_i)
    noise = torch.where(from_b[:, 0], crossing.depth_j, crossing.depth_i).double()
    if int(solid.sum()) < 4:
        raise DegenerateError(f"chunks {a} and {b} have no matches with depth on both sides")
    return robust_sim3(
        source[solid], target[solid], crossing.weight[solid].double(), generator, noise[solid]
    ).transform


def chunk_points(
    matches: PairMatches, observations: Observations
) -> tuple[Float[Tensor, "M 3"], Float[Tensor, "M 3"], Bool[Tensor, "M"]]:
    """Both ends of every match as points of their chunks, and whether both have depth."""
    pair = matches.pair_of_row
    points = []
    for observation, pixel, depth in (
        (matches.observation_i[pair], matches.pixel_i, matches.depth_i),
        (matches.observation_j[pair], matches.pixel_j, matches.depth_j),
    ):
        in_camera = lift(pixel.double(), depth.double(), observations.intrinsics[observation])
        points.append(observations.cam_from_chunk[observation].inverse().act(in_camera))
    return points[0], points[1], (matches.depth_i > 0) & (matches.depth_j > 0)


def inlier_rows(
    matches: PairMatches,
    observations: Observations,
    layout: Sim3,
    pixel_tolerance: float,
    depth_tolerance: float,
) -> Bool[Tensor, "M"]:
    """Rows that reproject within a share of the image diagonal and agree in depth where both have it."""
    if not matches.rows:
        return torch.zeros(0, dtype=torch.bool)
    held = torch.zeros(len(layout), dtype=torch.bool)
    problem = chunk_problem(matches, observations, held, ChunkAlignmentConfig())
    pixels, points = row_errors(matches, problem.geometry(layout))
    diagonal = (observations.size[0] ** 2 + observations.size[1] ** 2) ** 0.5
    inlier: Tensor = (pixels <= pixel_tolerance * diagonal) & ~(points > depth_tolerance)
    return inlier

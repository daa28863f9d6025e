"""How far each camera can be believed: its uncertainty from the data, and in words what speaks against it.

The uncertainty propagates two kinds of error through the last linear system: the prior's depth, which errs
alike over a region of the image and some frames on end, and the matches, which err alike in a cell of an
edge. Their sizes are measured on the sequence itself, their signs are drawn at random, and the system answers
with how the cameras would move. What a similarity of the whole explains is taken out: no reference sees it.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.linalg import LinAlgError
from torch import Tensor

from geoweaver.assembly.borders import contradicted_pieces
from geoweaver.assembly.frame_problem import FrameProblem
from geoweaver.assembly.fused import ErrorModel, error_forces, row_errors
from geoweaver.assembly.loops import fitting_share
from geoweaver.assembly.pairs import PairGeometry, PairMatches, tied_frames
from geoweaver.assembly.tears import TearConfig
from geoweaver.datatypes import FrameState
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import hat

_MEDIAN_OF_NORMAL = 0.6745
"""Median of |x| for a standard normal x."""
_MEDIAN_OF_RAYLEIGH = 1.1774
"""Median length of a plane vector whose two parts are standard normal."""


CONTRADICTED = "its piece of the prior fits itself but not the frames around it"


@dataclass(frozen=True)
class TrustConfig:
    """What a trusted frame must show; every threshold is a ratio or an angle."""

    cell: float = 16.0
    """Side (pixels) of the cells whose matches count as one piece of evidence in an edge."""
    alike_width: float = 0.15
    """Share of the image width over which a prior's depth errs alike."""
    alike_frames: int = 14
    """Frames with matches on end over which it does, within a chunk."""
    draws: int = 32
    """Random sign patterns: gives a sigma to about 10 %."""
    inflation: tuple[float, float] = (1.42, 1.66)
    """Factors on the sigmas of centre and rotation, calibrated on simulated sequences (page 8)."""
    least_cells: int = 20
    """Independent inlier cells that a frame's pose must rest on."""
    inlier_share: float = 0.25
    """Share of a frame's matches that must reproject within the tolerance."""
    pixel_tolerance: float = 0.01
    """Reprojection error of an inlier, as a share of the image diagonal."""
    most_sigma: float = 0.3
    """Largest sigma of the camera centre, as a share of the frame's median depth."""
    most_turn: float = 0.1
    """Largest sigma of the rotation, in radians."""
    tears: TearConfig = field(default_factory=TearConfig)
    """When all matches of neighbours contradict the step between them."""


@dataclass(frozen=True)
class Trust:
    """Per frame: sigma of centre (world units) and rotation (radians); why not trusted ('' where it is)."""

    sigma: Float[Tensor, "F 2"]
    reason: tuple[str, ...]
    contradicted: Bool[Tensor, "F"]
    """In a piece of the prior that the matches across its border contradict."""

    @property
    def trusted(self) -> Bool[Tensor, "F"]:
        return torch.tensor([not r for r in self.reason], dtype=torch.bool)


def judge_frames(
    problem: FrameProblem,
    state: FrameState,
    component: Int[Tensor, "F"],
    near: Bool[Tensor, "P"],
    torn: Bool[Tensor, "F"],
    size: tuple[int, int],
    config: TrustConfig,
) -> Trust:
    """Trust of every frame after Stage 3.

    `component` is -1 for frames that no prior saw; `near` are the pairs of neighbours in time; `torn` are
    frames that all matches, before sampling, do not join to the rest.
    """
    sigma = frame_sigma(problem, state, size, config)
    evidence = frame_evidence(problem, state, size, config)
    seen = component[component >= 0]
    main = int(torch.bincount(seen).argmax()) if len(seen) else 0
    contradicted = contradicted_frames(problem, state, near, size, config) | torn
    contradicted &= component == main
    unit = problem.setup.unit
    reason = []
    for frame in range(len(component)):
        matches, share, cells = (float(x[frame]) for x in evidence)
        spread, turn = float(sigma[frame, 0] / unit[frame]), float(sigma[frame, 1])
        # without any match at all there is no rest to be tied to
        loose = int(component[frame]) not in (-1, main) and bool(problem.matches.rows)
        why = _reason(matches, share, cells, spread, turn, loose, config)
        reason.append(why or (CONTRADICTED if contradicted[frame] else ""))
    unsure = (evidence[0] == 0) | (component != main)
    return Trust(torch.where(unsure[:, None], torch.inf, sigma), tuple(reason), contradicted)


def contradicted_frames(
    problem: FrameProblem,
    state: FrameState,
    near: Bool[Tensor, "P"],
    size: tuple[int, int],
    config: TrustConfig,
) -> Bool[Tensor, "F"]:
    """Frames of pieces whose matches with the pieces around do not fit the cameras."""
    matches, piece = problem.matches_at(state), problem.setup.part
    if not matches.rows:
        return torch.zeros(len(piece), dtype=torch.bool)
    fitting = fitting_share(matches, problem.geometry(state), size, config.pixel_tolerance)
    tied = tied_frames(matches, len(piece))
    ends = torch.stack([piece[matches.observation_i], piece[matches.observation_j]], 1)
    count = torch.bincount(piece[tied], minlength=int(piece.max()) + 1)
    found = contradicted_pieces(ends, matches.start.diff(), fitting, near, count, config.least_cells)
    return tied & found[piece]


def _reason(
    matches: float, share: float, cells: float, spread: float, turn: float, loose: bool, config: TrustConfig
) -> str:
    if loose:
        return "in a piece that no verified match ties to the rest: its place and scale are its own"
    if matches == 0:
        return "no matches with depth: only the prior or its neighbours say where the camera is"
    if share < config.inlier_share:
        return f"only {100 * share:.0f} % of its matches agree with its camera"
    if cells < config.least_cells:
        return f"only {cells:.0f} independent matches support it"
    if not (spread <= config.most_sigma and turn <= config.most_turn):
        centre, rotation = f"{100 * spread:.0f} % of depth", f"{turn * 57.2958:.1f} degrees"
        return f"weakly determined: centre to {centre}, rotation to {rotation}"
    return ""


def frame_evidence(
    problem: FrameProblem, state: FrameState, size: tuple[int, int], config: TrustConfig
) -> tuple[Float[Tensor, "F"], Float[Tensor, "F"], Float[Tensor, "F"]]:
    """Matches, the weighted share of inliers among them, and independent inlier cells of each frame."""
    matches, frames = problem.matches_at(state), len(problem.setup.group)
    pixels, points = row_errors(matches, problem.geometry(state))
    diagonal = (size[0] ** 2 + size[1] ** 2) ** 0.5
    good = (pixels <= config.pixel_tolerance * diagonal) & ~(points > 1.0)
    pair = matches.pair_of_row
    count, inside, weight, cells = (torch.zeros(frames, dtype=torch.float64) for _ in range(4))
    for frame, pixel in ((matches.observation_i, matches.pixel_i), (matches.observation_j, matches.pixel_j)):
        row_frame = frame[pair]
        count.index_add_(0, row_frame, torch.ones_like(pixels, dtype=torch.float64))
        weight.index_add_(0, row_frame, matches.weight.double())
        inside.index_add_(0, row_frame, matches.weight.double() * good)
        cells += _distinct_cells(matches, row_frame[good], pixel[good], pair[good], size, config.cell, frames)
    return count, inside / weight.clamp(min=1e-300), cells


def _distinct_cells(
    matches: PairMatches,
    frame: Tensor,
    pixel: Tensor,
    pair: Tensor,
    size: tuple[int, int],
    cell: float,
    frames: int,
) -> Tensor:
    """Cells per frame with at least one row, counted once per pair."""
    columns = int(size[0] / cell) + 2
    place = (pixel[:, 1] / cell).long().clamp(min=0) * columns + (pixel[:, 0] / cell).long().clamp(
        min=0, max=columns - 1
    )
    per_pair = columns * (int(size[1] / cell) + 2)
    distinct = torch.unique(pair * per_pair + place)
    owner = torch.zeros(len(matches), dtype=torch.long)
    owner[pair] = frame
    return torch.bincount(owner[distinct // per_pair], minlength=frames).double()


def frame_sigma(
    problem: FrameProblem, state: FrameState, size: tuple[int, int], config: TrustConfig
) -> Float[Tensor, "F 2"]:
    """Sigma of each camera's centre (world units) and rotation (radians), up to a global similarity."""
    unknown = torch.full((len(problem.setup.group), 2), torch.inf, dtype=torch.float64)
    if not problem.matches.rows:
        return unknown
    geometry, matches = problem.geometry(state), problem.matches_at(state)
    rank = matched_rank(matches, len(problem.setup.group))
    run = rank // config.alike_frames + len(rank) * problem.setup.part
    model = measured_errors(matches, geometry, size, config)
    told = (matches, geometry, problem.objective, problem.norm, problem.parameters, run, model)
    _, system = problem.linearise(state)
    right = problem.expand(geometry.z, error_forces(*told))
    if problem.bending is not None:
        right = problem.without_bends(right, system, problem.bending.forces(*told))
    # the slow bends of a long way are the last to converge, and the largest
    try:
        answer = torch.from_numpy(system.solve_many(1e-9, right.numpy(), 1e-4, most=2000))
    except LinAlgError:
        return unknown
    frames = len(problem.setup.group)
    delta = answer[: 8 * frames].reshape(frames, 8, config.draws).permute(2, 0, 1)
    rotation = state.cam_from_world.rotation
    shift = -(rotation.mT @ delta[..., :3, None]).squeeze(-1)
    turn = (rotation.mT @ delta[..., 3:6, None]).squeeze(-1)
    lever = 0.05 * float(problem.setup.unit.median())
    shift, turn = _without_gauge(
        state.cam_from_world, shift, turn, tied_frames(problem.matches, frames), lever
    )
    rms = [x.square().sum(-1).mean(0).sqrt() for x in (shift, turn)]
    return torch.tensor(config.inflation, dtype=torch.float64) * torch.stack(rms, -1)


def matched_rank(matches: PairMatches, frames: int) -> Int[Tensor, "F"]:
    """Each frame's number among those that have matches: frames between keyframes do not count."""
    rank: Tensor = (tied_frames(matches, frames).cumsum(0) - 1).clamp(min=0)
    return rank


def measured_errors(
    matches: PairMatches, geometry: PairGeometry, size: tuple[int, int], config: TrustConfig
) -> ErrorModel:
    """How large the errors of depth and matches are, from what the solution leaves of them.

    Depth is compared in pairs so far apart in time that its errors are not alike, matches in the quarter
    of the pairs that agree best: there depth has little say.
    """
    pixels, points = row_errors(matches, geometry)
    pair = matches.pair_of_row
    last = int(torch.maximum(matches.observation_i, matches.observation_j).max())
    rank = matched_rank(matches, last + 1)
    apart = (rank[matches.observation_j] - rank[matches.observation_i]).abs() > config.alike_frames
    known = points.isfinite()
    far = known & apart[pair]
    used = far if bool(far.any()) else known
    depth = float(points[used].median()) / (_MEDIAN_OF_NORMAL * 2**0.5) if bool(used.any()) else 0.0
    finest = float(np.quantile([np.median(r) for r in np.split(pixels, matches.start[1:-1]) if len(r)], 0.25))
    pixel = min(finest / _MEDIAN_OF_RAYLEIGH, config.pixel_tolerance * max(size))
    return ErrorModel(depth, pixel, config.alike_width * size[0], config.cell, config.draws)


def _without_gauge(
    cameras: SE3,
    shift: Float[Tensor, "d F 3"],
    turn: Float[Tensor, "d F 3"],
    tied: Bool[Tensor, "F"],
    lever: float,
) -> tuple[Float[Tensor, "d F 3"], Float[Tensor, "d F 3"]]:
    """What a small similarity of the whole, fitted to the tied centres as scores do, does not explain.

    Centres on a line or in one place leave a turn open: rotations, worth a short lever, settle it.
    """
    centre = cameras.centre
    arm = centre - centre[tied].mean(0)
    eye = torch.eye(3, dtype=torch.float64).expand(len(arm), 3, 3)
    design = torch.cat([eye, -hat(arm), arm[..., None]], -1).reshape(-1, 7)
    turning = torch.cat([0 * eye, -lever * eye, torch.zeros(len(arm), 3, 1, dtype=torch.float64)], -1)
    both = torch.cat([shift.flatten(1), lever * turn.flatten(1)], -1).mT
    rows = tied.repeat_interleave(3).repeat(2)
    every = torch.cat([design, turning.reshape(-1, 7)])
    gauge = torch.linalg.lstsq(every[rows], both[rows], driver="gelsd").solution
    moved = (design @ gauge).mT.reshape(shift.shape)
    # A left increment of cam_from_world turns the world by minus itself.
    return shift - moved, turn + gauge[3:6].mT[:, None, :]

"""What the optimiser sees of two observations: matches, and the similarity from one camera to the other.

Stage 2 and Stage 3 are one problem in these terms. With Z = cam_j_from_cam_i (a Sim3 in Stage 2, rigid in
Stage 3) a match gives up to three residuals: pixel i carried into j, pixel j carried into i, and the distance
of the two lifted points relative to their depth. Local parameters of a pair, in this order:

    0:3 upsilon, 3:6 omega, 6 sigma   left increment of Z
    7 a_i, 8 b_i, 9 a_j, 10 b_j       affine depth (Eq. affine_depth)
    11:13 fx_i fy_i, 13:15 fx_j fy_j  focal lengths

so that Stage 2 needs the first 7 of them, Stage 3 the first 11 or, uncalibrated, all 15.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.kernel import Kernel
from geoweaver.datatypes import Correspondences
from geoweaver.errors import ConfigError
from geoweaver.geometry import Sim3

_ROW_COLUMNS = ("pixel_i", "pixel_j", "depth_i", "depth_j", "weight")


@dataclass(frozen=True)
class PairMatches:
    """Correspondences grouped by pair of observations: pair p owns the rows start[p] to start[p + 1].

    Pixels, depths and weights may be on any device: they are large. What is kept per pair stays on the CPU.
    """

    start: Int[Tensor, "P1"]
    observation_i: Int[Tensor, "P"]
    observation_j: Int[Tensor, "P"]
    edge: Int[Tensor, "P"]
    pixel_i: Float[Tensor, "M 2"]
    pixel_j: Float[Tensor, "M 2"]
    depth_i: Float[Tensor, "M"]
    depth_j: Float[Tensor, "M"]
    weight: Float[Tensor, "M"]

    def __len__(self) -> int:
        return len(self.edge)

    @property
    def rows(self) -> int:
        return len(self.weight)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.weight.device

    def to(self, device: torch.device | str) -> "PairMatches":
        """The same with its rows on another device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in _ROW_COLUMNS})

    @property
    def pair_of_row(self) -> Int[Tensor, "M"]:
        return torch.repeat_interleave(torch.arange(len(self)), self.start.diff()).to(self.device)

    def pairs_of(self, rows: slice) -> Int[Tensor, "m"]:
        """The pairs of a block of rows."""
        numbers = torch.arange(*rows.indices(self.rows))
        return (torch.searchsorted(self.start, numbers, right=True) - 1).to(self.device)

    def of_rows(
        self, rows: Int[Tensor, "m"], start: Tensor, heads: tuple[Tensor, Tensor, Tensor]
    ) -> "PairMatches":
        """Some rows, grouped anew."""
        rows = rows.to(self.device)
        return PairMatches(start, *heads, *(getattr(self, name)[rows] for name in _ROW_COLUMNS))


@dataclass(frozen=True)
class PairGeometry:
    """The current estimate as each pair sees it."""

    z: Sim3
    """cam_j_from_cam_i (P)."""
    intrinsics_i: Float[Tensor, "P 4"]
    intrinsics_j: Float[Tensor, "P 4"]
    affine: Float[Tensor, "P 4"]
    """a_i, b_i, a_j, b_j: corrected depth = a d + b."""
    target_scale: Float[Tensor, "P"] | None = None
    """World units per unit of j's depth; only the paper's literal 3D residual asks for it."""

    def to(self, device: torch.device) -> "PairGeometry":
        """The estimate where the matches are: only they are large, everything else stays on the CPU."""
        scale = None if self.target_scale is None else self.target_scale.to(device)
        cameras = (self.intrinsics_i.to(device), self.intrinsics_j.to(device), self.affine.to(device))
        return PairGeometry(self.z.to(device), *cameras, scale)


@dataclass(frozen=True)
class Objective:
    """Eq. final_objective without its regulariser."""

    pixels: Kernel
    points: Kernel
    points_weight: float
    """lambda_3D."""
    both_directions: bool = True
    """Carry matches both ways; the paper's text carries them from i to j only."""
    relative: bool = True
    """3D distance over the geometric mean of the two depths; False is the paper's distance in world units."""


def require_jacobian(solver: str, residual: str, stage: str) -> None:
    """Keep lm away from the literal 3D residual: a strong solver shrinks the scene (docs/decisions/0003)."""
    if solver == "lm" and residual == "world":
        raise ConfigError(
            f"{stage}: residual=world rewards shrinking the scene, which lm would find: "
            "choose solver=adam (--preset paper) or residual=relative"
        )


@dataclass(frozen=True)
class Normalisation:
    """What each pair's summed loss is multiplied with, so that their sum is Eq. cdf_loss."""

    pixels: Float[Tensor, "P"]
    points: Float[Tensor, "P"]


def group_pairs(table: Correspondences) -> PairMatches:
    """Group a table's rows by pair of observations, keeping their order within a pair."""
    edge, i, j = table.edge, table.observation_i, table.observation_j
    order = torch.arange(len(table))
    for key in (j, i, edge):
        order = order[torch.sort(key[order], stable=True).indices]
    table = table[order]
    keys = torch.stack([table.edge, table.observation_i, table.observation_j], 1)
    unique, count = torch.unique_consecutive(keys, dim=0, return_counts=True)
    start = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)])
    columns = (table.pixel_i, table.pixel_j, table.depth_i, table.depth_j, table.weight)
    floats = [torch.nan_to_num(c.float(), nan=0.0, posinf=0.0, neginf=0.0).contiguous() for c in columns]
    return PairMatches(start, unique[:, 1], unique[:, 2], unique[:, 0], *floats)


def select_pairs(matches: PairMatches, keep: Tensor) -> PairMatches:
    """Only the pairs marked in `keep` (boolean) or listed in it (indices)."""
    chosen = keep.nonzero().squeeze(1) if keep.dtype == torch.bool else keep
    count = matches.start.diff()[chosen]
    start = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)])
    within = torch.arange(int(start[-1])) - torch.repeat_interleave(start[:-1], count)
    rows = torch.repeat_interleave(matches.start[:-1][chosen], count) + within
    heads = (matches.observation_i[chosen], matches.observation_j[chosen], matches.edge[chosen])
    return matches.of_rows(rows, start, heads)


def tied_frames(matches: PairMatches, frames: int) -> Bool[Tensor, "F"]:
    """Frames that have matches; the others stay where they are, and say nothing about errors."""
    tied = torch.zeros(frames, dtype=torch.bool)
    tied[matches.observation_i] = tied[matches.observation_j] = True
    return tied


def thin_pairs(matches: PairMatches, per_pair: int) -> PairMatches:
    """At most `per_pair` rows of each pair, evenly strided: the cheap table of the first iterations.

    Rows come in sampling order, the surest first: a prefix would count weights twice (docs/decisions/0002).
    """
    count = matches.start.diff()
    kept = count.clamp(max=per_pair)
    start = torch.cat([torch.zeros(1, dtype=torch.long), kept.cumsum(0)])
    within = torch.arange(int(start[-1])) - torch.repeat_interleave(start[:-1], kept)
    stride = torch.repeat_interleave(count.double() / kept.clamp(min=1).double(), kept)
    rows = torch.repeat_interleave(matches.start[:-1], kept) + (within * stride).long()
    return matches.of_rows(rows, start, (matches.observation_i, matches.observation_j, matches.edge))


def validity_weights(matches: PairMatches, objective: Objective) -> tuple[Tensor, Tensor]:
    """Per pair: summed weights w_m v_m of its 2D and 3D residuals (the denominator of Eq. weighted_cdf)."""
    has_i, has_j = matches.depth_i > 0, matches.depth_j > 0
    votes = has_i.double() + (has_j.double() if objective.both_directions else 0)
    weight = matches.weight.double()
    pair, zero = matches.pair_of_row, torch.zeros(len(matches), dtype=torch.float64, device=matches.device)
    pixels = zero.index_add(0, pair, weight * votes)
    points = zero.index_add(0, pair, weight * (has_i & has_j))
    return pixels.cpu(), points.cpu()


def global_normalisation(matches: PairMatches, objective: Objective) -> Normalisation:
    """Every match votes by its weight: the fine phase and Stage 2."""
    pixels, points = validity_weights(matches, objective)
    ones = torch.ones(len(matches), dtype=torch.float64)
    return Normalisation(
        ones / (pixels.sum() + 1e-12), objective.points_weight * ones / (points.sum() + 1e-12)
    )


def view_centred_normalisation(
    matches: PairMatches, objective: Objective, frame_i: Tensor, frame_j: Tensor
) -> Normalisation:
    """Every frame votes equally, however many matches touch it: a match counts in both its frames."""

    def per_pair(weights: Tensor) -> Tensor:
        frames = int(torch.maximum(frame_i, frame_j).max()) + 1
        touching = torch.zeros(frames, dtype=torch.float64)
        touching = touching.index_add(0, frame_i, weights).index_add(0, frame_j, weights)
        share = torch.where(touching > 0, 1 / touching.clamp(min=1e-300), 0.0) / (touching > 0).sum().clamp(
            min=1
        )
        # A frame's CDF is normalised by what touches it; summed over frames a match counts once per end.
        return share[frame_i] + share[frame_j]

    pixels, points = validity_weights(matches, objective)
    return Normalisation(per_pair(pixels), objective.points_weight * per_pair(points))

"""Do matches agree with the predicted depth? Judged by the pair's own geometry, not by a drifting layout."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Correspondences, Observations
from geoweaver.geometry import Sim3
from geoweaver.geometry.camera import lift, project_with_depth
from geoweaver.matching.pair_fit import fit_similarity, refine_similarity
from geoweaver.matching.pairs import TIE
from geoweaver.matching.sampling_config import SamplingConfig

_FEWEST_FITTED = 4
"""Two-sided rows under which a similarity explains anything."""
_FINEST_RESIDUAL = 0.01
"""Share of half the diagonal (3 pixels in 512) within which no row stands out: what matchers are good to."""


@dataclass(frozen=True)
class PairErrors:
    """Relative errors of a pair's rows: over the depth, and over half the image diagonal."""

    depth: Float[Tensor, "n"]
    """|d_projected - d_j| / d_j; 0 where only one side has a depth, infinite behind the camera."""
    lateral: Float[Tensor, "n"]
    """Distance of the projection from its match."""
    one_sided: Bool[Tensor, "n"]
    """Rows with depth on one side only: projected from that side and judged by where they land."""
    chance: Float[Tensor, "c"]
    """The larger error of two-sided rows had their targets been exchanged: how wrong matches look."""
    residual: Float[Tensor, "n"]
    """The lateral error that is left under the similarity which fits the rows best."""
    fitted: bool
    """True where that similarity is what all errors refer to, and so suits the rows a little."""

    def worst(self) -> Float[Tensor, "n"]:
        """The error that a threshold is held against; a row with one depth has only its lateral error."""
        return torch.maximum(self.depth, self.lateral)

    def selecting(self, config: SamplingConfig) -> Float[Tensor, "n"]:
        """The same for choosing rows: infinite for those that stand out from the pair's own residuals."""
        if not config.lateral:
            return torch.where(self.one_sided, self.worst(), self.depth)
        agree = self.worst() <= config.depth_consistency
        if not bool(agree.any()):
            return self.worst()
        limit = (config.spread * self.residual[agree].median()).clamp(min=_FINEST_RESIDUAL)
        return self.worst().masked_fill(self.residual > limit, torch.inf)


def pair_errors(
    rows: Correspondences,
    observations: Observations,
    rng: np.random.Generator,
    config: SamplingConfig,
    own_fit: bool = False,
) -> PairErrors:
    """Errors of a pair's rows by the prior's cameras (one chunk), the depth ratio (tie) or their own fit."""
    i, j = int(rows.observation_i[0]), int(rows.observation_j[0])
    both = ((rows.depth_i > 0) & (rows.depth_j > 0)).nonzero().squeeze(-1)
    if int(rows.edge[0]) == TIE:
        return _tie_errors(rows, both)
    views = _Views.of(observations, i, j)
    few = rows[both[: config.fit_rows]]
    if observations.chunk[i] == observations.chunk[j] and not own_fit:
        camera_i, camera_j = (observations.cam_from_chunk[n].to(torch.float64) for n in (i, j))
        given = Sim3.from_se3(camera_j @ camera_i.inverse())
        fitted = views.refine(given, few, config) if len(both) >= _FEWEST_FITTED else given
        return views.errors(rows, both, given, fitted)
    if len(both) < _FEWEST_FITTED:
        return _unknown_errors(rows, both)
    fitted = views.fit(few, rng, config)
    return views.errors(rows, both, fitted, fitted)


@dataclass(frozen=True)
class _Views:
    """What the two observations of a pair are seen with."""

    intrinsics_i: Float[Tensor, "4"]
    intrinsics_j: Float[Tensor, "4"]
    half_diagonal: float

    @classmethod
    def of(cls, observations: Observations, i: int, j: int) -> "_Views":
        half_diagonal = float(np.hypot(*observations.size)) / 2
        return cls(observations.intrinsics[i].double(), observations.intrinsics[j].double(), half_diagonal)

    def fit(self, rows: Correspondences, rng: np.random.Generator, config: SamplingConfig) -> Sim3:
        """cam_j_from_cam_i by the rows' own consensus."""
        triples = torch.from_numpy(_triples(rng, len(rows), config.hypotheses))
        return fit_similarity(*self._points(rows), rows.weight, triples, config.depth_consistency)

    def refine(self, start: Sim3, rows: Correspondences, config: SamplingConfig) -> Sim3:
        """cam_j_from_cam_i by the rows' consensus near a given one."""
        return refine_similarity(start, *self._points(rows), rows.weight, config.depth_consistency)

    def _points(self, rows: Correspondences) -> tuple[Tensor, Tensor]:
        """The rows in both cameras' coordinates."""
        points_i = lift(rows.pixel_i, rows.depth_i, self.intrinsics_i)
        return points_i, lift(rows.pixel_j, rows.depth_j, self.intrinsics_j)

    def errors(
        self, rows: Correspondences, both: Int[Tensor, "c"], cam_j_from_cam_i: Sim3, fitted: Sim3
    ) -> PairErrors:
        """What all rows look like under one similarity, and what the best one leaves of it."""
        depth, lateral, chance = self._landing(rows, both, cam_j_from_cam_i)
        residual = lateral if fitted is cam_j_from_cam_i else self._landing(rows, both, fitted)[1]
        return PairErrors(
            depth, lateral, _one_sided(rows, both), chance, residual, fitted is cam_j_from_cam_i
        )

    def _landing(
        self, rows: Correspondences, both: Int[Tensor, "c"], cam_j_from_cam_i: Sim3
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Where rows land in the other view and how deep, against what match and prior say."""
        moved = _move(cam_j_from_cam_i, lift(rows.pixel_i, rows.depth_i, self.intrinsics_i))
        pixel, z = project_with_depth(moved, self.intrinsics_j)
        depth, lateral = self._compare(pixel, z, rows.pixel_j, rows.depth_j)
        backwards = (rows.depth_i == 0).nonzero().squeeze(-1)
        if len(backwards):
            back = rows[backwards]
            moved = _move(cam_j_from_cam_i.inverse(), lift(back.pixel_j, back.depth_j, self.intrinsics_j))
            pixel_i, z_i = project_with_depth(moved, self.intrinsics_i)
            depth[backwards], lateral[backwards] = self._compare(pixel_i, z_i, back.pixel_i, back.depth_i)
        other = both.roll(len(both) // 2)
        chance = torch.maximum(*self._compare(pixel[both], z[both], rows.pixel_j[other], rows.depth_j[other]))
        return depth, lateral, chance

    def _compare(self, pixel: Tensor, z: Tensor, matched: Tensor, depth: Tensor) -> tuple[Tensor, Tensor]:
        """Depth and lateral error; where the prior has no depth only the lateral one says something."""
        relative = torch.where(depth > 0, (z - depth).abs() / depth.clamp(min=1e-300), 0)
        lateral = (pixel - matched).square().sum(-1).sqrt() / self.half_diagonal
        behind = ~(z > 0)
        return relative.masked_fill(behind, torch.inf), lateral.masked_fill(behind, torch.inf)


def _tie_errors(rows: Correspondences, both: Int[Tensor, "c"]) -> PairErrors:
    """One camera, one pose, identical pixels: only the scale between the two depths is unknown."""
    unknown = _unknown_errors(rows, both)
    depth = unknown.depth.clone()
    if len(both):
        ratio = rows.depth_i[both] / rows.depth_j[both]
        depth[both] = (ratio / ratio.median() - 1).abs()
    # nothing can be confused here: chance explains none of the agreement
    same = torch.zeros_like(depth)
    return PairErrors(depth, same, unknown.one_sided, unknown.chance, same, fitted=False)


def _unknown_errors(rows: Correspondences, both: Int[Tensor, "c"]) -> PairErrors:
    """Nothing to judge by: nothing agrees."""
    never = torch.full_like(rows.weight, torch.inf)
    return PairErrors(never, never, _one_sided(rows, both), never[both], never, fitted=True)


def _one_sided(rows: Correspondences, both: Int[Tensor, "c"]) -> Bool[Tensor, "n"]:
    one_sided = torch.ones(len(rows), dtype=torch.bool)
    one_sided[both] = False
    return one_sided


def _move(transform: Sim3, points: Float[Tensor, "n 3"]) -> Float[Tensor, "n 3"]:
    """One transform for all points, as one matrix product."""
    return points @ (transform.scale * transform.rotation).mT + transform.translation


def _triples(rng: np.random.Generator, rows: int, count: int) -> np.ndarray:
    """Three different row numbers each."""
    first = rng.integers(rows, size=count)
    second = (first + 1 + rng.integers(rows - 1, size=count)) % rows
    third = rng.integers(rows - 2, size=count)
    third = third + (third >= np.minimum(first, second))
    third = third + (third >= np.maximum(first, second))
    return np.stack([first, second, third], -1)

"""Do matches agree with the predicted depth? Judged by the pair's own geometry, not by a drifting layout."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.datatypes import Correspondences, Observations
from geoweaver.geometry import Sim3
from geoweaver.geometry.camera import lift, project_with_depth
from geoweaver.matching.pair_fit import fit_similarity
from geoweaver.matching.pairs import TIE
from geoweaver.matching.sampling_config import SamplingConfig


@dataclass(frozen=True)
class PairErrors:
    """Relative errors of a pair's rows: over the depth, and over half the image diagonal."""

    depth: Float[Tensor, "n"]
    """|d_projected - d_j| / d_j; 0 where only one side has a depth, infinite behind the camera."""
    lateral: Float[Tensor, "n"]
    """Distance of the projection from its match."""
    chance: Float[Tensor, "c"]
    """The larger of both errors for rows whose targets were exchanged: what wrong matches would look like."""


def pair_errors(
    rows: Correspondences, observations: Observations, rng: np.random.Generator, config: SamplingConfig
) -> PairErrors:
    """Errors of a pair's rows by the prior's cameras (one chunk), the depth ratio (tie) or their own fit."""
    pair = _Pair.of(rows, observations)
    both = ((rows.depth_i > 0) & (rows.depth_j > 0)).nonzero().squeeze(-1)
    if bool(rows.edge[0] == TIE):
        return _tie_errors(rows, both)
    if pair.same_chunk:
        cameras = observations.cam_from_chunk
        inside = cameras[int(rows.observation_j[0])] @ cameras[int(rows.observation_i[0])].inverse()
        return pair.errors(rows, both, Sim3.from_se3(inside))
    if len(both) < 4:
        unknown = torch.full_like(rows.weight, torch.inf)
        return PairErrors(unknown, unknown, unknown[both])
    return pair.errors(rows, both, pair.fit(rows[both[: config.fit_rows]], rng, config))


@dataclass(frozen=True)
class _Pair:
    """What both observations of a pair are seen with."""

    intrinsics_i: Float[Tensor, "4"]
    intrinsics_j: Float[Tensor, "4"]
    half_diagonal: float
    same_chunk: bool

    @classmethod
    def of(cls, rows: Correspondences, observations: Observations) -> "_Pair":
        i, j = int(rows.observation_i[0]), int(rows.observation_j[0])
        intrinsics = observations.intrinsics.double()
        half_diagonal = float(np.hypot(*observations.size)) / 2
        return cls(
            intrinsics[i], intrinsics[j], half_diagonal, bool(observations.chunk[i] == observations.chunk[j])
        )

    def fit(self, rows: Correspondences, rng: np.random.Generator, config: SamplingConfig) -> Sim3:
        """cam_j_from_cam_i by the rows' own consensus."""
        triples = torch.from_numpy(_triples(rng, len(rows), config.hypotheses))
        x = lift(rows.pixel_i, rows.depth_i, self.intrinsics_i)
        y = lift(rows.pixel_j, rows.depth_j, self.intrinsics_j)
        return fit_similarity(x, y, rows.weight, triples, config.depth_consistency)

    def errors(self, rows: Correspondences, both: Int[Tensor, "c"], cam_j_from_cam_i: Sim3) -> PairErrors:
        pixel, z = project_with_depth(
            cam_j_from_cam_i.act(lift(rows.pixel_i, rows.depth_i, self.intrinsics_i)), self.intrinsics_j
        )
        depth, lateral = self._compare(pixel, z, rows.pixel_j, rows.depth_j)
        backwards = rows.depth_i == 0
        if bool(backwards.any()):
            lifted = lift(rows.pixel_j, rows.depth_j, self.intrinsics_j)
            pixel_i, z_i = project_with_depth(cam_j_from_cam_i.inverse().act(lifted), self.intrinsics_i)
            depth_i, lateral_i = self._compare(pixel_i, z_i, rows.pixel_i, rows.depth_i)
            depth, lateral = (
                torch.where(backwards, depth_i, depth),
                torch.where(backwards, lateral_i, lateral),
            )
        exchanged = both.roll(len(both) // 2)
        chance = self._compare(pixel[both], z[both], rows.pixel_j[exchanged], rows.depth_j[exchanged])
        return PairErrors(depth, lateral, torch.maximum(*chance))

    def _compare(self, pixel: Tensor, z: Tensor, matched: Tensor, depth: Tensor) -> tuple[Tensor, Tensor]:
        """Depth and lateral error; a match without depth there is judged by where it lands alone."""
        relative = torch.where(depth > 0, (z - depth).abs() / depth.clamp(min=1e-300), 0)
        lateral = (pixel - matched).norm(dim=-1) / self.half_diagonal
        behind = ~(z > 0)
        return relative.masked_fill(behind, torch.inf), lateral.masked_fill(behind, torch.inf)


def _tie_errors(rows: Correspondences, both: Int[Tensor, "c"]) -> PairErrors:
    """One camera, one pose, identical pixels: only the scale between the two depths is unknown."""
    depth = torch.full_like(rows.weight, torch.inf)
    if len(both):
        scale = (rows.depth_j[both] / rows.depth_i[both]).median()
        depth[both] = (scale * rows.depth_i[both] - rows.depth_j[both]).abs() / rows.depth_j[both]
    # nothing can be confused here: chance explains none of the agreement
    return PairErrors(depth, torch.zeros_like(depth), torch.full_like(depth[both], torch.inf))


def _triples(rng: np.random.Generator, rows: int, count: int) -> np.ndarray:
    """Three different row numbers each."""
    first = rng.integers(rows, size=count)
    second = (first + 1 + rng.integers(rows - 1, size=count)) % rows
    third = rng.integers(rows - 2, size=count)
    third = third + (third >= np.minimum(first, second))
    third = third + (third >= np.maximum(first, second))
    return np.stack([first, second, third], -1)

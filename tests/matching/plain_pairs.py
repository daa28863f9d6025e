"""The sampling of one pair in plain tensor operations: what the compiled code is held to."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from plain_similarity import fit_similarity, refine_similarity
from torch import Tensor

from geoweaver.datatypes import ChunkPrior, Correspondences, Observations
from geoweaver.geometry import Sim3
from geoweaver.geometry.camera import lift, project_with_depth, sample_bilinear, sample_nearest
from geoweaver.matching import SamplingConfig
from geoweaver.matching.pairs import TIE
from geoweaver.matching.sampling import pair_rng, random_triples


def pair_rows(
    pair: tuple[int, int, int],
    matched: tuple[Tensor, Tensor, Tensor],
    observations: Observations,
    priors: tuple[ChunkPrior, ...],
    config: SamplingConfig,
    seed: int,
) -> tuple[Correspondences, np.random.Generator]:
    """A pair's confident rows in sampling order, and its random numbers after that."""
    pixel_i, pixel_j, score = (column.double() for column in matched)
    edge, i, j = pair
    rng = pair_rng(seed, edge, i, j)
    here, there = (_read(observations, priors, n, p, config) for n, p in ((i, pixel_i), (j, pixel_j)))
    weight = match_weight(score, here[2], there[2], here[1], there[1])
    same = torch.ones(len(score), dtype=torch.long)
    rows = Correspondences(edge * same, i * same, j * same, pixel_i, pixel_j, here[0], there[0], weight)
    order = gumbel_order(rows.weight, rng)
    return rows[order[confident(rows.weight[order], config)]], rng


def _read(
    observations: Observations,
    priors: tuple[ChunkPrior, ...],
    observation: int,
    pixel: Tensor,
    config: SamplingConfig,
) -> tuple[Tensor, Tensor, Tensor]:
    """Depth, where it is known, and normalised confidence."""
    prior = priors[int(observations.chunk[observation])]
    row = int((prior.frame == observations.frame[observation]).nonzero()[0])
    depth_map, confidence_map = prior.depth[row], prior.confidence[row]
    full = observations.size
    scale = torch.tensor([depth_map.shape[1] / full[0], depth_map.shape[0] / full[1]], dtype=torch.float64)
    depth, known = sample_bilinear(depth_map, pixel * scale, 0.2)
    confidence, _ = sample_nearest(confidence_map, pixel * scale)
    quantiles = confidence_quantiles(confidence_map, depth_map > 0)
    return (
        depth,
        known,
        normalised_confidence(confidence, quantiles, config.normalisation, config.gamma_ceiling),
    )


def confidence_quantiles(
    confidence: Float[Tensor, "H W"], known: Bool[Tensor, "H W"]
) -> Float[Tensor, "steps"]:
    """The frame's own confidence distribution where the prior knows a depth: all that normalising needs."""
    values = confidence[known & confidence.isfinite() & (confidence > 0)].double()
    if not len(values):
        return torch.ones(256 + 1, dtype=torch.float64)
    values = values[:: -(-len(values) // 8192)].sort().values
    place = torch.linspace(0, len(values) - 1, 256 + 1, dtype=torch.float64)
    below = place.floor().long()
    above = (below + 1).clamp(max=len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def normalised_confidence(
    confidence: Float[Tensor, "n"],
    quantiles: Float[Tensor, "steps"],
    how: str = "median",
    ceiling: float = 4.0,
) -> Float[Tensor, "n"]:
    """gamma: 1 for the frame's typical pixel whatever the model's scale, 0 where there is no confidence."""
    confidence = torch.nan_to_num(confidence.double(), nan=0.0, posinf=torch.inf, neginf=0.0)
    if how == "median":
        gamma = (confidence / quantiles[len(quantiles) // 2]).clamp(0, ceiling)
    else:
        # the middle of the tied entries, so that a constant confidence is typical everywhere
        first = torch.searchsorted(quantiles, confidence.contiguous())
        last = torch.searchsorted(quantiles, confidence.contiguous(), right=True)
        gamma = (first + last).double() / len(quantiles)
    return torch.where(confidence > 0, gamma, 0)


def match_weight(
    score: Float[Tensor, "n"],
    gamma_i: Float[Tensor, "n"],
    gamma_j: Float[Tensor, "n"],
    known_i: Bool[Tensor, "n"],
    known_j: Bool[Tensor, "n"],
) -> Float[Tensor, "n"]:
    """w_m = s_m sqrt(gamma_i gamma_j), where a side without depth has no say."""
    both = known_i & known_j
    one = torch.where(known_i, gamma_i, gamma_j)
    gamma = torch.where(both, (gamma_i * gamma_j).sqrt(), one)
    score = torch.nan_to_num(score.double(), nan=0.0, posinf=0.0, neginf=0.0).clamp(min=0)
    return torch.where(known_i | known_j, score * gamma, 0)


def match_probability(weight: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """p(m | i, j) = w_m / sum w of one pair's matches; zeros where nothing has weight."""
    total = weight.sum()
    return weight / total if total > 0 else torch.zeros_like(weight)


def gumbel_order(weight: Float[Tensor, "n"], rng: np.random.Generator) -> Int[Tensor, "k"]:
    """An order whose first k rows are a weighted sample without replacement, for every k."""
    uniform = torch.from_numpy(rng.random(len(weight)))
    gumbel = -(-uniform.clamp(min=1e-300).log()).log()
    key = match_probability(weight.double()).log() + gumbel
    order = key.argsort(descending=True, stable=True)
    return order[weight[order] > 0]


def confident(weight: Float[Tensor, "n"], config: SamplingConfig) -> Bool[Tensor, "n"]:
    """Rows whose weight is at least a share of the pair's typical one."""
    usable = weight[weight > 0]
    if not len(usable):
        return torch.zeros_like(weight, dtype=torch.bool)
    typical = usable.median() if config.relative_to == "median" else usable.max()
    return (weight > 0) & (weight >= config.confidence * typical)


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
        limit = (config.spread * self.residual[agree].median()).clamp(min=0.01)
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
        fitted = views.refine(given, few, config) if len(both) >= 4 else given
        return views.errors(rows, both, given, fitted)
    if len(both) < 4:
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
        triples = torch.from_numpy(random_triples(rng, len(rows), config.hypotheses))
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

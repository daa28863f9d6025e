"""Similarities between point sets: weighted Umeyama, a robust fit, and the scale between two depth maps.

No threshold here has a unit: the spread of the residuals themselves says what an inlier is.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.geometry.lie import Sim3

_MEDIAN_CHI3 = 1.5382
"""Median length of a 3D vector of unit normals: turns a median residual into a sigma per axis."""
_CUTOFF = 4.5
"""Residuals beyond this many sigmas per axis have no weight (one in 10,000 normal ones)."""
_MAX_SCORED = 512
"""Points that hypotheses are scored on; all of them take part in the refinement."""


@dataclass(frozen=True)
class RobustFit:
    """A similarity with target = S source for the inliers."""

    transform: Sim3
    inlier: Bool[Tensor, "n"]
    scale_of_residuals: float
    """One sigma per axis, in target units (in multiples of `noise` where that was given)."""
    inlier_ratio: float
    """The inliers' share of the weight."""
    log_false_alarms: float
    """Log of how many fits as good chance would give, were the rows independent: above 0 = no consensus."""
    iterations: int


@dataclass(frozen=True)
class RobustScale:
    """A factor with its uncertainty."""

    scale: float
    spread: float
    """Robust sigma of the log ratios (dimensionless)."""
    count: int
    """How many ratios were usable."""


def umeyama(
    source: Float[Tensor, "*b n 3"],
    target: Float[Tensor, "*b n 3"],
    weight: Float[Tensor, "*b n"] | None = None,
    with_scale: bool = True,
) -> Sim3:
    """The similarity that minimises the weighted sum of |S source - target|^2 (Umeyama 1991, eqs. 40-42)."""
    weight = torch.ones_like(source[..., 0]) if weight is None else weight
    _require_points(source, target, weight)
    fit, condition = _fit(source, target, weight, with_scale)
    thin = _is_thin(source, weight) | _is_thin(target, weight)
    if bool((thin | ~(condition > 16 * torch.finfo(source.dtype).eps)).any()):
        raise DegenerateError(
            "the points lie on one line or in one place: no rotation can be told from them; "
            "give points that span a plane"
        )
    return fit


def robust_sim3(
    source: Float[Tensor, "n 3"],
    target: Float[Tensor, "n 3"],
    weight: Float[Tensor, "n"] | None,
    generator: torch.Generator,
    noise: Float[Tensor, "n"] | None = None,
    with_scale: bool = True,
    samples: int = 256,
    max_iterations: int = 30,
) -> RobustFit:
    """The similarity that the rows agree on, up to about 60 % outliers.

    `noise` is each target's sigma up to a common factor, its depth for instance: residuals are divided by it.
    """
    weight = torch.ones_like(source[:, 0]) if weight is None else weight
    noise = torch.ones_like(weight) if noise is None else noise
    good = source.isfinite().all(-1) & target.isfinite().all(-1) & (weight > 0) & (noise > 0)
    good &= weight.isfinite() & noise.isfinite()
    rows = good.nonzero().squeeze(-1)
    problem = _Problem(source[rows], target[rows], weight[rows], noise[rows], with_scale)
    _require_points(problem.source, problem.target, problem.weight)
    start, sigma = _ransac(problem, generator, samples)
    transform, sigma, iterations = _irls(problem, start, sigma, max_iterations)
    residual = problem.residual(transform)
    inside = residual <= _CUTOFF * sigma
    umeyama(problem.source[inside], problem.target[inside], problem.weight[inside], with_scale)
    inlier = torch.zeros_like(good)
    inlier[rows[inside]] = True
    share = float(problem.weight[inside].sum() / problem.weight.sum())
    alarms, _ = _consensus(problem, residual)
    return RobustFit(transform, inlier, float(sigma), share, float(alarms), iterations)


def robust_scale(
    numerator: Float[Tensor, "*b"],
    denominator: Float[Tensor, "*b"],
    weight: Float[Tensor, "*b"] | None = None,
) -> RobustScale:
    """Weighted median of log(numerator / denominator) over the positive pairs, with its spread."""
    weight = torch.ones_like(numerator) if weight is None else weight
    usable = (numerator > 0) & (denominator > 0) & (weight > 0)
    usable &= numerator.isfinite() & denominator.isfinite() & weight.isfinite()
    if not bool(usable.any()):
        raise DegenerateError(
            "no pair of positive depths with positive weight: the scale between them is unknown"
        )
    ratio = numerator[usable].log() - denominator[usable].log()
    centre = weighted_quantile(ratio, weight[usable], 0.5)
    spread = 1.4826 * weighted_quantile((ratio - centre).abs(), weight[usable], 0.5)
    return RobustScale(float(centre.exp()), float(spread), int(usable.sum()))


def weighted_quantile(
    values: Float[Tensor, "*b n"], weight: Float[Tensor, "n"], fraction: float
) -> Float[Tensor, "*b"]:
    """The value below which this fraction of the weight lies; the mean of two where it falls between them."""
    ordered, order = values.sort(dim=-1)
    mass = weight[order].cumsum(-1)
    level = fraction * mass[..., -1:]
    slack = 8 * torch.finfo(mass.dtype).eps  # sums of equal weights must meet their half exactly
    below, above = (
        torch.searchsorted(mass, level * factor).clamp(max=values.shape[-1] - 1)
        for factor in (1 - slack, 1 + slack)
    )
    return ((ordered.gather(-1, below) + ordered.gather(-1, above)) / 2).squeeze(-1)


@dataclass(frozen=True)
class _Problem:
    """Clean rows of a robust fit."""

    source: Float[Tensor, "n 3"]
    target: Float[Tensor, "n 3"]
    weight: Float[Tensor, "n"]
    noise: Float[Tensor, "n"]
    with_scale: bool

    def fit(self, trust: Float[Tensor, "*h n"]) -> Sim3:
        """Least squares with each row's weight, noise and trust; batched over hypotheses."""
        weight = trust * self.weight / self.noise.square()
        return _fit(self.source, self.target, weight, self.with_scale)[0]

    def move(self, transform: Sim3) -> Float[Tensor, "*h n 3"]:
        rotated = self.source @ transform.rotation.mT
        return transform.scale[..., None, None] * rotated + transform.translation[..., None, :]

    def residual(self, transform: Sim3) -> Float[Tensor, "*h n"]:
        """Distances in multiples of the noise; a broken hypothesis is infinitely far."""
        return torch.nan_to_num(self.distance(self.move(transform), self.target), nan=torch.inf)

    def distance(self, a: Float[Tensor, "*h n 3"], b: Float[Tensor, "n 3"]) -> Float[Tensor, "*h n"]:
        length: Tensor = (a - b).norm(dim=-1)
        return length / self.noise

    @cached_property
    def extent(self) -> Tensor:
        """Typical distance of a target from their middle: what a residual is when nothing fits."""
        middle = weighted_quantile(self.target.mT, self.weight, 0.5)
        return weighted_quantile((self.target - middle).norm(dim=-1) / self.noise, self.weight, 0.5)

    @cached_property
    def rounding(self) -> Tensor:
        """Residual that floating point alone leaves on exact data."""
        eps = torch.finfo(self.target.dtype).eps
        return 64 * eps * (self.target.abs().amax() / self.noise).median()

    def __getitem__(self, rows: Tensor) -> "_Problem":
        return _Problem(
            self.source[rows], self.target[rows], self.weight[rows], self.noise[rows], self.with_scale
        )


def _ransac(problem: _Problem, generator: torch.Generator, samples: int) -> tuple[Sim3, Tensor]:
    """The best of many three-point fits, the leaders refitted to their consensus, and its sigma per axis."""
    count = len(problem.weight)
    if count > _MAX_SCORED:
        problem = problem[torch.randperm(count, generator=generator)[:_MAX_SCORED]]
    chance = problem.weight / problem.weight.sum()
    triple = torch.multinomial(chance.expand(samples, -1), 3, generator=generator)
    equal = torch.ones(triple.shape, dtype=chance.dtype)
    hypotheses, _ = _fit(problem.source[triple], problem.target[triple], equal, problem.with_scale)
    for keep in (16, 8, 4):
        residual = problem.residual(hypotheses)
        score, reach = _consensus(problem, residual)
        leaders = score.argsort(stable=True)[:keep]
        hypotheses = problem.fit((residual <= reach[:, None])[leaders].to(chance.dtype))
    residual = problem.residual(hypotheses)
    score, reach = _consensus(problem, residual)
    best = score.argmin()
    inside = residual[best] <= reach[best]
    return hypotheses[best], _sigma(problem, residual[best], inside)


def _consensus(
    problem: _Problem, residual: Float[Tensor, "*h n"]
) -> tuple[Float[Tensor, "*h"], Float[Tensor, "*h"]]:
    """How unlikely by chance (log) the least likely k smallest residuals are, and the largest of those k.

    The a-contrario score needs no inlier threshold: many small residuals are unlikely at any scale.
    """
    ordered, order = residual.sort(dim=-1)
    n = torch.tensor(float(residual.shape[-1]), dtype=residual.dtype)
    k = n * (problem.weight / problem.weight.sum())[order].cumsum(-1)
    near = (ordered.clamp(min=problem.rounding) / problem.extent).clamp(max=1).log()
    log_alarms = n.log() + _log_choose(n, k) + _log_choose(k, torch.tensor(3.0)) + 3 * (k - 3) * near
    # three rows always agree with the fit made from them: only what agrees beyond them counts
    log_alarms = torch.where(k > 3 + 1e-6, log_alarms, torch.inf)
    score, best = log_alarms.min(-1)
    reach = torch.where(score.isfinite(), ordered.gather(-1, best[..., None]).squeeze(-1), ordered[..., -1])
    return score, reach


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    """Log of the binomial coefficient, continued to real numbers."""
    rest = (n - k).clamp(min=0)
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(rest + 1)


def _irls(problem: _Problem, transform: Sim3, sigma: Tensor, max_iterations: int) -> tuple[Sim3, Tensor, int]:
    """Tukey's biweight, sigma from the median residual, until nothing moves by a millionth of sigma."""
    moved = problem.move(transform)
    for iteration in range(1, max_iterations + 1):
        residual = problem.distance(moved, problem.target)
        sigma = _sigma(problem, residual, residual <= _CUTOFF * sigma)
        trust = (1 - (residual / (_CUTOFF * sigma)).square()).clamp(min=0).square()
        transform, before = problem.fit(trust), moved
        moved = problem.move(transform)
        if bool((problem.distance(moved, before)[trust > 0] <= 1e-6 * sigma).all()):
            return transform, sigma, iteration
    return transform, sigma, max_iterations


def _sigma(problem: _Problem, residual: Float[Tensor, "n"], inside: Bool[Tensor, "n"]) -> Tensor:
    """Sigma per axis of the residuals inside, not below what rounding leaves."""
    if not bool(inside.any()):
        raise DegenerateError("no two points agree on a similarity: the point sets do not correspond")
    median = weighted_quantile(residual[inside], problem.weight[inside], 0.5)
    rows = 3.0 * int(inside.sum())
    # a fit of seven parameters leaves smaller residuals than the noise: matters for a handful of rows
    freedom = (rows / max(rows - 7.0, 2.0)) ** 0.5
    return torch.maximum(freedom * median / _MEDIAN_CHI3, problem.rounding)


def _fit(
    source: Float[Tensor, "*s n 3"],
    target: Float[Tensor, "*s n 3"],
    weight: Float[Tensor, "*c n"],
    with_scale: bool,
) -> tuple[Sim3, Float[Tensor, "*c"]]:
    """Umeyama without checks, and the ratio of the second to the first singular value (0: no rotation)."""
    share = (weight / weight.sum(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny))[..., None]
    source_mean, target_mean = (share * source).sum(-2), (share * target).sum(-2)
    x, y = source - source_mean[..., None, :], target - target_mean[..., None, :]
    u, singular, vt = torch.linalg.svd((share * y).mT @ x)
    sign = torch.ones_like(singular)
    sign[..., 2] = torch.sign(torch.linalg.det(u) * torch.linalg.det(vt))
    rotation = u @ (sign[..., None] * vt)
    variance = (share * x.square()).sum((-2, -1))
    scale = (singular * sign).sum(-1) / variance if with_scale else torch.ones_like(variance)
    moved = scale[..., None] * (rotation @ source_mean[..., None]).squeeze(-1)
    return Sim3(scale, rotation, target_mean - moved), singular[..., 1] / singular[..., 0]


def _is_thin(points: Float[Tensor, "*b n 3"], weight: Float[Tensor, "*b n"]) -> Bool[Tensor, "*b"]:
    """True where the points span no plane beyond the rounding of their coordinates."""
    share = (weight / weight.sum(-1, keepdim=True))[..., None]
    centred = points - (share * points).sum(-2, keepdim=True)
    spread: Tensor = torch.linalg.svdvals(share.sqrt() * centred)
    return ~(spread[..., 1] > 16 * torch.finfo(points.dtype).eps * points.abs().amax((-2, -1)))


def _require_points(
    source: Float[Tensor, "*b n 3"], target: Float[Tensor, "*b n 3"], weight: Float[Tensor, "*b n"]
) -> None:
    if not all(bool(t.isfinite().all()) for t in (source, target, weight)):
        raise DegenerateError("points or weights to register are not finite: drop those rows first")
    if bool((weight < 0).any()):
        raise DegenerateError("a weight is negative: give weights of at least 0")
    usable = (weight > 0).sum(-1)
    if weight.shape[-1] < 3 or bool((usable < 3).any()):
        fewest = int(usable.min()) if weight.shape[-1] else 0
        raise DegenerateError(f"a similarity needs at least 3 points with positive weight, not {fewest}")

"""The similarity that fits a pair's rows, in plain tensor operations: what the compiled code is held to."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.geometry import Sim3


def fit_similarity(
    source: Float[Tensor, "n 3"],
    target: Float[Tensor, "n 3"],
    weight: Float[Tensor, "n"],
    triples: Int[Tensor, "h 3"],
    reach: float,
) -> Sim3:
    """The best of many three-point fits, then re-weighted; relative errors beyond `reach` are out."""
    small = source[triples], target[triples], torch.ones_like(source[triples][..., 0])
    hypotheses = plain_umeyama(*small)
    few = slice(256)
    apart = relative_distance(hypotheses, source[few], target[few]) / reach
    best = int((apart.square().clamp(max=1) @ weight[few]).argmin())
    return refine_similarity(hypotheses[best], source, target, weight, reach)


def relative_distance(
    target_from_source: Sim3, source: Float[Tensor, "n 3"], target: Float[Tensor, "n 3"]
) -> Float[Tensor, "*h n"]:
    """|S x - y| over the smaller of the two depths in target units; huge for a collapsed similarity."""
    scale = target_from_source.scale[..., None]
    # one matrix product for all rows: `act` would do one per row
    moved = source @ (scale[..., None] * target_from_source.rotation).mT
    apart = (moved + target_from_source.translation[..., None, :] - target).square().sum(-1).sqrt()
    nearer = torch.minimum(scale * source[:, 2], target[:, 2])
    return torch.nan_to_num(apart / nearer.clamp(min=1e-300), nan=torch.inf)


def refine_similarity(
    start: Sim3,
    source: Float[Tensor, "n 3"],
    target: Float[Tensor, "n 3"],
    weight: Float[Tensor, "n"],
    reach: float,
) -> Sim3:
    """Re-weighted least squares (Geman-McClure) with a spread that follows the residuals down."""
    best, sigma, unit = start, float("inf"), target[:, 2].median()
    for _ in range(8):
        error = relative_distance(best, source, target)
        inside = error <= reach
        if int(inside.sum()) < 4:
            break
        spread = max(1.5 * float(error[inside].median()), 1e-3 * reach)
        if spread > 0.98 * sigma:
            break
        sigma = spread
        trust = inside / (1 + (error / sigma).square()).square()
        best = plain_umeyama(source, target, weight * trust * (unit / target[:, 2]).square())
    return best


def plain_umeyama(
    source: Float[Tensor, "*h n 3"], target: Float[Tensor, "*h n 3"], weight: Float[Tensor, "*h n"]
) -> Sim3:
    """Weighted closed form; points on a line give some similarity, which the score then judges."""
    share = (weight / weight.sum(-1, keepdim=True).clamp(min=1e-300))[..., None]
    mean_source, mean_target = (share * source).sum(-2), (share * target).sum(-2)
    a, b = source - mean_source[..., None, :], target - mean_target[..., None, :]
    u, singular, vt = torch.linalg.svd((share * b).mT @ a)
    sign = torch.ones_like(singular)
    sign[..., 2] = torch.sign(torch.linalg.det(u) * torch.linalg.det(vt))
    rotation = u @ (sign[..., None] * vt)
    variance = (share * a.square()).sum((-2, -1)).clamp(min=1e-300)
    scale = ((singular * sign).sum(-1) / variance).clamp(min=1e-300)
    moved = scale[..., None] * (rotation @ mean_source[..., None]).squeeze(-1)
    return Sim3(scale, rotation, mean_target - moved)

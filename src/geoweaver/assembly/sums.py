"""Pair sums by what suits the tensors: fused on the CPU, torch elsewhere and for the literal residual."""

import torch

from geoweaver.assembly import fused, residuals
from geoweaver.assembly.pairs import Normalisation, Objective, PairGeometry, PairMatches
from geoweaver.assembly.residuals import PairSums


def pair_sums(
    matches: PairMatches,
    geometry: PairGeometry,
    objective: Objective,
    norm: Normalisation,
    parameters: int,
    curvature: bool = True,
) -> PairSums:
    """Loss of every pair; in its first `parameters` local parameters also gradient and, if asked, normal."""
    if matches.weight.device.type == "cpu" and objective.relative:
        return fused.accumulate(matches, geometry, objective, norm, parameters, curvature)
    sums = residuals.accumulate(matches, _beside(matches, geometry), objective, norm, parameters)
    gradient, normal = (None if t is None else t.cpu() for t in (sums.gradient, sums.normal))
    return PairSums(sums.pixels.cpu(), sums.points.cpu(), gradient, normal)


def _beside(matches: PairMatches, geometry: PairGeometry) -> PairGeometry:
    """The estimate where the matches are: only they are large, everything else stays on the CPU."""
    device = matches.weight.device
    scale = None if geometry.target_scale is None else geometry.target_scale.to(device)
    return PairGeometry(
        geometry.z.to(device),
        geometry.intrinsics_i.to(device),
        geometry.intrinsics_j.to(device),
        geometry.affine.to(device),
        scale,
    )


def residual_median(matches: PairMatches, geometry: PairGeometry, objective: Objective) -> float:
    """Median reprojection error in pixels, over evenly spread matches."""
    way = fused.pixel_errors if matches.weight.device.type == "cpu" else residuals.pixel_errors
    errors = way(matches, _beside(matches, geometry), objective)
    return float(torch.median(errors)) if len(errors) else float("nan")

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
    if matches.device.type == "cpu" and objective.relative:
        return fused.accumulate(matches, geometry, objective, norm, parameters, curvature)
    sums = residuals.accumulate(matches, geometry.to(matches.device), objective, norm, parameters)
    gradient, normal = (None if t is None else t.cpu() for t in (sums.gradient, sums.normal))
    return PairSums(sums.pixels.cpu(), sums.points.cpu(), gradient, normal)


def residual_median(matches: PairMatches, geometry: PairGeometry, objective: Objective) -> float:
    """Median reprojection error in pixels, over evenly spread matches."""
    way = fused.pixel_errors if matches.device.type == "cpu" else residuals.pixel_errors
    errors = way(matches, geometry.to(matches.device), objective)
    return float(torch.median(errors)) if len(errors) else float("nan")

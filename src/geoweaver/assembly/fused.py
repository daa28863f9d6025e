"""The sums of residuals.accumulate in one compiled pass over the matches: no temporaries, pairs in parallel.

Each pair is summed by one thread in its own order, so the bytes do not depend on the number of threads.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from geoweaver.assembly.fused_loops import measure_rows, sum_error_forces, sum_pairs
from geoweaver.assembly.kernel import Kernel
from geoweaver.assembly.pairs import Normalisation, Objective, PairGeometry, PairMatches
from geoweaver.assembly.residuals import PairSums


def accumulate(
    matches: PairMatches,
    geometry: PairGeometry,
    objective: Objective,
    norm: Normalisation,
    parameters: int,
    curvature: bool = True,
) -> PairSums:
    """Loss of every pair; in its first `parameters` local parameters also gradient and, if asked, normal."""
    count = len(matches)
    losses, gradient = np.zeros((count, 2)), np.zeros((count, parameters))
    normal = np.zeros((count, parameters, parameters) if curvature else (0, 0, 0))
    sum_pairs(
        *match_columns(matches), *pair_estimate(geometry), norm.pixels.numpy(), norm.points.numpy(),
        kernel_settings(objective.pixels), kernel_settings(objective.points), objective.both_directions,
        parameters, losses, gradient, normal,
    )  # fmt: skip
    pixels, points = torch.from_numpy(losses[:, 0]), torch.from_numpy(losses[:, 1])
    if not parameters:
        return PairSums(pixels, points)
    return PairSums(
        pixels, points, torch.from_numpy(gradient), torch.from_numpy(normal) if curvature else None
    )


@dataclass(frozen=True)
class ErrorModel:
    """Random errors that are alike within a region, and one standard deviation large."""

    depth: float
    """Relative error of a depth."""
    pixel: float
    """Error of a match in pixels, along each axis."""
    region: float
    """Side (pixels) of the cells in which depth errs alike."""
    cell: float
    """Side (pixels) of the cells in which the matches of a pair err alike."""
    draws: int
    """Sign patterns, at most 64."""


def error_forces(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation, parameters: int,
    run: Tensor, model: ErrorModel,
) -> Tensor:  # fmt: skip
    """How random errors pull at each pair (P n draws); depth errs alike in frames of the same `run` (F).

    Signs are hashed from frames and cells: they depend on no order and no thread.
    """
    out = np.zeros((len(matches), parameters, model.draws))
    sum_error_forces(
        *match_columns(matches), *pair_estimate(geometry), norm.pixels.numpy(), norm.points.numpy(),
        kernel_settings(objective.pixels), kernel_settings(objective.points), objective.both_directions,
        parameters,
        run[matches.observation_i].numpy(), run[matches.observation_j].numpy(),
        model.region, model.cell, model.depth, model.pixel, out,
    )  # fmt: skip
    return torch.from_numpy(out)


def row_errors(matches: PairMatches, geometry: PairGeometry) -> tuple[Tensor, Tensor]:
    """Each row's larger reprojection error (inf behind a camera), 3D error over depth (nan without)."""
    pixels = np.full((matches.rows, 2), np.nan, np.float32)
    points = np.full(matches.rows, np.nan, np.float32)
    measure_rows(*match_columns(matches)[:-1], *pair_estimate(geometry), True, 1, pixels, points)
    return torch.from_numpy(np.fmax(pixels[:, 0], pixels[:, 1])), torch.from_numpy(points)


def pixel_errors(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, at_most: int = 200_000
) -> Tensor:
    """Reprojection errors of evenly spread matches, infinite where a point is not in front of the camera."""
    step = max(1, -(-matches.rows // at_most))
    errors = np.full((matches.rows, 2), np.nan, np.float32)
    points = np.empty(0, np.float32)
    measure_rows(
        *match_columns(matches)[:-1],
        *pair_estimate(geometry),
        objective.both_directions,
        step,
        errors,
        points,
    )
    flat = errors[::step].ravel()
    return torch.from_numpy(flat[~np.isnan(flat)])


def match_columns(m: PairMatches) -> tuple[Any, ...]:
    columns = (m.start, m.pixel_i, m.pixel_j, m.depth_i, m.depth_j, m.weight)
    return tuple(np.ascontiguousarray(c.numpy()) for c in columns)


def pair_estimate(g: PairGeometry) -> tuple[Any, ...]:
    columns = (g.z.scale, g.z.rotation, g.z.translation, g.intrinsics_i, g.intrinsics_j, g.affine)
    return tuple(np.ascontiguousarray(c.double().numpy()) for c in columns)


def kernel_settings(kernel: Kernel) -> tuple[float, float, float, float]:
    return kernel.limit, kernel.step / 2, kernel.beta, float(kernel.mapping == "log1p")

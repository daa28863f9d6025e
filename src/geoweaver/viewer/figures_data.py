"""What the figures show, as plain numbers: shared by the report and by the figures for notebooks."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.datatypes import EdgeKind
from geoweaver.errors import DegenerateError
from geoweaver.geometry import SE3
from geoweaver.geometry.registration import umeyama
from geoweaver.geometry.upright import up_direction
from geoweaver.results import FinishedRun

COLOURS = {
    "blue": "#0072b2", "orange": "#e69f00", "green": "#009e73", "vermilion": "#d55e00", "purple": "#cc79a7",
    "sky": "#56b4e9",
}  # fmt: skip
"""Told apart by colour-blind readers too."""
STAGE_COLOURS = ("vermilion", "orange", "blue")
"""After Stage 1, 2 and 3."""


@dataclass(frozen=True)
class Trace:
    """One stage's objective; iterations count on from the stage before."""

    name: str
    first: int
    objective: tuple[float, ...]


@dataclass(frozen=True)
class Distribution:
    """How the residuals of one stage are spread over a logarithmic grid."""

    name: str
    at: Float[Tensor, "n"]
    share: Float[Tensor, "n"]
    """Of all matches, how many miss by no more than this (the CDF)."""
    density: Float[Tensor, "n"]
    """Share of the matches per decade (the PDF)."""


def page_axes(cam_from_world: SE3, trusted: Bool[Tensor, "F"] | None = None) -> Float[Tensor, "3 3"]:
    """Rows: across the page (where the way is longest), up the page, and up in the world."""
    up = up_direction(cam_from_world, trusted)
    centres = cam_from_world.centre - cam_from_world.centre.mean(0)
    flat = centres - (centres @ up)[:, None] * up
    # what is level decides the axes of a way that goes straight up
    across = (
        torch.linalg.svd(flat, full_matrices=False)[2][0] if len(flat) > 1 else cam_from_world.rotation[0, 0]
    )
    across = across - (across @ up) * up
    across = across / across.norm() if across.norm() > 1e-6 else _level(up)
    return torch.stack([across, torch.linalg.cross(up, across), up])


def _level(up: Float[Tensor, "3"]) -> Float[Tensor, "3"]:
    """Any direction across `up`."""
    across = torch.linalg.cross(up, torch.eye(3, dtype=up.dtype)[up.abs().argmin()])
    level: Tensor = across / across.norm()
    return level


def stage_centres(run: FinishedRun) -> list[tuple[str, Float[Tensor, "F 3"]]]:
    """Every stage's camera centres, moved into the final world; stages that cannot be moved are left out."""
    final = run.result.cam_from_world.centre
    use = (
        run.result.trusted if int(run.result.trusted.sum()) > 2 else torch.ones(len(final), dtype=torch.bool)
    )
    moved = []
    for view in run.views:
        centres = view.cam_from_world.centre
        try:
            moved.append((view.name, umeyama(centres[use], final[use]).act(centres)))
        except DegenerateError:
            continue
    return moved


def objective_traces(run: FinishedRun) -> list[Trace]:
    """The objective of every stage that has one, one after the other."""
    known = {r.name: tuple(float(x) for x in r.objective) for r in run.result.reports}
    for stage in run.summary.get("stages", []):
        ends = (stage.get("objective_start"), stage.get("objective_end"))
        if stage["name"] not in known and None not in ends:
            known[stage["name"]] = ends
    traces: list[Trace] = []
    for name, objective in known.items():
        if objective:
            first = traces[-1].first + len(traces[-1].objective) - 1 if traces else 0
            traces.append(Trace(name, first, objective))
    return traces


def distribution(name: str, errors: Float[Tensor, "n"], at: Float[Tensor, "m"]) -> Distribution:
    """CDF and PDF of residuals over ascending, logarithmic thresholds; what is not finite, never reached."""
    finite = errors[errors.isfinite()].double().sort().values
    total = max(len(errors), 1)
    share = torch.searchsorted(finite, at.contiguous(), right=True).double() / total
    decade = at.log10()
    density = torch.zeros_like(at)
    if len(finite):
        width = 0.06  # decades: a fine comb would show the sample's noise
        logs = finite[finite > 0].log10()
        inside = torch.searchsorted(logs, decade + 1.5 * width) - torch.searchsorted(
            logs, decade - 1.5 * width
        )
        density = inside.double() / total / (3 * width)
    return Distribution(name, at, share, density)


def residual_distributions(run: FinishedRun) -> dict[str, list[Distribution]]:
    """2D residuals in pixels and 3D residuals relative to depth, after each stage."""
    grids = {"pixel_error": (-2.0, 2.0), "depth_error": (-4.0, 1.0)}
    return {
        kind: [
            distribution(view.name, getattr(view, kind), torch.logspace(low, high, 121, dtype=torch.float64))
            for view in run.views
        ]
        for kind, (low, high) in grids.items()
    }


def chunk_borders(run: FinishedRun) -> list[int]:
    """Frames at which another chunk begins, frames that no prior saw left out."""
    seen = [(f, c) for f, c in enumerate(run.chunk.tolist()) if c >= 0]
    return [f for (_, before), (f, c) in pairwise(seen) if c != before]


def long_range(run: FinishedRun) -> Bool[Tensor, "E"]:
    """Edges between frames that are far apart in time."""
    return run.graph.kind == int(EdgeKind.LONG_RANGE)


def median_error(errors: Float[Tensor, "n"]) -> float:
    """Median of all residuals, those that are not finite counted as large."""
    if not len(errors):
        return float("nan")
    return float(torch.where(errors.isfinite(), errors, torch.inf).median())

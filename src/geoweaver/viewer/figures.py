"""Figures of a finished run for notebooks and papers: each a function from a run to a matplotlib figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.results import FinishedRun
from geoweaver.viewer.figures_data import (
    COLOURS,
    STAGE_COLOURS,
    chunk_borders,
    long_range,
    objective_traces,
    page_axes,
    residual_distributions,
    stage_centres,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = (
    ("0.6", "close in time"),
    (COLOURS["sky"], "across a chunk border"),
    (COLOURS["green"], "far apart"),
)


def trajectory_figure(run: FinishedRun, reference: Float[Tensor, "n 3"] | None = None) -> "Figure":
    """The path from above: trust, chunk borders, long-range pairs believed and rejected, earlier stages."""
    cameras = run.result.cam_from_world
    page, middle = page_axes(cameras, run.result.trusted), cameras.centre.median(0).values

    def flat(points: Tensor) -> Any:
        return ((points - middle) @ page.mT)[:, :2].numpy()

    figure, axes = _figure(8, 6)
    for (name, centres), colour in zip(stage_centres(run)[:-1], STAGE_COLOURS, strict=False):
        axes.plot(
            *flat(centres).T,
            "--",
            color=COLOURS[colour],
            linewidth=0.8,
            alpha=0.7,
            label=_literal(f"after {name}"),
        )
    if reference is not None:
        axes.plot(*flat(reference.double()).T, color="0.7", linewidth=5, zorder=0, label="reference")
    path = flat(run.result.cam_from_world.centre)
    _draw_loops(axes, run, path)
    axes.plot(*path.T, color=COLOURS["blue"], linewidth=1.5, label="trusted")
    doubted = (~run.result.trusted & run.frames.keyframe).numpy()
    if doubted.any():
        axes.plot(*path[doubted].T, "x", color=COLOURS["vermilion"], label="not trusted")
    borders = chunk_borders(run)
    axes.plot(
        *path[borders].T, "D", color="white", markeredgecolor="black", markersize=5, label="chunk border"
    )
    axes.plot(*path[:1].T, "o", color="black", label="start")
    axes.set(xlabel="world units", ylabel="world units")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(fontsize="small")
    return figure


def _draw_loops(axes: Any, run: FinishedRun, path: Any) -> None:
    """Long-range pairs as thin lines."""
    from matplotlib.collections import LineCollection

    far = long_range(run)
    for rejected, colour, style in ((False, COLOURS["green"], "-"), (True, COLOURS["purple"], "--")):
        pairs = run.graph.edges[far & (run.rejected == rejected)].numpy()
        if len(pairs):
            label = f"{len(pairs)} pairs {'rejected' if rejected else 'believed'}"
            axes.add_collection(
                LineCollection(path[pairs], colors=colour, linestyles=style, linewidths=0.6, label=label)
            )


def convergence_figure(run: FinishedRun) -> "Figure":
    """The objective against iterations; the stages follow each other."""
    figure, axes = _figure(8, 4)
    traces = objective_traces(run)
    for trace, colour in zip(traces, _stage_colours(len(traces)), strict=True):
        steps = range(trace.first, trace.first + len(trace.objective))
        axes.plot(steps, trace.objective, ".-", color=colour, label=_literal(trace.name))
        axes.axvline(trace.first, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="iteration", ylabel="objective")
    axes.set_ylim(bottom=0)
    if traces:
        axes.legend(fontsize="small")
    return figure


def residual_figure(run: FinishedRun) -> "Figure":
    """CDF and PDF of the 2D and 3D residuals after each stage, as in the paper."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    rows = figure.subplots(2, 2)
    labels = {"pixel_error": "reprojection error (pixels)", "depth_error": "3D distance / depth"}
    for row, (kind, found) in zip(rows, residual_distributions(run).items(), strict=True):
        for d, colour in zip(found, _stage_colours(len(found)), strict=True):
            row[0].plot(d.at, d.share, color=colour, label=_literal(d.name))
            row[1].plot(d.at, d.density, color=colour, label=_literal(d.name))
        for axes, what in zip(row, ("share of matches (CDF)", "share per decade (PDF)"), strict=True):
            axes.set(xscale="log", xlabel=labels[kind], ylabel=what)
            axes.grid(alpha=0.3)
        row[0].set_ylim(0, 1)
        row[1].set_ylim(bottom=0)
    if run.views:
        rows[0][0].legend(fontsize="small")
    return figure


def depth_scale_figure(run: FinishedRun) -> "Figure":
    """Scale and shift of each frame's depth, with the chunk borders."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    seen = (run.chunk >= 0).nonzero()[:, 0]
    for axes, values, colour, neutral in (
        (top, run.depth_scale, "blue", 1),
        (bottom, run.depth_shift, "green", 0),
    ):
        axes.axhline(neutral, color="0.7", linewidth=0.8)
        axes.plot(seen, values[seen], ".-", color=COLOURS[colour], markersize=2, linewidth=1)
        for border in chunk_borders(run):
            axes.axvline(border, color="0.8", linestyle="--", linewidth=0.8, zorder=0)
    top.set_ylabel("depth scale a")
    bottom.set(xlabel="frame", ylabel="depth shift b (world units)")
    return figure


def graph_figure(run: FinishedRun) -> "Figure":
    """The view graph as a matrix over the frames."""
    figure, axes = _figure(6.5, 6.5)
    for kind, (colour, label) in enumerate(_KINDS):
        _draw_pairs(axes, run.graph.edges[(run.graph.kind == kind) & ~run.rejected], colour, label)
    _draw_pairs(axes, run.graph.edges[run.rejected], COLOURS["purple"], "rejected")
    for border in chunk_borders(run):
        axes.axvline(border, color="0.9", linewidth=0.8, zorder=0)
        axes.axhline(border, color="0.9", linewidth=0.8, zorder=0)
    limits = (-1, len(run.frames))
    axes.set(xlim=limits, ylim=limits[::-1], xlabel="frame", ylabel="frame", aspect="equal")
    axes.legend(fontsize="small", loc="lower left")
    return figure


def _draw_pairs(axes: Any, pairs: Tensor, colour: str, label: str) -> None:
    """Each pair above and below the diagonal."""
    both = torch.cat([pairs, pairs.flip(1)]).numpy()
    axes.plot(*both.T, "s", color=colour, markersize=2, markeredgewidth=0, label=f"{len(pairs)} {label}")


def _figure(width: float, height: float) -> "tuple[Figure, Any]":
    """A figure of its own: no window, no global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    return figure, axes


def _stage_colours(count: int) -> Sequence[str]:
    """First vermilion, last blue, orange between."""
    names = (
        [STAGE_COLOURS[0], *(count - 2) * [STAGE_COLOURS[1]], STAGE_COLOURS[2]]
        if count > 1
        else [STAGE_COLOURS[2]]
    )
    return [COLOURS[name] for name in names[:count]]


def _literal(label: str) -> str:
    """Text as it is: matplotlib reads formulas between $ signs and hides what begins with _."""
    escaped = label.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped

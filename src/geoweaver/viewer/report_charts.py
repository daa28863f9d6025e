"""The line charts of a report as data: series, axes, marks, and each chart in words too."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from geoweaver.results import FinishedRun
from geoweaver.viewer.figures_data import (
    STAGE_COLOURS,
    Distribution,
    chunk_borders,
    median_error,
    objective_traces,
    residual_distributions,
)
from geoweaver.viewer.report_words import counted, number


@dataclass(frozen=True)
class Chart:
    """One chart: `spec` is what assets/charts.js draws."""

    name: str
    title: str
    words: str
    spec: dict[str, Any]


def convergence_chart(run: FinishedRun) -> Chart | None:
    """The objective against iterations, stage after stage."""
    traces = objective_traces(run)
    if not traces:
        return None
    series = [
        _series(
            t.name, range(t.first, t.first + len(t.objective)), t.objective, _stage_colour(k, len(traces))
        )
        for k, t in enumerate(traces)
    ]
    marks = [{"x": t.first, "label": t.name} for t in traces[1:]]
    words = "; ".join(f"{t.name}, {number(t.objective[0])} to {number(t.objective[-1])}" for t in traces)
    spec = {
        "series": series,
        "marks": marks,
        "x": {"label": "iteration"},
        "y": {"label": "objective", "zero": True},
    }
    return Chart("convergence", "Objective", f"From the first to the last iteration: {words}.", spec)


def residual_charts(run: FinishedRun) -> list[Chart]:
    """CDF and PDF of 2D and 3D residuals after each stage."""
    names = {
        "pixel_error": ("2D", "pixels", "reprojection error (pixels)"),
        "depth_error": ("3D", "of the depth", "3D distance / depth"),
    }
    charts = []
    for kind, found in residual_distributions(run).items():
        if not any(bool(getattr(v, kind).isfinite().any()) for v in run.views):
            continue
        short, unit, label = names[kind]
        medians = [(v.name, median_error(getattr(v, kind))) for v in run.views]
        half = _sentence("Half of the matches miss by less than", medians, unit)
        peaks = [(d.name, _peak(d)) for d in found]
        most = _sentence("Most often, matches miss by about", peaks, unit)
        x = {"label": label, "log": True}
        share = {"label": "share of matches", "zero": True, "high": 1}
        density = {"label": "share per decade", "zero": True}
        charts += [
            Chart(
                f"{short}-share",
                f"{short} residual, cumulative (CDF)",
                half,
                {"series": _curves(found, "share"), "x": x, "y": share},
            ),
            Chart(
                f"{short}-density",
                f"{short} residual, density (PDF)",
                most,
                {"series": _curves(found, "density"), "x": x, "y": density},
            ),
        ]
    return charts


def _peak(found: Distribution) -> float:
    """Where most residuals are; nan where there are none."""
    return float(found.at[found.density.argmax()]) if bool((found.density > 0).any()) else math.nan


def _sentence(begin: str, values: list[tuple[str, float]], unit: str) -> str:
    """Begin 4 pixels (after Stage 1), 1.5 (Stage 2), 0.6 (Stage 3)."""
    return f"{begin} " + ", ".join(f"{number(value)} {unit} after {name}" for name, value in values) + "."


def depth_charts(run: FinishedRun) -> list[Chart]:
    """Scale and shift of each frame's depth."""
    frames = [f for f, c in enumerate(run.chunk.tolist()) if c >= 0]
    marks = [{"x": f, "label": ""} for f in chunk_borders(run)]
    charts = []
    for name, title, values, colour, neutral in (
        ("depth-scale", "Depth scale a", run.depth_scale, "blue", 1.0),
        ("depth-shift", "Depth shift b", run.depth_shift, "green", 0.0),
    ):
        picked = [float(values[f]) for f in frames]
        finite = sorted(v for v in picked if math.isfinite(v))
        if not finite:
            continue
        words = (
            f"{title} of {counted(len(frames), 'frame')}: from {number(finite[0])} to {number(finite[-1])}."
        )
        spec = {
            "series": [_series(title, frames, picked, colour)], "marks": marks, "rule": neutral,
            "x": {"label": "frame"}, "y": {"label": "factor" if neutral else "world units"},
        }  # fmt: skip
        charts.append(Chart(name, title, words, spec))
    return charts


def _curves(found: list[Distribution], what: str) -> list[dict[str, Any]]:
    return [
        _series(
            d.name,
            d.at.tolist(),
            getattr(d, what).tolist(),
            _stage_colour(k, len(found)),
            ("6 3", "2 3", "")[k % 3] if k < len(found) - 1 else "",
        )
        for k, d in enumerate(found)
    ]


def _stage_colour(k: int, count: int) -> str:
    """The last is always blue, the first vermilion."""
    return STAGE_COLOURS[-1] if k == count - 1 else (STAGE_COLOURS[0] if k == 0 else STAGE_COLOURS[1])


def _series(name: str, x: Iterable[float], y: Iterable[float], colour: str, dash: str = "") -> dict[str, Any]:
    """Numbers in six digits; gaps where there is none."""

    def short(value: float) -> float | None:
        return float(f"{value:.6g}") if math.isfinite(value) else None

    return {
        "name": name,
        "x": [short(v) for v in x],
        "y": [short(v) for v in y],
        "colour": colour,
        "dash": dash,
    }

"""A picture of the scores: the paths from above, and each frame's error along time."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.datatypes import Trajectory
from geoweaver.errors import InputError
from geoweaver.evaluation.scores import TrajectoryScores
from geoweaver.formats.files import place, writing

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Told apart by colour-blind readers too."""
_SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Entry:
    """One estimate of the plot."""

    label: str
    scores: TrajectoryScores


def require_plottable(path: Path) -> None:
    """Refuse endings that no picture can be written for, before any work is done."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{place(path)} cannot be drawn: end the file's name in {' '.join(_SUFFIXES)}")


def plot_trajectories(path: Path, reference: Trajectory, entries: list[Entry]) -> None:
    """Write the plot; the view is along the reference's direction of least extent."""
    require_plottable(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 10), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, height_ratios=(5, 1.5, 1.5))
    _draw_paths(top, reference, entries)
    _draw_errors(middle, bottom, reference, entries)
    with writing(path) as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # letters that the font lacks become boxes: no harm
        figure.savefig(file, dpi=130, format=path.suffix.lower()[1:])


def ground_axes(centres: Float[Tensor, "n 3"]) -> Float[Tensor, "2 3"]:
    """The two directions in which the centres spread the most."""
    axes: Tensor = torch.linalg.svd(centres - centres.mean(0), full_matrices=False)[2]
    return axes[:2]


def _draw_paths(axes: Any, reference: Trajectory, entries: list[Entry]) -> None:
    truth = reference.cam_from_world.centre
    ground = ground_axes(truth)
    flat = (truth - truth.mean(0)) @ ground.mT
    axes.plot(*flat.mT, color="0.55", linewidth=3, label=f"reference ({len(reference)} frames)")
    axes.plot(*flat[0], "o", color="0.3", label="start")
    for entry, colour in zip(entries, _cycle(len(entries)), strict=True):
        scores = entry.scores
        path = _with_gaps((scores.aligned.centre - truth.mean(0)) @ ground.mT, entry, len(reference))
        label = (
            f"{_literal(entry.label)}: {scores.matched} frames, ATE {scores.ate:.4g}, AUC@3 {scores.auc3:.1f}"
        )
        axes.plot(*path.mT, ".-", color=colour, linewidth=1.2, markersize=2, label=label)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("first principal axis of the reference (its units)")
    axes.set_ylabel("second principal axis")
    axes.legend(loc="best", fontsize="small")
    axes.grid(alpha=0.3)


def _draw_errors(position: Any, rotation: Any, reference: Trajectory, entries: list[Entry]) -> None:
    timed = reference.timestamps is not None and all(e.scores.association.by == "time" for e in entries)
    time = reference.timestamps if timed and reference.timestamps is not None else reference.index.double()
    for entry, colour in zip(entries, _cycle(len(entries)), strict=True):
        errors = entry.scores.errors
        for axes, values in ((position, errors.translation), (rotation, errors.rotation_deg)):
            axes.plot(
                time, _with_gaps(values, entry, len(reference)), ".-", markersize=2, color=colour, linewidth=1
            )
    position.set_ylabel("position error")
    rotation.set_ylabel("rotation error (°)")
    rotation.set_xlabel("time stamp" if timed else "frame")
    for axes in (position, rotation):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)


def _with_gaps(values: Float[Tensor, "m *d"], entry: Entry, frames: int) -> Float[Tensor, "F *d"]:
    """One row per reference frame; no line is drawn across a frame that the estimate lacks."""
    rows = torch.full((frames, *values.shape[1:]), torch.nan, dtype=torch.float64)
    rows[entry.scores.association.reference] = values
    return rows


def _literal(label: str) -> str:
    """A file's name as text: matplotlib reads formulas between $ signs and hides what begins with _."""
    escaped = label.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def _cycle(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]

"""`geoweaver evaluate ESTIMATE... REFERENCE`: scores by the paper's protocol, as a table or as JSON."""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from geoweaver.errors import ConfigError, GeoWeaverError

if TYPE_CHECKING:
    from geoweaver.datatypes import Trajectory
    from geoweaver.evaluation import TrajectoryScores

_Paths = Annotated[tuple[Path, ...], arg(metavar="ESTIMATE... REFERENCE", help_behavior_hint="")]
_File = Annotated[Path | None, arg(metavar="FILE")]
_Folder = Annotated[Path | None, arg(metavar="DIR")]
_HEADINGS = {
    "frames": "frames", "matched": "matched", "ate": "ATE", "rre_deg": "RRE deg", "auc3": "AUC@3",
    "auc5": "AUC@5", "auc30": "AUC@30", "scale": "scale", "absrel": "AbsRel", "sqrel": "SqRel",
    "absrel_confident": "AbsRel top", "depth_frames": "depths", "depth_coverage": "covered",
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Score one or several trajectories against a reference, after one Sim(3) alignment each.

    Frames are matched by image name if both sides have names, else by time, else by index.
    """

    paths: Positional[_Paths]
    """Run folders, TUM, KITTI, COLMAP models, transforms.json, T&T .log ...; the last is the reference."""
    json: bool = False
    """Print JSON: an object for one estimate, a list of objects for several."""
    missing: Literal["fail", "ignore"] = "fail"
    """Reference frames that an estimate lacks: fail all their pairs in the AUC, or leave them out."""
    trusted_only: bool = False
    """Leave out the frames that a run does not trust; --missing says what that does to their pairs."""
    max_time_diff: Annotated[float, arg(metavar="SECONDS")] = 0.01
    """How far apart the time stamps of one frame may be."""
    plot: _File = None
    """Draw the paths and the errors along time into this .png, .pdf or .svg."""
    depth: _Folder = None
    """Reference depth, a 16-bit PNG, .npy, .npz or .pfm per frame: adds AbsRel and SqRel."""
    estimate_depth: _Folder = None
    """The estimate's depth where it is not a run folder's own (one estimate only)."""
    depth_align: Literal["none", "median"] = "none"
    """none: the trajectory's one Sim(3) scale; median: also scale every frame by its medians' ratio."""
    depth_unit: Annotated[float, arg(metavar="UNIT")] = 0.001
    """What one step of a PNG that states no unit is in the reference's units (0.001: millimetres)."""


def run(options: Options) -> None:
    """Read, score, print."""
    _check(options)
    from geoweaver.evaluation import score_doubts, trusted_part
    from geoweaver.evaluation.plot import Entry, plot_trajectories, require_plottable
    from geoweaver.formats.files import place
    from geoweaver.formats.trajectory import read_trajectory

    if options.plot is not None:
        require_plottable(options.plot)
    *paths, reference_path = options.paths
    reference = read_trajectory(reference_path)
    estimates = [read_trajectory(path) for path in paths]
    scores = [_score(path, e, reference, options) for path, e in zip(paths, estimates, strict=True)]
    rows = [_row(path, score, options) for path, score in zip(paths, scores, strict=True)]
    for row, score, estimate in zip(rows, scores, estimates, strict=True):
        scored = trusted_part(estimate) if options.trusted_only else estimate
        _warn(row, score_doubts(score, scored, reference))
    if options.plot is not None:
        entries = [Entry(place(path), score) for path, score in zip(paths, scores, strict=True)]
        plot_trajectories(options.plot, reference, entries)
    print(_as_json(rows) if options.json else _as_table(rows))


def _check(options: Options) -> None:
    if len(options.paths) < 2:
        raise ConfigError("an estimate and a reference are needed: geoweaver evaluate ESTIMATE... REFERENCE")
    if not (math.isfinite(options.max_time_diff) and options.max_time_diff >= 0):
        raise ConfigError(f"--max-time-diff is {options.max_time_diff}: give seconds, 0 or more")
    if not (math.isfinite(options.depth_unit) and options.depth_unit > 0):
        raise ConfigError(f"--depth-unit is {options.depth_unit}: give a positive number")
    if options.estimate_depth is not None and (options.depth is None or len(options.paths) > 2):
        raise ConfigError("--estimate-depth goes with --depth and one estimate: leave it out otherwise")


def _score(
    path: Path, estimate: "Trajectory", reference: "Trajectory", options: Options
) -> "TrajectoryScores":
    from geoweaver.evaluation import score_trajectory
    from geoweaver.formats.files import place

    if options.trusted_only and estimate.trusted is None:
        print(f"{place(path)} does not say which frames it trusts: all are scored", file=sys.stderr)
    try:
        return score_trajectory(
            estimate, reference, options.missing, options.max_time_diff, options.trusted_only
        )
    except GeoWeaverError as error:
        raise type(error)(f"{place(path)}: {error}") from None


def _row(path: Path, scores: "TrajectoryScores", options: Options) -> dict[str, Any]:
    """What is printed of one estimate."""
    row: dict[str, Any] = {"estimate": str(path), **scores.row()}
    if options.depth is not None:
        from geoweaver.evaluation.depth import score_depth
        from geoweaver.evaluation.depth_files import depth_frames

        folder = path / "depth" if options.estimate_depth is None else options.estimate_depth
        frames = depth_frames(folder, options.depth, options.depth_unit)
        row |= score_depth(frames, scores.scale, options.depth_align).row()
    return row


def _warn(row: dict[str, Any], doubts: tuple[str, ...]) -> None:
    """Say on stderr, and in the row that becomes JSON, why its figures may mean nothing."""
    from geoweaver.formats.files import place

    if doubts:
        row["warnings"] = list(doubts)
    for doubt in doubts:
        print(f"WARNING: {place(Path(row['estimate']))}: {doubt}", file=sys.stderr)


def _as_json(rows: list[dict[str, Any]]) -> str:
    """One estimate: its object; several: a list of objects, each with its `estimate`."""
    if len(rows) > 1:
        return json.dumps(rows, indent=2, allow_nan=False)
    return json.dumps({k: v for k, v in rows[0].items() if k != "estimate"}, indent=2, allow_nan=False)


def _as_table(rows: list[dict[str, Any]]) -> str:
    from geoweaver.formats.files import place

    names = [name for name in _HEADINGS if any(name in row for row in rows)]
    lines = [["estimate", *(_HEADINGS[name] for name in names)]]
    lines += [[place(Path(row["estimate"])), *(_cell(name, row.get(name)) for name in names)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    )


def _cell(name: str, value: float | int | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.2f}" if name.startswith("auc") else f"{value:.5g}"

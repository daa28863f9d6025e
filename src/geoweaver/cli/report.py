"""`geoweaver report RUN`: rewrites RUN/report.html."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from torch import Tensor

_Run = Annotated[Path, tyro.conf.arg(metavar="RUN")]
_Reference = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class Options:
    """Write the report of a finished run: one HTML file that opens from disk and needs no network."""

    run: tyro.conf.Positional[_Run]
    """Folder of a finished run."""
    reference: _Reference = None
    """A true trajectory (TUM, KITTI, COLMAP, transforms.json, T&T .log): adds scores and its path."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """Where to write; RUN/report.html unless said otherwise."""


def run(options: Options) -> None:
    """Open the run, score it where a reference is given, write, say where."""
    from geoweaver.finished import load_run
    from geoweaver.viewer.report import write_report

    finished = load_run(options.run)
    scores, centres = (None, None) if options.reference is None else _scored(options.run, options.reference)
    path = options.out or options.run / "report.html"
    write_report(finished, path, scores=scores, reference=centres)
    print(f"report: {path.resolve()} ({path.stat().st_size / 1e6:.1f} MB)")


def _scored(folder: Path, reference: Path) -> "tuple[Mapping[str, float | int], Tensor]":
    """The scores, and the reference's camera centres in the run's world."""
    from geoweaver.evaluation import score_trajectory
    from geoweaver.formats.trajectory import read_trajectory

    truth = read_trajectory(reference)
    scores = score_trajectory(read_trajectory(folder), truth, missing="ignore")
    centres = scores.reference_from_estimate.inverse().act(truth.cam_from_world.centre)
    return scores.row(), centres

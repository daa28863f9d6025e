"""geoweaver demo: a simulated walk woven and scored, from a bare installation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Options:
    """Weave a simulated walk through a synthetic apartment and score it against the exact truth."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("demo-out")
    """Folder for the trajectories and the plot."""
    frames: int = 180
    """Length of the walk."""
    seed: int = 0
    """Which world, which errors."""


def run(options: Options) -> None:
    from geoweaver.demonstration import demonstrate
    from geoweaver.engine.progress import stage_progress
    from geoweaver.evaluation.plot import Entry, plot_trajectories
    from geoweaver.formats.tum import write_tum

    options.out.mkdir(parents=True, exist_ok=True)
    with stage_progress("demo: simulate, weave, score", 1) as advance:
        result = demonstrate(frames=options.frames, seed=options.seed)
        advance(1)
    print(f"{options.frames} frames, {result.trusted} trusted")
    print(f"{'after stage':<30} {'ATE (m)':>9} {'RRE (deg)':>10} {'AUC@3':>7}")
    for name, _, scores in result.stages:
        print(f"{name:<30} {scores.ate:>9.4f} {scores.rre_deg:>10.3f} {scores.auc3:>7.1f}")
    write_tum(options.out / "groundtruth.tum", result.truth)
    for name, trajectory, _ in result.stages:
        write_tum(options.out / f"stage{name[0]}.tum", trajectory)
    entries = [Entry(name, scores) for name, _, scores in result.stages]
    plot_trajectories(options.out / "trajectory.png", result.truth, entries)
    print(f"trajectories and plot: {options.out.resolve()}")

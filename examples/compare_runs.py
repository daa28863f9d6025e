"""Several runs of one sequence against one reference: a table, a plot, and the viewer's command line.

python examples/compare_runs.py PLOT.png REFERENCE RUN RUN...
"""

import sys
from pathlib import Path

from geoweaver.evaluation import score_trajectory
from geoweaver.evaluation.plot import Entry, plot_trajectories
from geoweaver.finished import load_run
from geoweaver.formats.trajectory import read_trajectory


def main(plot: Path, reference_path: Path, folders: list[Path]) -> None:
    reference = read_trajectory(reference_path)
    entries = []
    print(f"{'run':<20} {'ATE':>8} {'RRE deg':>8} {'AUC@3':>6} {'trusted':>8} {'seconds':>8}")
    for folder in folders:
        run, scores = load_run(folder), score_trajectory(read_trajectory(folder), reference)
        trusted, seconds = float(run.result.trusted.double().mean()), run.summary["seconds_total"]
        print(
            f"{folder.name:<20} {scores.ate:8.4f} {scores.rre_deg:8.3f} {scores.auc3:6.1f} "
            f"{trusted:8.1%} {seconds:8.1f}"
        )
        entries.append(Entry(folder.name, scores))
    plot_trajectories(plot, reference, entries)
    print(f"plot: {plot}")
    print(f"in 3D: geoweaver view {' '.join(map(str, folders))} --reference {reference_path}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(argument) for argument in sys.argv[3:]])

"""`python -m benchmarks.sigmas --out DIR`: how many errors of finished runs lie inside their stated sigmas.

DIR is what `benchmarks.sequences --out DIR` left: cameras from pixels, with everything a run went through.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.harness import print_table, write_results
from benchmarks.subjects import WORLDS, Subject, find_subjects
from geoweaver.datatypes import Trajectory
from geoweaver.finished import load_run
from geoweaver.geometry import SE3
from geoweaver.geometry.registration import umeyama
from geoweaver.geometry.so3 import rotation_angle

SHARE = 0.68
"""Of the errors that one sigma shall hold."""


def in_order(truth: Trajectory, names: tuple[str, ...]) -> SE3:
    """The truth of a run's frames, by name where it has names."""
    if truth.names is None:
        return truth.cam_from_world
    stems = [Path(name).stem for name in truth.names]
    return truth.cam_from_world[torch.tensor([stems.index(Path(name).stem) for name in names])]


def in_sigmas(
    estimate: SE3, sigma: Float[Tensor, "F 2"], truth: SE3
) -> tuple[Float[Tensor, "F"], Float[Tensor, "F"]]:
    """Each frame's centre and rotation error over its stated sigma, after one similarity."""
    fit = umeyama(estimate.centre, truth.centre)
    apart = (fit.act(estimate.centre) - truth.centre).norm(dim=-1)
    turn = rotation_angle(estimate.rotation @ fit.rotation.mT @ truth.rotation.mT)
    return apart / (sigma[:, 0] * fit.scale), turn / sigma[:, 1]


def measure(subject: Subject, folder: Path) -> dict[str, Any]:
    """One row: shares inside one sigma, and the sigmas that hold two thirds."""
    assert subject.truth is not None
    run = load_run(folder)
    result = run.result
    both = in_sigmas(result.cam_from_world, result.sigma, in_order(subject.truth, result.names))
    centre, turn = (errors[result.trusted] for errors in both)
    return {
        "sequence": subject.name, "trusted": len(centre),
        "inside_centre": float((centre <= 1).double().mean()),
        "inside_turn": float((turn <= 1).double().mean()),
        "centre_68": float(centre.quantile(SHARE)), "turn_68": float(turn.quantile(SHARE)),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", nargs="*", default=list(WORLDS))
    parser.add_argument("--out", type=Path, required=True, help="where finished runs are")
    options = parser.parse_args()
    rows = [measure(s, options.out / s.name) for s in find_subjects(options.sequences, options.out)]
    print_table(rows)
    write_results("sigmas", rows)


if __name__ == "__main__":
    main()

"""From pixels to scores, beside COLMAP (`python -m benchmarks.sequences fox indoor_walk ...`).

Every sequence runs with the same settings; intrinsics are given only where the table says so. Real recordings
are read from GEOWEAVER_DATA, worlds are rendered. COLMAP's rows are kept by the images' digest.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.colmap_peer import colmap_row
from benchmarks.harness import print_table, saved_rows, write_results
from benchmarks.subjects import Subject, every_name, find_subjects
from geoweaver.datatypes import Trajectory
from geoweaver.evaluation.depth import DepthFrame, score_depth
from geoweaver.evaluation.scores import TrajectoryScores, score_trajectory
from geoweaver.finished import load_run
from geoweaver.formats.depth import read_depth
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.frames import FramesConfig
from geoweaver.geometry import SE3
from geoweaver.outputs import OutputConfig
from geoweaver.pipeline import Config, reconstruct
from geoweaver.results import FinishedRun

SHOWN = ("sequence", "total", "trusted", "ate_1", "ate_2", "ate", "ate_trusted", "auc3_prior", "auc3",
         "path_percent", "absrel", "absrel_confident", "coverage", "seconds", "s_per_keyframe", "peak_gb",
         "colmap_frames", "colmap_ate", "colmap_seconds")  # fmt: skip


def run_one(subject: Subject, out: Path, max_frames: int | None) -> dict[str, Any]:
    """Reconstruct a subject and score what came out."""
    frames = FramesConfig(intrinsics=subject.intrinsics, max_frames=max_frames)
    reconstruct(subject.input, out, Config(frames=frames, outputs=OutputConfig("cameras")))
    run, summary = load_run(out), json.loads((out / "run.json").read_text())
    row = {
        "sequence": subject.name, "intrinsics": "given" if subject.intrinsics else "unknown",
        **summary["frames"], "seconds": summary["seconds_total"],
        "s_per_keyframe": summary["seconds_total"] / max(1, summary["frames"]["keyframes"]),
        "peak_gb": summary["peak_rss_bytes"] / 1e9, "edges": summary["edges"],
        "rejected_edges": summary["rejected_edges"],
        "stages": {s["name"]: round(s["seconds"], 2) for s in summary["stages"]},
    }  # fmt: skip
    return row | (scores(subject, run, out) if subject.truth is not None else {})


def scores(subject: Subject, run: FinishedRun, out: Path) -> dict[str, Any]:
    """Cameras after each stage, of all frames and of the trusted ones; depth where there is a truth."""
    truth = subject.truth
    assert truth is not None
    estimate = read_trajectory(out)
    every = score_trajectory(estimate, truth, missing="ignore")
    row = {"ate": every.ate, "rre_deg": every.rre_deg, "auc3": every.auc3}
    row |= {"path_percent": 100 * every.ate / path_length(truth.cam_from_world)}
    trusted = score_trajectory(estimate, truth, missing="ignore", trusted_only=True)
    row |= {"ate_trusted": trusted.ate, "auc3_trusted": trusted.auc3}
    for number, view in enumerate(run.views, 1):
        index = torch.arange(len(estimate))
        cameras = Trajectory(view.cam_from_world, index, estimate.names, estimate.timestamps)
        after = score_trajectory(cameras, truth, missing="ignore")
        row |= {f"ate_{number}": after.ate, f"auc3_{number}": after.auc3}
    return row | {"auc3_prior": row["auc3_1"]} | depth_scores(subject, run, every)


def path_length(cameras: SE3) -> float:
    """Length of the way that the camera took."""
    return float(cameras.centre.diff(dim=0).norm(dim=-1).sum())


def depth_scores(subject: Subject, run: FinishedRun, scored: TrajectoryScores) -> dict[str, Any]:
    """Final depth times the sequence's one scale against the truth."""

    def compared() -> Iterator[DepthFrame]:
        for frame in run.depths.frames:
            file = subject.depth(frame)
            if file is not None:
                found = run.depths.read(frame)
                yield DepthFrame(
                    found.depth, read_depth(file, subject.depth_unit), found.confidence, file.name
                )

    if not any(subject.depth(frame) for frame in run.depths.frames):
        return {}
    depth = score_depth(compared(), scored.scale)
    return {
        "absrel": depth.absrel,
        "absrel_confident": depth.absrel_confident,
        "coverage": depth.coverage,
        "depth_frames": depth.frames,
    }


def peer(subject: Subject, how: str) -> dict[str, Any]:
    """COLMAP's columns."""
    if how == "none" or subject.truth is None or subject.input.is_file():
        return {}
    row = colmap_row(subject.name, subject.input, subject.truth, subject.intrinsics, how)
    if row is None:
        return {}
    names = {"registered": "frames", "ate": "ate", "auc3": "auc3", "seconds": "seconds", "models": "models"}
    return {f"colmap_{new}": row[old] for old, new in names.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", nargs="*", default=every_name())
    parser.add_argument("--out", type=Path, help="where the runs go; without it they are thrown away")
    parser.add_argument("--max-frames", type=int)
    parser.add_argument("--colmap", choices=("kept", "fresh", "known", "none"), default="kept")
    parser.add_argument("--fresh", dest="colmap", action="store_const", const="fresh", help="--colmap fresh")
    options = parser.parse_args()
    rows = saved_rows("sequences")
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        for subject in find_subjects(options.sequences, out):
            row = run_one(subject, out / subject.name, options.max_frames)
            row |= peer(subject, options.colmap)
            rows = [r for r in rows if r["sequence"] != subject.name] + [row]
            print_table([{k: r.get(k) for k in SHOWN} for r in rows if r["sequence"] in options.sequences])
            write_results("sequences", rows)


if __name__ == "__main__":
    main()

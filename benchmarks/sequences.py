"""Real recordings from pixels to scores (`python -m benchmarks.sequences fox ...`), read from GEOWEAVER_DATA.

Every sequence runs with the same settings; only the intrinsics are given where the table says so.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import print_table, saved_rows, write_results
from geoweaver.evaluation.scores import score_trajectory
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.frames import FramesConfig
from geoweaver.pipeline import Config, reconstruct

REFERENCES = {
    "fox": ("transforms.json", None),
    "indoor_walk": ("groundtruth.tum", None),
    "street_loop": ("groundtruth.tum", "353.546,353.546,300.944,91.555"),
    "drone_room": (
        "groundtruth.tum",
        "458.654,457.296,367.215,248.375,-0.28340811,0.07395907,0.00019359,1.76187114e-05",
    ),
}
"""Reference file and given intrinsics of each sequence."""


def run_one(name: str, data: Path, out: Path, max_frames: int | None) -> dict[str, Any]:
    reference, intrinsics = REFERENCES[name]
    config = Config(frames=FramesConfig(intrinsics=intrinsics, max_frames=max_frames))
    reconstruct(data / name / "images", out / name, config)
    run = json.loads((out / name / "run.json").read_text())
    estimate, truth = read_trajectory(out / name), read_trajectory(data / name / reference)
    every = score_trajectory(estimate, truth, missing="ignore")
    trusted = score_trajectory(estimate, truth, missing="ignore", trusted_only=True)
    return {
        "sequence": name, "intrinsics": "given" if intrinsics else "unknown", **run["frames"],
        "ate": every.ate, "rre_deg": every.rre_deg, "auc3": every.auc3,
        "ate_trusted": trusted.ate, "auc3_trusted": trusted.auc3,
        "seconds": run["seconds_total"], "peak_rss_gb": run["peak_rss_bytes"] / 1e9,
        "stages": {s["name"]: round(s["seconds"], 2) for s in run["stages"]},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", nargs="*", default=list(REFERENCES))
    parser.add_argument("--out", type=Path, help="where the runs go; without it they are thrown away")
    parser.add_argument("--max-frames", type=int)
    options = parser.parse_args()
    data = os.environ.get("GEOWEAVER_DATA")
    if not data:
        raise SystemExit("GEOWEAVER_DATA is not set: point it at the folder of real recordings")
    rows = [r for r in saved_rows("sequences") if r["sequence"] not in options.sequences]
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.sequences:
            rows.append(run_one(name, Path(data), options.out or Path(scratch), options.max_frames))
            print_table([{k: v for k, v in rows[-1].items() if k != "stages"}])
            write_results("sequences", rows)


if __name__ == "__main__":
    main()

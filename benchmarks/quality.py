"""What `--quality` costs and gains (`python -m benchmarks.quality`): three presets on the same sequences."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any, get_args

from benchmarks.harness import print_table, saved_rows, write_results
from benchmarks.sequences import scores
from benchmarks.subjects import Subject, find_subjects
from geoweaver.finished import load_run
from geoweaver.frames import FramesConfig
from geoweaver.outputs import OutputConfig
from geoweaver.pipeline import Config, reconstruct
from geoweaver.quality import Quality, with_quality

SEQUENCES = ("fox", "apartment_fast")
KEPT = ("ate", "auc3", "absrel", "absrel_confident", "coverage")


def run_one(subject: Subject, quality: Quality, out: Path) -> dict[str, Any]:
    """One sequence with one preset."""
    plain = Config(frames=FramesConfig(intrinsics=subject.intrinsics), outputs=OutputConfig("cameras"))
    reconstruct(subject.input, out, with_quality(plain, quality))
    summary = json.loads((out / "run.json").read_text())
    scored = scores(subject, load_run(out), out)
    return {
        "sequence": subject.name, "quality": quality, "size": "x".join(map(str, load_run(out).frames.size)),
        **summary["frames"], "seconds": summary["seconds_total"], "peak_gb": summary["peak_rss_bytes"] / 1e9,
        **{name: scored.get(name) for name in KEPT},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", nargs="*", default=list(SEQUENCES))
    options = parser.parse_args()
    rows = [r for r in saved_rows("quality") if r["sequence"] not in options.sequences]
    with tempfile.TemporaryDirectory() as scratch:
        for subject in find_subjects(options.sequences, Path(scratch)):
            for quality in get_args(Quality):
                rows.append(run_one(subject, quality, Path(scratch) / subject.name / quality))
                print_table(rows)
                write_results("quality", rows)


if __name__ == "__main__":
    main()

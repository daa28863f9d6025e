"""How time and memory grow with the frames (`python -m benchmarks.growth`): one recording, longer and longer.

Wall-clock seconds of whole runs, one after the other in the same process; ratios are what counts. With
`--whole known` the whole recording's row is that of `benchmarks.sequences`, measured on the same machine.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import print_table, saved_rows, write_results
from benchmarks.sequences import run_one
from benchmarks.subjects import find_subjects

SHOWN = ("sequence", "total", "keyframes", "trusted", "seconds", "s_per_frame", "s_per_keyframe", "peak_gb",
         "times_shortest", "ate")  # fmt: skip


def compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Seconds per frame beside those of the shortest run."""
    each = [row["seconds"] / row["total"] for row in rows]
    return [
        row | {"s_per_frame": s, "times_shortest": s / each[0]} for row, s in zip(rows, each, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequence", default="street_loop")
    parser.add_argument("--frames", type=int, nargs="+", default=[300, 1500])
    parser.add_argument("--out", type=Path, help="where the runs go; without it they are thrown away")
    parser.add_argument("--whole", choices=("fresh", "known"), default="fresh")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    known = [r for r in saved_rows("sequences") if r["sequence"] == options.sequence and r.get("seconds")]
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        (subject,) = find_subjects([options.sequence], out)
        for frames in sorted(options.frames):
            whole = [r for r in known if r["total"] == frames and options.whole == "known"]
            rows += whole or [run_one(subject, out / f"{subject.name}_{frames}", frames)]
            print_table([{k: r.get(k) for k in SHOWN} for r in compared(rows)])
            write_results("growth", compared(rows))


if __name__ == "__main__":
    main()

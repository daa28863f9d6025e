"""`python -m benchmarks`: every benchmark, one after the other; each is also `python -m benchmarks.NAME`."""

import subprocess
import sys

NAMES = (
    "render", "cost", "solver", "outliers", "ablation", "gpm", "matching", "sfm_prior", "clouds", "priors",
    "matchers", "quality", "sequences", "growth", "world_clouds", "exports",
)  # fmt: skip


def main() -> int:
    failed = []
    for name in NAMES:
        print(f"== benchmarks.{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

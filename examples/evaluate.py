"""Scores of a run against a reference, and the frames that miss it most.

python examples/evaluate.py RUN REFERENCE        REFERENCE: TUM, KITTI, COLMAP folder, transforms.json ...
"""

import sys
from pathlib import Path

from geoweaver.evaluation import score_trajectory
from geoweaver.formats.trajectory import read_trajectory


def main(folder: Path, reference: Path) -> None:
    scores = score_trajectory(read_trajectory(folder), read_trajectory(reference))
    print(f"{scores.matched} of {scores.frames} frames matched")
    print(f"ATE {scores.ate:.4f}, RRE {scores.rre_deg:.3f} deg, AUC@3 {scores.auc3:.1f}")
    worst = scores.errors.translation.argsort(descending=True)[:3]
    for row in worst.tolist():
        frame = int(scores.association.reference[row])
        print(f"frame {frame} misses by {float(scores.errors.translation[row]):.4f}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""A finished run as a folder that 3D Gaussian splatting trains on.

python examples/export_to_splats.py RUN OUT

Then, with gsplat: python simple_trainer.py default --data_dir OUT --data_factor 2
"""

import sys
from pathlib import Path

from geoweaver.export import ExportChoice, export_run
from geoweaver.finished import load_run
from geoweaver.formats.colmap import read_colmap


def main(folder: Path, out: Path) -> None:
    written = export_run(load_run(folder), "gsplat", out, ExportChoice(downscale=(2,)))
    model = read_colmap(written / "sparse" / "0")
    print(f"{len(model.names)} images, {len(model.points.position)} points with tracks in {written}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

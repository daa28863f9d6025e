"""Cameras of a video or of a folder of images.

python examples/reconstruct.py INPUT OUT
"""

import sys
from pathlib import Path

from geoweaver.pipeline import Config, reconstruct


def main(input: Path, out: Path) -> None:
    result = reconstruct(input, out, Config())
    print(f"{len(result)} frames, {int(result.trusted.sum())} trusted, in {out}")
    for name, centre, trusted in zip(result.names, result.cam_from_world.centre, result.trusted, strict=True):
        x, y, z = centre.tolist()
        print(f"{name}: {x:8.3f} {y:8.3f} {z:8.3f} {'' if trusted else '(not trusted)'}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

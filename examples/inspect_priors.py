"""What the prior said of each chunk before the weave, and what became of its depth: a table and a picture.

python examples/inspect_priors.py RUN PICTURE.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from geoweaver.finished import RunDepths, load_run


def main(folder: Path, picture: Path) -> None:
    run = load_run(folder)
    assert isinstance(run.depths, RunDepths) and run.frames.pixels is not None
    priors = run.depths.priors
    print(f"{'chunk':>5} {'frames':>6} {'covered':>8} {'confidence':>10} {'nearest':>8} {'farthest':>8}")
    for k in range(len(priors)):
        prior = priors.read(k)
        valid = prior.depth > 0
        near, far = torch.quantile(prior.depth[valid].double()[::97], torch.tensor([0.02, 0.98]).double())
        sure = float(prior.confidence[valid].mean())
        print(f"{k:5} {len(prior):6} {float(valid.float().mean()):8.1%} {sure:10.2f} {near:8.3f} {far:8.3f}")

    frame = run.depths.frames[len(run.depths.frames) // 2]
    final = run.depths.read(frame)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3))
    shown = {
        "image": run.frames.pixels.read(frame),
        "depth": final.depth.numpy(),
        "confidence": final.confidence.numpy(),
    }
    for axis, (title, image) in zip(axes, shown.items(), strict=True):
        axis.imshow(image, cmap="cividis", vmin=0)
        axis.set_title(f"{title} of frame {frame}", parse_math=False)
        axis.axis("off")
    figure.savefig(picture, bbox_inches="tight")
    print(f"picture: {picture}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

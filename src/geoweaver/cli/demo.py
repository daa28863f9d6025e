"""geoweaver demo: a synthetic walk, filmed, reconstructed from its pixels and scored."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from geoweaver.synth.clips import Clip


@dataclass(frozen=True)
class Options:
    """Film a walk through a synthetic apartment, reconstruct it from the video alone, score it, report it."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("demo-out")
    """Folder for the film and the run."""
    frames: int = 150
    """Length of the walk."""
    seed: int = 0
    """Which apartment."""
    workers: int = 0
    """Processes; 0: one per core."""


def run(options: Options) -> None:
    """Render, reconstruct, score, say where everything is."""
    from geoweaver.demonstration import film_demo, score_demo
    from geoweaver.engine.local import available_cores
    from geoweaver.pipeline import Config, reconstruct

    film, folder = options.out / "film", options.out / "run"
    clip = film_demo(film, options.frames, options.seed, options.workers or available_cores())
    result = reconstruct(film / "video.mp4", folder, Config(workers=options.workers))
    scores = score_demo(folder, film, clip)
    trusted = int(result.trusted.sum())
    print(f"{len(result)} frames, {trusted} trusted, from the pixels alone; against the truth:")
    print(f"  ATE            {100 * scores.trajectory.ate:.1f} cm over a walk of {_length(clip):.1f} m")
    print(f"  AUC@3          {scores.trajectory.auc3:.1f} %")
    print(f"  depth AbsRel   {scores.absrel:.3f} ({scores.absrel_confident:.3f} on the confident half)")
    print(f"  cloud F-score  {scores.fscore:.1f} % at 2 % of the median depth within four median depths,")
    print(f"                 {scores.fscore_all:.1f} % with everything outside the windows")
    print(f"film:   {(film / 'video.mp4').resolve()}")
    print(f"cloud:  {(folder / 'points.ply').resolve()}")
    print(f"COLMAP: {(folder / 'colmap').resolve()}")
    print(f"report: {(folder / 'report.html').resolve()}")


def _length(clip: "Clip") -> float:
    return float(clip.cam_from_world.centre.diff(dim=0).norm(dim=-1).sum())

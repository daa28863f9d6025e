"""`geoweaver export RUN --to FORMAT`: a finished run in the form that another program reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from geoweaver.errors import ConfigError


@dataclass(frozen=True)
class Options:
    """Write a finished run for COLMAP, nerfstudio, 3D Gaussian splatting, evo, rerun and others."""

    run: Positional[Annotated[Path, arg(metavar="RUN")]]
    """Folder of a finished run."""
    to: Annotated[str, arg(metavar="FORMAT")]
    """colmap, nerfstudio, gsplat, tum, kitti, ply, depth or rerun."""
    out: Annotated[Path | None, arg(aliases=["-o"], metavar="PATH")] = None
    """File or folder to write; without it RUN/exports/FORMAT."""
    all_frames: bool = False
    """Also frames that are not trusted (colmap, nerfstudio, gsplat, rerun); tum, kitti and depth have all."""
    downscale: Annotated[tuple[int, ...], arg(metavar="N")] = ()
    """Also images_N/, shrunk by N (gsplat)."""


def run(options: Options) -> None:
    """Open, write, say where."""
    if options.downscale and options.to != "gsplat":
        raise ConfigError(f"--downscale makes smaller copies for gsplat, not for {options.to}: leave it out")
    if any(factor < 2 for factor in options.downscale):
        raise ConfigError("--downscale takes whole factors of at least 2, such as 2 4")
    from geoweaver.export import ExportChoice, export_run, require_format
    from geoweaver.finished import load_run

    require_format(options.to)
    choice = ExportChoice(options.all_frames, tuple(sorted(set(options.downscale))))
    written = export_run(load_run(options.run), options.to, options.out, choice)
    print(f"{options.to}: {written.resolve()}")

"""geoweaver reconstruct: from a video or a folder of images to cameras."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from geoweaver.weave import WeaveConfig


@dataclass(frozen=True)
class Options:
    """Cameras of every frame of a video or a folder of images; a killed run goes on with the same command."""

    input: tyro.conf.Positional[Path]
    """A video file or a folder of images (sub-folders are physical cameras)."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The run's folder."""
    prior: str = "sfm"
    """NAME or NAME:PATH of the geometric prior."""
    matcher: str = "classical"
    """NAME or NAME:PATH of the matcher."""
    preset: Literal["default", "paper"] = "default"
    """paper: fixed stride, all frames, the paper's literal residuals, Adam and table values."""
    solver: Literal["lm", "adam"] | None = None
    """Optimiser of Stages 2 and 3; without it the preset's."""
    chunk_size: int = 60
    """Keyframes per chunk; neighbours share one."""
    intrinsics: str | None = None
    """fx,fy,cx,cy[,k1,k2,p1,p2] in pixels of the original images, or a cameras.txt or transforms.json."""
    masks: Path | None = None
    """Folder of masks named like the images: black pixels are ignored."""
    timestamps: Path | None = None
    """TUM rgb.txt, EuRoC csv or one number a line."""
    frames: Path | None = None
    """List of the frames to use, one name or index a line."""
    keyframes: Literal["auto", "all"] = "auto"
    """auto: by parallax and sharpness; all: every frame."""
    stride: int = 1
    """Use every n-th frame."""
    max_frames: int | None = None
    """Use at most so many frames."""
    max_size: int | None = None
    """Long side of the working images in pixels."""
    engine: Literal["local", "ray"] = "local"
    """Where chunks and edges are computed."""
    workers: int = 0
    """Processes; 0: one per core."""
    seed: int = 0
    """Same seed, same input: same bytes."""
    overwrite: bool = False
    """Throw away what an earlier run left in the folder."""


def run(options: Options) -> None:
    from geoweaver.frames import FramesConfig, KeyframeConfig
    from geoweaver.pipeline import Config, reconstruct
    from geoweaver.store import Store

    if options.overwrite and (options.out / "work").exists():
        with Store.open(options.out / "work") as store:
            store.clear()
    frames = FramesConfig(
        options.intrinsics, options.masks, options.timestamps, options.frames,
        options.stride, options.max_frames, options.max_size,
    )  # fmt: skip
    paper = options.preset == "paper"
    config = Config(
        frames=frames, keyframes=KeyframeConfig("all" if paper else options.keyframes),
        weave=_weave(options), chunk_size=options.chunk_size, fixed_stride=paper, prior=options.prior,
        matcher=options.matcher, seed=options.seed, engine=options.engine, workers=options.workers,
    )  # fmt: skip
    result = reconstruct(options.input, options.out, config)
    trusted = int(result.trusted.sum())
    print(f"{len(result)} frames, {trusted} trusted")
    for frame, reason in sorted(result.reason.items())[:5]:
        print(f"  not trusted: {result.names[frame]}: {reason}")
    if len(result.reason) > 5:
        print(f"  and {len(result.reason) - 5} more, listed in run.json")
    print(f"run folder: {options.out.resolve()}")


def _weave(options: Options) -> "WeaveConfig":
    from geoweaver.pipeline import Config
    from geoweaver.weave import paper_config

    chosen = paper_config() if options.preset == "paper" else Config().weave
    if options.solver is None:
        return chosen
    alignment = replace(chosen.alignment, solver=replace(chosen.alignment.solver, solver=options.solver))
    return replace(chosen, alignment=alignment, refinement=replace(chosen.refinement, solver=options.solver))

"""geoweaver reconstruct: from a video or a folder of images to cameras, depth, a cloud and exports."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from geoweaver.errors import ConfigError

if TYPE_CHECKING:
    from geoweaver.datatypes import Reconstruction
    from geoweaver.pipeline import Config
    from geoweaver.weave import WeaveConfig

_File = Annotated[Path | None, arg(metavar="FILE")]
_Folder = Annotated[Path | None, arg(metavar="DIR")]
_Count = Annotated[int | None, arg(metavar="INT")]


@dataclass(frozen=True)
class Options:
    """Cameras, depth, cloud and exports of a video or a folder; a killed run goes on by the same command."""

    input: Positional[Annotated[Path, arg(metavar="VIDEO_OR_FOLDER")]]
    """A video file or a folder of images (sub-folders are physical cameras)."""
    out: Annotated[Path, arg(aliases=["-o"], metavar="OUT")]
    """The run's folder."""
    quality: Literal["draft", "normal", "high"] = "normal"
    """How much time to spend: image size, features, keyframes, matches, points; not with paper."""
    prior: str = "sfm"
    """NAME or NAME:PATH of the geometric prior: sfm needs no weights; gpm, da3-*, vggt, pi3, saved ..."""
    poses: _File = None
    """A trajectory of known cameras, told to priors that take them: gpm, da3-*, pi3x, mapanything."""
    matcher: str = "classical"
    """NAME or NAME:PATH of the matcher: classical needs no weights; roma, xfeat ..."""
    retriever: str = "vlad"
    """NAME or NAME:PATH of what finds places seen before: vlad needs no weights; salad:FILE."""
    preset: Literal["default", "paper"] = "default"
    """paper: fixed stride, all frames, the paper's literal residuals, Adam and table values."""
    solver: Annotated[Literal["lm", "adam"] | None, arg(metavar="{lm,adam}")] = None
    """Optimiser of Stages 2 and 3; without it the preset's."""
    stages: Literal[1, 2, 3] = 3
    """The last stage of the weave that is run."""
    polish: bool = True
    """Whether bundle adjustment of tracks follows Stage 3; the paper preset has none."""
    chunk_size: int = 60
    """Keyframes per chunk; neighbours share one."""
    intrinsics: Annotated[str | None, arg(metavar="NUMBERS|FILE")] = None
    """fx,fy,cx,cy[,k1,k2,p1,p2] in pixels of the original images, or a cameras.txt or transforms.json."""
    lens: Literal["auto", "pinhole"] = "auto"
    """Where no coefficients are given. auto: distortion is looked for and removed; pinhole: images stay."""
    masks: _Folder = None
    """Folder of masks named like the images: black pixels are ignored."""
    timestamps: _File = None
    """TUM rgb.txt, EuRoC csv or one number a line."""
    frames: _File = None
    """List of the frames to use, one name or index a line."""
    keyframes: Literal["auto", "all"] = "auto"
    """auto: by parallax and sharpness; all: every frame."""
    stride: int = 1
    """Use every n-th frame."""
    max_frames: _Count = None
    """Use at most so many frames."""
    max_size: _Count = None
    """Long side of the working images in pixels."""
    known_distance: Annotated[str | None, arg(metavar="A,B,METRES")] = None
    """How far apart the cameras of two frames (name, or index among all) are; the result is then metric."""
    scale: Annotated[float | None, arg(metavar="FACTOR")] = None
    """A plain factor on all lengths."""
    outputs: Literal["all", "cameras"] = "all"
    """cameras: only run.json and trajectory.tum; geoweaver export and report make the rest later."""
    engine: Literal["local", "ray"] = "local"
    """Where chunks and edges are computed."""
    address: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of the Ray cluster; with --engine ray alone."""
    workers: int = 0
    """Processes; 0: one per core."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where networks run."""
    seed: int = 0
    """Same seed, same input: same bytes."""
    overwrite: bool = False
    """Throw away what an earlier run left in the folder, once input and options are found good."""
    json: bool = False
    """Print run.json instead of the summary."""


def run(options: Options) -> None:
    """Reconstruct, then say what came out and where it is."""
    from geoweaver.pipeline import reconstruct

    result = reconstruct(options.input, options.out, make_config(options), options.overwrite)
    if options.json:
        print((options.out / "run.json").read_text(), end="")
    else:
        _summarise(options.out, result)


def make_config(options: Options) -> "Config":
    """What the command line asks for, resolved."""
    from geoweaver.frames import FramesConfig, KeyframeConfig
    from geoweaver.outputs import OutputConfig
    from geoweaver.pipeline import Config
    from geoweaver.priors.lens import LensConfig
    from geoweaver.quality import with_quality
    from geoweaver.scale import parse_scale
    from geoweaver.track_adjustment import PolishConfig

    _refuse_contradictions(options)
    frames = FramesConfig(
        options.intrinsics, options.masks, options.timestamps, options.frames,
        options.stride, options.max_frames, options.max_size,
    )  # fmt: skip
    paper = options.preset == "paper"
    config = Config(
        frames=frames, lens=LensConfig(options.lens),
        keyframes=KeyframeConfig("all" if paper else options.keyframes),
        weave=_weave(options), polish=PolishConfig(options.polish and not paper),
        chunk_size=options.chunk_size, fixed_stride=paper, prior=options.prior,
        poses=options.poses, matcher=options.matcher, retriever=options.retriever,
        scale=parse_scale(options.known_distance, options.scale), outputs=OutputConfig(options.outputs),
        seed=options.seed, engine=options.engine, workers=options.workers, address=options.address,
        device=options.device,
    )  # fmt: skip
    return with_quality(config, options.quality)


def _refuse_contradictions(options: Options) -> None:
    """Options that would silently undo, or be undone by, another."""
    if options.address is not None and options.engine == "local":
        raise ConfigError(
            f"--address {options.address}: the local engine has none: add --engine ray, or leave it out"
        )
    if options.quality != "normal" and options.preset == "paper":
        raise ConfigError(
            f"--quality {options.quality} changes values that --preset paper fixes: leave one of them out"
        )


def _weave(options: Options) -> "WeaveConfig":
    from geoweaver.pipeline import Config
    from geoweaver.weave import paper_config

    chosen = paper_config() if options.preset == "paper" else Config().weave
    chosen = replace(chosen, stages=options.stages)
    if options.solver is None:
        return chosen
    alignment = replace(chosen.alignment, solver=replace(chosen.alignment.solver, solver=options.solver))
    return replace(chosen, alignment=alignment, refinement=replace(chosen.refinement, solver=options.solver))


def _summarise(out: Path, result: "Reconstruction") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    summary = json.loads((out / "run.json").read_text())
    console, table = Console(highlight=False), Table(show_header=True, box=None, pad_edge=False)
    for head, side in (
        ("stage", "left"),
        ("seconds", "right"),
        ("memory MiB", "right"),
        ("iterations", "right"),
        ("error px", "right"),
    ):
        table.add_column(head, justify="right" if side == "right" else "left")
    inner = {report.name for report in result.reports}
    for stage in summary["stages"]:
        median = "" if stage["median_px"] is None else f"{stage['median_px']:.2f}"
        memory = "" if stage["peak_rss_mib"] is None else f"{stage['peak_rss_mib']:.0f}"
        table.add_row(
            ("  " if stage["name"] in inner else "") + stage["name"],
            f"{stage['seconds']:.1f}",
            memory,
            str(stage["iterations"] or ""),
            median,
        )
    console.print(table)
    trusted, total = summary["frames"]["trusted"], summary["frames"]["total"]
    console.print(f"{total} frames, {summary['frames']['keyframes']} of them keyframes, {trusted} trusted")
    if trusted < total:
        console.print(f"PARTIAL: {total - trusted} frames are not trusted; run.json says why, for example")
    elif summary["partial"]:
        console.print("PARTIAL: what could be read is trusted, but a part of the input is missing")
    for frame, reason in sorted(result.reason.items())[:3]:
        console.print(f"  {escape(result.names[frame])}: {escape(reason)}")
    for warning in summary["warnings"]:
        console.print(f"WARNING: {escape(warning)}", soft_wrap=True)
    peak = summary["peak_rss_bytes"] / 1e9
    console.print(
        f"{summary['seconds_total']:.0f} s, {peak:.1f} GB in the largest process; run folder: ", end=""
    )
    console.print(escape(str(out.resolve())), soft_wrap=True)
    if (out / "report.html").exists():
        console.print("look at it: ", escape(str(out.resolve() / "report.html")), soft_wrap=True, sep="")

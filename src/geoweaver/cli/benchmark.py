"""`geoweaver benchmark SUITE --data DIR -o OUT`: reconstruct a suite's scenes and score them, as a table."""

import shlex
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from geoweaver.errors import ConfigError, GeoWeaverError

if TYPE_CHECKING:
    from geoweaver.benchmark.scoring import Row
    from geoweaver.pipeline import Config

Method = Literal["geoweaver", "stage-1", "stage-2", "stage-3", "colmap"]
_Count = Annotated[int | None, arg(metavar="INT")]


@dataclass(frozen=True)
class Options:
    """Reconstruct the scenes of a suite and score them by the paper's protocol; the same command goes on."""

    suite: Positional[Literal["tanks-and-temples", "mip-nerf-360", "vkitti2", "oxford-spires", "folder"]]
    """The paper's suites, or folder: your own recordings with references (docs/benchmark.md)."""
    data: Annotated[Path, arg(metavar="DIR")]
    """Where the suite lies, as its authors' archives unpack."""
    out: Annotated[Path, arg(aliases=["-o"], metavar="OUT")]
    """Run folders OUT/SCENE, and the tables OUT/results.md and OUT/results.json."""
    scenes: Annotated[tuple[str, ...], arg(metavar="SCENE...")] = ()
    """Only these scenes."""
    methods: Annotated[tuple[Method, ...], arg(metavar="METHOD...")] = (
        "geoweaver", "stage-1", "stage-2", "stage-3",
    )  # fmt: skip
    """geoweaver; stage-1, stage-2, stage-3: the same run after that stage; colmap: COLMAP on its images."""
    calibrated: bool = False
    """Give the suite's intrinsics to the methods, where it has any; without it they are found."""
    quality: Literal["draft", "normal", "high"] = "normal"
    """How much time to spend; this and what follows is as in geoweaver reconstruct."""
    prior: str = "sfm"
    """NAME or NAME:PATH of the geometric prior."""
    matcher: str = "classical"
    """NAME or NAME:PATH of the matcher."""
    retriever: str = "vlad"
    """NAME or NAME:PATH of what finds places seen before."""
    preset: Literal["default", "paper"] = "default"
    """paper: fixed stride, all frames, the paper's literal residuals, Adam and table values."""
    solver: Annotated[Literal["lm", "adam"] | None, arg(metavar="{lm,adam}")] = None
    """Optimiser of Stages 2 and 3; without it the preset's."""
    polish: bool = True
    """Bundle adjustment of tracks after Stage 3."""
    chunk_size: int = 60
    """Keyframes per chunk."""
    lens: Literal["auto", "pinhole"] = "auto"
    """Where no coefficients are given. auto: distortion is looked for; pinhole: images stay."""
    keyframes: Literal["auto", "all"] = "auto"
    """auto: by parallax and sharpness; all: every frame."""
    stride: int = 1
    """Use every n-th frame; the others are not scored."""
    max_frames: _Count = None
    """Use at most so many frames; the others are not scored."""
    max_size: _Count = None
    """Long side of the working images in pixels."""
    outputs: Literal["all", "cameras"] = "cameras"
    """all: also cloud, exports, depth and report of every scene."""
    engine: Literal["local", "ray"] = "local"
    """Where chunks and edges are computed."""
    address: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of the Ray cluster."""
    workers: int = 0
    """Processes; 0: one per core."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where networks run."""
    seed: int = 0
    """Same seed, same input: same bytes."""
    max_time_diff: Annotated[float, arg(metavar="SECONDS")] = 0.01
    """How far apart the time stamps of one frame may be."""
    depth_unit: Annotated[float, arg(metavar="UNIT")] = 0.001
    """folder only: what one step of a depth PNG that states no unit is in the reference's units."""
    overwrite: bool = False
    """Throw away earlier runs of these scenes."""
    json: bool = False
    """Print results.json instead of the tables."""


def run(options: Options) -> None:
    """Find, run, score, print; scenes that failed make the exit code 2."""
    _check(options)
    from geoweaver.benchmark import Plan, find_scenes, run_benchmark
    from geoweaver.benchmark.plan import METHODS
    from geoweaver.benchmark.run import RESULTS, TABLE

    scenes = find_scenes(options.suite, options.data, options.scenes, options.calibrated, options.depth_unit)
    methods = tuple(method for method in METHODS if method in options.methods)
    plan = Plan(
        options.suite, _config(options), methods, options.max_time_diff, options.overwrite, _command(options)
    )
    rows = run_benchmark(scenes, options.out, plan)
    print((options.out / (RESULTS if options.json else TABLE)).read_text(), end="")
    _tell_failures(rows, options.out)


def _check(options: Options) -> None:
    if not options.max_time_diff >= 0:
        raise ConfigError(f"--max-time-diff is {options.max_time_diff}: give seconds, 0 or more")
    if not 0 < options.depth_unit < float("inf"):
        raise ConfigError(f"--depth-unit is {options.depth_unit}: give a positive number")
    if not options.methods:
        raise ConfigError("--methods names none: leave it out, or give one or more")


def _config(options: Options) -> "Config":
    """The settings of a `geoweaver reconstruct` with the same options."""
    from geoweaver.cli import reconstruct

    own = {field.name for field in fields(Options)}
    shared = [field.name for field in fields(reconstruct.Options) if field.name in own]
    given: dict[str, Any] = {name: getattr(options, name) for name in shared}
    return reconstruct.make_config(reconstruct.Options(input=options.data, **given))


def _command(options: Options) -> str:
    """The command that these options stand for, without those that are as they are anyway."""
    words = ["geoweaver", "benchmark", options.suite]
    for field in fields(Options)[1:]:
        value, name = getattr(options, field.name), field.name.replace("_", "-")
        if field.default is MISSING or value != field.default:
            words.append(f"--no-{name}" if value is False else f"--{name}")
            values = value if isinstance(value, tuple) else [value]
            words += [] if isinstance(value, bool) else map(str, values)
    return shlex.join(words)


def _tell_failures(rows: "list[Row]", out: Path) -> None:
    failed = {row["scene"]: row["reason"] for row in rows if row["status"] == "failed"}
    if failed:
        scene, reason = next(iter(failed.items()))
        tried = len({row["scene"] for row in rows if row["status"] != "not found"})
        raise GeoWeaverError(
            f"{len(failed)} of {tried} scenes failed, the first is {scene} ({reason}): "
            f"{out / 'results.md'} has the others"
        )

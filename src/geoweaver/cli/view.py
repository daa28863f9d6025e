"""`geoweaver view RUN...`: the runs in 3D in a browser, finished or still going on."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from geoweaver.errors import ConfigError, GeoWeaverError, InputError

if TYPE_CHECKING:
    from geoweaver.datatypes import Trajectory
    from geoweaver.results import FinishedRun
    from geoweaver.viewer.live import LiveViewer
    from geoweaver.viewer.scene import NamedRun, Scene

_Runs = Annotated[tuple[Path, ...], arg(metavar="RUN...", help_behavior_hint="")]
_POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Options:
    """Look at runs in a browser: points, cameras, every stage; several runs in one space."""

    runs: Positional[_Runs]
    """Run folders; one that is still being made shows what it has and is refreshed when it is done."""
    reference: Annotated[Path | None, arg(metavar="TRAJECTORY")] = None
    """Align the runs with this trajectory and draw it: any file that geoweaver evaluate takes."""
    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 lets every machine of the network look."""
    port: int = 8080
    """Port to serve on; 0 takes any free one."""


def run(options: Options) -> None:
    """Serve until Ctrl-C."""
    from geoweaver.viewer.live import open_viewer

    _check(options)
    viewer = open_viewer(options.host, options.port)
    try:
        print(f"open {viewer.url} in a browser; Ctrl-C ends", flush=True)
        _wait_for(viewer, options.runs)
        viewer.show(_scene(options))
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print()
    finally:
        viewer.stop()


def _check(options: Options) -> None:
    if not options.runs:
        raise ConfigError("which run? geoweaver view RUN...")
    for folder in options.runs:
        if not ((folder / "run.json").is_file() or (folder / "work").is_dir()):
            raise InputError(f"{folder} is no run: give the folder that geoweaver reconstruct -o made")
    if options.reference is not None and not options.reference.exists():
        raise InputError(f"{options.reference} is not there: give a trajectory that geoweaver evaluate takes")


def _wait_for(viewer: "LiveViewer", folders: tuple[Path, ...]) -> None:
    """Show what there is of runs that are going on, until all are done."""
    from geoweaver.viewer.live_unfinished import progress_of, show_unfinished

    shown = None
    while going := [folder for folder in folders if not (folder / "run.json").is_file()]:
        progress = [progress_of(folder) for folder in going]
        if progress != shown:
            shown = progress
            lines = [p.line(folder.resolve().name) for folder, p in zip(going, progress, strict=True)]
            viewer.say("still running" if any(p.running for p in progress) else "not running", lines)
            for line in (line for line, p in zip(lines, progress, strict=True) if not p.running):
                print(line, flush=True)
            show_unfinished(viewer.server, going)
        time.sleep(_POLL_SECONDS)


def _scene(options: Options) -> "Scene":
    from geoweaver.finished import load_run
    from geoweaver.formats.trajectory import read_trajectory
    from geoweaver.viewer.scene import build_scene

    runs = [load_run(folder) for folder in options.runs]
    reference = None if options.reference is None else read_trajectory(options.reference)
    common = reference or (_trajectory(runs[0]) if len(runs) > 1 else None)
    named = [_placed(folder, run, common) for folder, run in zip(options.runs, runs, strict=True)]
    return build_scene(named, None if reference is None else reference.cam_from_world)


def _placed(folder: Path, run: "FinishedRun", common: "Trajectory | None") -> "NamedRun":
    """A run, aligned with the common world by the frames that both have."""
    from geoweaver.evaluation import align, associate
    from geoweaver.geometry import Sim3
    from geoweaver.viewer.scene import NamedRun

    name = folder.resolve().name
    if common is None:
        return NamedRun(name, run, Sim3.identity())
    estimate = _trajectory(run)
    try:
        pairs = associate(estimate, common)
        common_from_run = align(
            estimate.cam_from_world[pairs.estimate], common.cam_from_world[pairs.reference]
        )
    except GeoWeaverError as error:
        raise type(error)(f"{folder} cannot be aligned: {error}") from None
    return NamedRun(name, run, common_from_run)


def _trajectory(run: "FinishedRun") -> "Trajectory":
    import torch

    from geoweaver.datatypes import Trajectory

    result = run.result
    index = torch.arange(len(result))
    return Trajectory(result.cam_from_world, index, result.names, result.timestamps, result.trusted)

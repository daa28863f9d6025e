"""GeoWeaver's own rows of a scene: one run, read as it ended and as it stood after each stage."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from geoweaver.assembly.frames_start import interpolate_cameras
from geoweaver.benchmark.plan import STAGES, Plan
from geoweaver.benchmark.scene import Scene
from geoweaver.benchmark.scoring import Row, camera_row, depth_row, failed_row, shown_part
from geoweaver.datatypes import Trajectory
from geoweaver.errors import GeoWeaverError
from geoweaver.formats.files import is_file, is_folder, write_text
from geoweaver.formats.json_document import read_json, write_json
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.pipeline import Config
from geoweaver.results import FinishedRun

_COST = "benchmark.json"


def scene_config(config: Config, scene: Scene, folder: Path) -> Config:
    """The settings of all scenes, with what is known about this one."""
    intrinsics = scene.intrinsics if scene.lens is None else str(_write_lens(scene, folder))
    frames = replace(config.frames, intrinsics=intrinsics, masks=scene.masks, timestamps=scene.timestamps)
    return replace(config, frames=frames)


def _write_lens(scene: Scene, folder: Path) -> Path:
    """The lens as a COLMAP cameras.txt beside the run."""
    assert scene.lens is not None
    numbers = " ".join(map(repr, (*scene.lens.size, *scene.lens.params)))
    write_text(folder / "lens.txt", f"1 {scene.lens.model} {numbers}\n")
    return folder / "lens.txt"


def own_rows(scene: Scene, folder: Path, plan: Plan, methods: tuple[str, ...]) -> list[Row]:
    """Run or go on, then score every method that reads this run."""
    reference = scene.read_reference()
    cost = _weave(scene, folder, plan)
    run, estimate = plan.load(folder), read_trajectory(folder)
    reference = shown_part(reference, estimate, plan.max_time_diff)
    rows: list[Row] = []
    for method in methods:
        cameras = estimate if method == "geoweaver" else _after(run, STAGES.index(method), estimate)
        try:
            row = {"scene": scene.name, "method": method, "status": "done"}
            row |= camera_row(cameras, reference, plan.max_time_diff)
        except GeoWeaverError as error:
            row = failed_row(scene, method, error)
        rows.append(row if method != "geoweaver" else row | _of_the_run(run, scene, row, cost))
    return rows


def _of_the_run(run: FinishedRun, scene: Scene, row: Row, cost: dict[str, Any]) -> Row:
    """What only the whole run has: its verdict, its cost, its depth."""
    depth = depth_row(run, scene, row["scale"]) if row["status"] == "done" else {}
    return {**run.summary["frames"], **cost, **depth}


def _after(run: FinishedRun, stage: int, estimate: Trajectory) -> Trajectory:
    """Cameras after a stage; frames that no prior placed lie between their neighbours."""
    view, placed = run.views[stage], run.chunk >= 0
    cameras = interpolate_cameras(view.cam_from_world, placed, run.frames.timestamps, run.frames.camera)
    return replace(estimate, cam_from_world=cameras)


def _weave(scene: Scene, folder: Path, plan: Plan) -> dict[str, Any]:
    """Reconstruct, and what it cost: a repeated run computes nothing, so the first one's figures stay."""
    known = read_json(folder / _COST, "what an earlier run cost") if is_file(folder / _COST) else {}
    begun = is_folder(folder / "work") and not plan.overwrite
    plan.reconstruct(scene.input, folder, scene_config(plan.config, scene, folder), plan.overwrite)
    run = read_json(folder / "run.json", "the summary of a run")
    if plan.overwrite or known.get("result") != run["result"]:
        known = {"result": run["result"], "cost": _cost(run, begun)}
        write_json(folder / _COST, known)
    cost: dict[str, Any] = known["cost"]
    return cost


def _cost(run: dict[str, Any], begun: bool) -> dict[str, Any]:
    """Memory of the hungriest stage: the process itself still remembers the peaks of earlier scenes."""
    stages = [s["peak_rss_mib"] for s in run["stages"] if s["peak_rss_mib"] is not None]
    return {
        "seconds": run["seconds_total"],
        "peak_mib": max(stages, default=run["peak_rss_bytes"] / 2**20),
        "resumed": begun,
    }

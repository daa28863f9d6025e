"""From pixels to a run folder, by the command that users type."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_sequence import FRAMES, OPTIONS, geoweaver

from geoweaver.evaluation.scores import score_trajectory
from geoweaver.finished import RunDepths, load_run
from geoweaver.formats.ply import read_ply
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry.grid import field_over_image

pytestmark = pytest.mark.slow


def files_and_times(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*.safetensors")}


def costs(folder: Path) -> dict[str, tuple[float, float]]:
    """Seconds and memory that run.json states."""
    run = json.loads((folder / "run.json").read_text())
    stages = {stage["name"]: (stage["seconds"], stage["peak_rss_mib"]) for stage in run["stages"]}
    return {**stages, "in all": (run["seconds_total"], run["peak_rss_bytes"])}


def test_a_run_leaves_what_the_contract_names(finished: Path) -> None:
    for name in ("run.json", "trajectory.tum", "colmap/sparse/0/images.bin", "colmap/images",
                 "transforms.json", "points.ply", "depth", "report.html", "work"):  # fmt: skip
        assert (finished / name).exists(), name
    run = json.loads((finished / "run.json").read_text())
    assert run["frames"]["total"] == FRAMES == len((finished / "trajectory.tum").read_text().splitlines())
    keys = {
        "version",
        "config",
        "frames",
        "untrusted",
        "rejected_edges",
        "stages",
        "seconds_total",
        "peak_rss_bytes",
    }
    assert keys <= set(run)
    assert {
        "name",
        "seconds",
        "iterations",
        "objective_start",
        "objective_end",
        "median_px",
        "why_stopped",
    } <= set(run["stages"][-1])
    memory = {stage["name"]: stage["peak_rss_mib"] for stage in run["stages"]}
    assert not run["masked"]
    assert memory["priors"] > 100 and memory["exports"] > 100 and memory["chunk alignment"] is None
    assert len(read_ply(finished / "points.ply")) > 1000


def test_the_cameras_are_right(finished: Path, small: Path) -> None:
    truth = read_trajectory(small / "groundtruth.tum")
    scores = score_trajectory(read_trajectory(finished), truth)
    way = float(truth.cam_from_world.centre.diff(dim=0).norm(dim=-1).sum())
    assert scores.ate < 0.03 * way and scores.auc30 > 80


def test_the_same_command_again_computes_nothing_and_gives_the_same_bytes(
    finished: Path, small: Path
) -> None:
    before, cameras = files_and_times(finished), (finished / "trajectory.tum").read_bytes()
    cloud, took = (finished / "points.ply").stat().st_mtime_ns, costs(finished)
    assert geoweaver("reconstruct", small / "images", "-o", finished, *OPTIONS).returncode == 0
    assert files_and_times(finished) == before
    assert (finished / "trajectory.tum").read_bytes() == cameras
    assert (finished / "points.ply").stat().st_mtime_ns == cloud
    assert costs(finished) == took, "reading what is there is not what it took"


def test_a_changed_option_recomputes_what_depends_on_it(finished: Path, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    (out / "exports").mkdir()
    before, took = set(files_and_times(out)), costs(out)
    options = (*OPTIONS, "--seed", "3", "--outputs", "cameras")
    assert geoweaver("reconstruct", small / "images", "-o", out, *options).returncode == 0
    takes = costs(out)
    same = {name for name in took.keys() & takes.keys() if took[name] == takes[name]}
    assert {"frames", "features", "graph", "matches", "priors"} <= same
    assert not same & {"weave", "polish", "frames between", "cloud"}
    new = {name.split("/")[1] for name in set(files_and_times(out)) - before}
    assert new <= {"weave", "polish", "result"} and new
    left = {path.name for path in out.iterdir()}
    assert left == {"run.json", "trajectory.tum", "work", "exports"}, "nothing of the earlier result"


def test_other_times_are_seen_in_the_trajectory(finished: Path, small: Path, tmp_path: Path) -> None:
    out, times = tmp_path / "run", tmp_path / "times.txt"
    shutil.copytree(finished, out)
    before = set(files_and_times(out))
    times.write_text("".join(f"{100 + 0.5 * k}\n" for k in range(FRAMES)))
    options = (*OPTIONS, "--timestamps", times, "--outputs", "cameras")
    assert geoweaver("reconstruct", small / "images", "-o", out, *options).returncode == 0
    rows = (out / "trajectory.tum").read_text().splitlines()
    assert [float(row.split()[0]) for row in rows] == [100 + 0.5 * k for k in range(FRAMES)]
    new = {name.split("/")[1] for name in set(files_and_times(out)) - before}
    assert new == {"weave", "polish", "result"}


def test_two_workers_give_the_same_bytes(finished: Path, small: Path, tmp_path: Path) -> None:
    options = (*OPTIONS[2:], "--workers", "2", "--outputs", "cameras")
    assert geoweaver("reconstruct", small / "images", "-o", tmp_path / "two", *options).returncode == 0
    assert (tmp_path / "two/trajectory.tum").read_bytes() == (finished / "trajectory.tum").read_bytes()


def test_a_moved_run_can_be_read(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "elsewhere")
    run = load_run(tmp_path / "elsewhere")
    frame = run.depths.frames[3]
    depth = run.depths.read(frame)
    assert float((depth.depth > 0).float().mean()) > 0.5
    assert run.frames.pixels is not None and run.frames.pixels.read(frame).ndim == 3
    assert len(run.matches.read(0)) and len(run.features.read(frame))
    assert [v.name for v in run.views] == ["Stage 1", "Stage 2", "Stage 3"]


def test_depth_agrees_with_the_cameras(finished: Path, small: Path) -> None:
    """A pixel lifted by the final depth and seen by a neighbour lands on that neighbour's depth."""
    run = load_run(finished)
    one, two = run.depths.frames[4], run.depths.frames[5]
    a, b = run.depths.read(one), run.depths.read(two)
    from geoweaver.geometry.camera import lift, pixel_centres, project_with_depth

    height, width = a.depth.shape
    pixel = pixel_centres(width, height).reshape(-1, 2)
    sure = ((a.depth > 0) & (a.confidence > a.confidence.median())).reshape(-1)
    local = lift(pixel[sure], a.depth.double().reshape(-1)[sure], a.intrinsics)
    cameras = run.result.cam_from_world
    seen, z = project_with_depth((cameras[two] @ cameras[one].inverse()).act(local), b.intrinsics)
    x, y = seen[:, 0].floor().long(), seen[:, 1].floor().long()
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height) & (z > 0)
    there = b.depth.double()[y[inside], x[inside]]
    error = ((there - z[inside]).abs() / z[inside])[there > 0]
    assert float(error.median()) < 0.03


def test_depth_is_bent_as_stage_3_found(finished: Path) -> None:
    depths = load_run(finished).depths
    assert isinstance(depths, RunDepths)
    saved, frame = depths.saved, depths.frames[3]
    assert saved.depth_bend is not None and float(saved.depth_bend[frame].abs().max()) > 0
    bent = depths.read(frame).depth.double() - saved.depth_shift[frame]
    flat = RunDepths(replace(saved, depth_bend=None), depths.priors).read(frame).depth.double()
    valid = (depths.read(frame).depth > 0) & (flat > 0)
    factor = field_over_image(saved.depth_bend[frame], *bent.shape).exp()
    expected = (flat - saved.depth_shift[frame]) * factor
    assert torch.allclose(bent[valid], expected[valid], rtol=1e-5)


def test_metres_from_a_known_distance(finished: Path, small: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    truth = read_trajectory(small / "groundtruth.tum").cam_from_world.centre
    metres = float((truth[12] - truth[1]).norm())
    known = ("--known-distance", f"1,12,{metres}", "--outputs", "cameras")
    done = geoweaver("reconstruct", small / "images", "-o", tmp_path / "run", *OPTIONS, *known)
    assert done.returncode == 0, done.stderr
    centres = read_trajectory(tmp_path / "run").cam_from_world.centre
    assert float((centres[12] - centres[1]).norm()) == pytest.approx(metres, rel=1e-6)

"""One run per scene, rows by the functions of `geoweaver evaluate`, and what happens when a scene fails."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_suites import (
    DEPTH,
    FRAMES,
    StandIn,
    done,
    make_folder_scene,
    make_mip_nerf,
    make_spires,
    make_tanks,
    make_vkitti,
    path,
    run,
)

from geoweaver.benchmark import Plan, Scene, find_scenes, run_benchmark
from geoweaver.datatypes import Camera
from geoweaver.errors import ConfigError
from geoweaver.evaluation import score_trajectory
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry import SE3
from geoweaver.pipeline import Config


@pytest.mark.parametrize(
    ("suite", "make", "scene"),
    [
        ("tanks-and-temples", make_tanks, "Barn"),
        ("mip-nerf-360", make_mip_nerf, "garden"),
        ("vkitti2", make_vkitti, "Scene18"),
        ("folder", make_folder_scene, "walk"),
    ],
)
def test_every_layout_is_scored_frame_by_frame(tmp_path, suite, make, scene):
    """Exact cameras in another world score perfectly, which no wrong order of frames would."""
    make(tmp_path / "data" / scene)
    rows = run(tmp_path / "data", tmp_path / "out", StandIn(off=0.0), suite)
    row = done(rows)
    assert (row["scene"], row["frames"], row["matched"], row["total"]) == (scene, FRAMES, FRAMES, FRAMES)
    assert row["ate"] < 1e-9 and row["rre_deg"] < 1e-6 and row["auc3"] > 100 - 1e-6
    assert row["trusted"] == FRAMES - 1
    missing = [row for row in rows if row["status"] == "not found"]
    assert len(missing) == len(find_scenes(suite, tmp_path / "data")) - 1
    assert all(row["method"] is None and row["reason"] for row in missing)


def test_spires_score_the_images_that_have_a_pose(tmp_path):
    make_spires(tmp_path / "data/2024-03-12-keble-college-04")
    scene = find_scenes("oxford-spires", tmp_path / "data")["keble-04"]
    assert isinstance(scene, Scene)
    cameras = scene.read_reference().cam_from_world
    every = cameras[torch.arange(2 * FRAMES) // 2]
    rows = run(tmp_path / "data", tmp_path / "out", StandIn(every, off=0.0), "oxford-spires")
    row = done(rows)
    assert (row["total"], row["frames"], row["matched"]) == (2 * FRAMES, FRAMES, FRAMES)
    assert row["ate"] < 1e-9


def test_rows_are_those_of_evaluate(tmp_path):
    folder = make_folder_scene(tmp_path / "data/walk")
    rows = run(tmp_path / "data", tmp_path / "out", StandIn(off=0.02))
    scores = score_trajectory(
        read_trajectory(tmp_path / "out/walk"), read_trajectory(folder / "groundtruth.tum")
    )
    assert scores.ate > 0.005 and 0 < scores.auc3 < 100
    assert {name: done(rows)[name] for name in scores.row()} == scores.row()


def test_stages_are_read_out_of_the_one_run(tmp_path):
    make_folder_scene(tmp_path / "data/walk")
    made = StandIn()
    rows = run(tmp_path / "data", tmp_path / "out", made)
    assert len(made.configs) == 1
    ates = [done(rows, method)["ate"] for method in ("stage-1", "stage-2", "stage-3", "geoweaver")]
    assert ates[0] > ates[1] > ates[2] and ates[2] == pytest.approx(ates[3])


def test_frames_that_no_prior_placed_lie_between_their_neighbours_in_a_stages_row(tmp_path):
    make_folder_scene(tmp_path / "data/walk")
    made = StandIn(off=0.0)

    def load(folder: Path):
        whole = made.load(folder)
        views = tuple(replace(v, cam_from_world=moved_away(v.cam_from_world, 3)) for v in whole.views)
        return replace(whole, views=views, chunk=torch.where(torch.arange(FRAMES) == 3, -1, whole.chunk))

    plan = Plan("folder", reconstruct=made.reconstruct, load=load)
    rows = run_benchmark(find_scenes("folder", tmp_path / "data"), tmp_path / "out", plan)
    centre = path().centre
    spread = float((centre - centre.mean(0)).norm(dim=-1).square().mean().sqrt())
    assert 0.001 * spread < done(rows, "stage-3")["ate"] < 0.2 * spread, (
        "the one that strayed would cost more"
    )


def moved_away(cameras, frame: int):
    translation = cameras.translation.clone()
    translation[frame] += 1000
    return replace(cameras, translation=translation)


def test_depth_is_scored_by_the_cameras_one_scale(tmp_path):
    make_vkitti(tmp_path / "data/Scene01", first=2)
    row = done(run(tmp_path / "data", tmp_path / "out", StandIn(off=0.0), "vkitti2"))
    assert row["absrel"] == pytest.approx(0.1, abs=1e-5)
    assert row["sqrel"] == pytest.approx(0.01 * DEPTH, abs=1e-5)
    assert row["depth_frames"] == FRAMES and row["depth_coverage"] == 1.0, "the sky does not count"


def test_depth_of_frames_that_were_left_out_is_not_missed(tmp_path):
    make_folder_scene(tmp_path / "data/walk", depth=True)
    config = replace(Config(), frames=replace(Config().frames, max_frames=5))
    row = done(run(tmp_path / "data", tmp_path / "out", StandIn(off=0.0), config=config))
    assert row["depth_frames"] == 3 and row["depth_coverage"] == 1.0


def test_depth_of_a_bent_lens_is_not_scored_and_that_is_said(tmp_path):
    make_folder_scene(tmp_path / "data/walk", depth=True)
    bent = Camera("SIMPLE_RADIAL", (50.0, 32.0, 24.0, -0.2), 64, 48)
    row = done(run(tmp_path / "data", tmp_path / "out", StandIn(lens=bent)))
    assert "absrel" not in row and "bent lens" in row["depth_note"]
    assert "bent lens" in (tmp_path / "out/results.md").read_text()


def test_wrong_depth_takes_nothing_from_the_cameras(tmp_path):
    folder = make_folder_scene(tmp_path / "data/walk", depth=True)
    next((folder / "depth").iterdir()).write_bytes(b"no picture")
    row = done(run(tmp_path / "data", tmp_path / "out", StandIn(off=0.0)))
    assert row["ate"] < 1e-9 and "absrel" not in row and "depth is not scored: " in row["depth_note"]


def test_a_stage_that_cannot_be_scored_takes_nothing_from_the_others(tmp_path):
    make_folder_scene(tmp_path / "data/walk")
    made = StandIn()

    def load(folder: Path):
        whole = made.load(folder)
        still = replace(whole.views[0], cam_from_world=SE3.identity(FRAMES))
        return replace(whole, views=(still, *whole.views[1:]))

    plan = Plan("folder", reconstruct=made.reconstruct, load=load)
    rows = run_benchmark(find_scenes("folder", tmp_path / "data"), tmp_path / "out", plan)
    status = {row["method"]: row["status"] for row in rows}
    assert status == {"geoweaver": "done", "stage-1": "failed", "stage-2": "done", "stage-3": "done"}


def test_frames_that_the_options_leave_out_are_not_scored(tmp_path):
    make_tanks(tmp_path / "data/Barn")
    config = replace(Config(), frames=replace(Config().frames, stride=2))
    row = done(run(tmp_path / "data", tmp_path / "out", StandIn(off=0.0), "tanks-and-temples", config=config))
    assert (row["frames"], row["matched"]) == (4, 4) and row["ate"] < 1e-9 and row["auc3"] > 100 - 1e-6


def test_a_failing_scene_does_not_end_the_others(tmp_path):
    for name in ("a", "b", "c"):
        make_folder_scene(tmp_path / "data" / name)
    rows = run(tmp_path / "data", tmp_path / "out", StandIn(fails=("b",)))
    assert {row["status"] for row in rows if row["scene"] in "ac"} == {"done"}
    failed = [row for row in rows if row["scene"] == "b"]
    assert {row["method"] for row in failed} == {"geoweaver", "stage-1", "stage-2", "stage-3"}
    assert all("made to fail" in row["reason"] and row["status"] == "failed" for row in failed)


def test_a_wrong_reference_fails_before_anything_is_computed(tmp_path):
    (make_folder_scene(tmp_path / "data/walk") / "groundtruth.tum").write_text("no numbers here\n")
    made = StandIn()
    rows = run(tmp_path / "data", tmp_path / "out", made)
    assert not made.configs and all("groundtruth.tum" in row["reason"] for row in rows)


def test_wrong_options_end_everything_at_once(tmp_path):
    for name in ("a", "b"):
        make_folder_scene(tmp_path / "data" / name)
    made = StandIn(fails=("a", "b"), error=ConfigError)
    with pytest.raises(ConfigError):
        run(tmp_path / "data", tmp_path / "out", made)
    assert len(made.configs) == 1


def test_a_bug_is_not_taken_for_a_failing_scene(tmp_path):
    make_folder_scene(tmp_path / "data/a")
    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "data", tmp_path / "out", StandIn(fails=("a",), error=ZeroDivisionError))


def test_a_repeated_run_keeps_what_the_first_one_cost(tmp_path):
    make_folder_scene(tmp_path / "data/walk")
    made = StandIn()
    first = done(run(tmp_path / "data", tmp_path / "out", made))
    assert (first["seconds"], first["peak_mib"], first["resumed"]) == (50.0, 300.0, False)
    assert done(run(tmp_path / "data", tmp_path / "out", made)) == first
    other = done(run(tmp_path / "data", tmp_path / "out", made, config=Config(seed=3)))
    assert (other["seconds"], other["resumed"]) == (1.0, True)
    assert "| 1+ |" in (tmp_path / "out/results.md").read_text().replace("      ", " ")
    anew = done(run(tmp_path / "data", tmp_path / "out", made, overwrite=True))
    assert (anew["seconds"], anew["resumed"]) == (1.0, False)


def test_results_are_there_after_every_scene(tmp_path):
    for name in ("a", "b"):
        make_folder_scene(tmp_path / "data" / name)
    made = StandIn(fails=("b",), error=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "data", tmp_path / "out", made, command="geoweaver benchmark folder")
    told = json.loads((tmp_path / "out/results.json").read_text())
    assert {"command", "date", "suite", "machine", "rows"} <= set(told)
    assert told["suite"] == "folder" and told["command"] == "geoweaver benchmark folder"
    assert {row["scene"] for row in told["rows"]} == {"a"} and told["machine"]["cores"] >= 1


def test_what_is_known_of_a_scene_reaches_its_run(tmp_path):
    folder = make_folder_scene(tmp_path / "data/walk")
    (folder / "intrinsics.txt").write_text("50 50 32 24\n")
    (folder / "timestamps.txt").write_text("".join(f"{k}\n" for k in range(FRAMES)))
    made = StandIn()
    run(tmp_path / "data", tmp_path / "out", made, config=Config(seed=5))
    (config,) = made.configs
    assert config.frames.intrinsics == "50,50,32,24" and config.seed == 5
    assert config.frames.timestamps == folder / "timestamps.txt"


def test_a_reference_of_another_recording_is_a_failed_row(tmp_path):
    make_mip_nerf(tmp_path / "data/garden")
    for k, file in enumerate(sorted((tmp_path / "data/garden/images_4").iterdir())):
        file.rename(file.with_name(f"other{k}.jpg"))
    rows = run(tmp_path / "data", tmp_path / "out", StandIn(path()), "mip-nerf-360")
    failed = [row for row in rows if row["status"] == "failed"]
    assert failed and all("no common frames" in row["reason"] for row in failed)

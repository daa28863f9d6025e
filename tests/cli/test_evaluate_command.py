"""`geoweaver evaluate` as users and scripts run it: what it prints of paths, runs and depth."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from tum_walks import GEOWEAVER, real_command, save, walk

from geoweaver.formats.depth import write_depth

KEYS = ["frames", "matched", "ate", "rre_deg", "auc3", "auc5", "auc30", "scale"]


def test_one_estimate_is_an_object_with_the_agreed_keys(scores, estimate, reference):
    result = scores(estimate, reference)
    assert list(result) == KEYS
    assert result["frames"] == result["matched"] == 20
    assert result["scale"] == pytest.approx(0.5, rel=1e-2)
    assert 0 < result["ate"] < 0.02


def test_several_estimates_are_a_list_and_say_which(scores, estimate, reference):
    both = scores(estimate, reference, reference)
    assert [row["estimate"] for row in both] == [str(estimate), str(reference)]
    assert list(both[0]) == ["estimate", *KEYS]
    assert {key: both[0][key] for key in KEYS} == scores(estimate, reference)
    assert both[1]["auc3"] == pytest.approx(100)


def test_the_table_has_a_line_per_estimate(evaluate, estimate, reference):
    result = evaluate(estimate, reference, reference)
    lines = result.stdout.splitlines()
    assert result.returncode == 0 and not result.stderr
    assert len(lines) == 3 and "AUC@30" in lines[0] and lines[1].startswith(str(estimate))


def test_options_may_come_first(estimate, reference):
    result = real_command("--json", "--missing", "ignore", estimate, reference)
    assert json.loads(result.stdout)["matched"] == 20


def test_missing_frames(scores, tmp_path, reference):
    part = save(tmp_path / "part.tum", walk()[:15])
    assert scores(part, reference)["auc30"] == pytest.approx(100 * 15 * 14 / (20 * 19))
    assert scores(part, reference, "--missing", "ignore")["auc30"] == pytest.approx(100)


def test_the_tolerance(evaluate, scores, tmp_path, reference):
    late = walk()
    late[:, 0] += 0.3
    late = save(tmp_path / "late.tum", late)
    assert evaluate(late, reference).returncode == 2
    assert scores(late, reference, "--max-time-diff", "0.4")["matched"] == 20


def test_trust_that_is_not_stated_is_said_on_stderr(evaluate, estimate, reference):
    result = evaluate(estimate, reference, "--trusted-only", "--json")
    assert result.returncode == 0 and "does not say which frames it trusts" in result.stderr
    assert json.loads(result.stdout)["matched"] == 20


def test_a_plot_is_written(evaluate, tmp_path, estimate, reference):
    result = evaluate(estimate, reference, reference, "--plot", tmp_path / "plot.png", "--json")
    assert result.returncode == 0 and not result.stderr
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_names_that_no_terminal_shows(tmp_path, scores, reference):
    names = [b"\xff\xfe.tum", b"new\nline.tum", "漢字 $x$.tum".encode()]
    paths = [save(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)), walk()) for name in names]
    command = [GEOWEAVER, "evaluate", *map(os.fspath, [*paths, reference])]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, env=environment, timeout=120)
    assert result.returncode == 0 and result.stderr == b"", result.stderr
    assert result.stdout.count(b"\n") == 4
    assert [row["estimate"] for row in scores(*paths, reference)] == [str(path) for path in paths]


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["indoor_walk", "street_loop", "drone_room"])
def test_evos_numbers_on_real_paths(realdata, tmp_path, scores, name):
    """Both programs read the same files; every seventh frame is missing and the rest are off and scaled."""
    from evo.core import metrics, sync
    from evo.tools import file_interface

    truth = realdata / name / "groundtruth.tum"
    rng = np.random.default_rng(0)
    rows = np.delete(np.loadtxt(truth), np.s_[::7], axis=0)
    rows[:, 1:4] = 3 * (rows[:, 1:4] + rng.normal(scale=0.2, size=(len(rows), 3)))[:, [2, 0, 1]] - 40
    rows[:, 4:] += rng.normal(scale=0.02, size=(len(rows), 4))
    rows[:, 4:] /= np.linalg.norm(rows[:, 4:], axis=1, keepdims=True)
    estimate = save(tmp_path / "estimate.tum", rows)
    paths = [file_interface.read_tum_trajectory_file(str(path)) for path in (truth, estimate)]
    theirs = sync.associate_trajectories(*paths, max_diff=0.01)
    theirs[1].align(theirs[0], correct_scale=True)
    expected = []
    for relation in (metrics.PoseRelation.translation_part, metrics.PoseRelation.rotation_angle_deg):
        expected.append(metrics.APE(relation))
        expected[-1].process_data(theirs)
    ours = scores(estimate, truth)
    assert ours["matched"] == len(rows) == theirs[0].num_poses
    assert ours["ate"] == pytest.approx(expected[0].get_statistic(metrics.StatisticsType.rmse), rel=1e-9)
    assert ours["rre_deg"] == pytest.approx(expected[1].get_statistic(metrics.StatisticsType.mean), rel=1e-6)


@pytest.mark.realdata
def test_real_depth_against_itself(realdata, tmp_path, scores):
    path = realdata / "indoor_walk" / "groundtruth.tum"
    for frame in range(0, 20, 2):
        (tmp_path / f"{frame:06d}.png").symlink_to(realdata / "indoor_walk" / "depth" / f"{frame:06d}.png")
    result = scores(path, path, "--depth", tmp_path, "--estimate-depth", realdata / "indoor_walk" / "depth")
    assert result["absrel"] < 1e-9 and result["depth_coverage"] == 1 and result["depth_frames"] == 10


@pytest.mark.realdata
def test_real_paths_against_themselves(realdata, scores):
    for name in ("indoor_walk", "street_loop", "drone_room"):
        path = realdata / name / "groundtruth.tum"
        result = scores(path, path)
        assert result["ate"] < 1e-9 and result["auc3"] > 99.999 and result["scale"] == pytest.approx(1)


def run_folder(path, rows, untrusted=()):
    """What of a run `evaluate` reads."""
    path.mkdir()
    save(path / "trajectory.tum", rows)
    reasons = [{"frame": frame, "reason": "blur"} for frame in untrusted]
    (path / "run.json").write_text(json.dumps({"version": "0", "untrusted": reasons}))
    return path


def test_a_run_folder_and_its_trust(tmp_path, scores, reference):
    rows = walk()
    rows[[4, 9], 1:4] += 50
    run = run_folder(tmp_path / "run", rows, untrusted=[4, 9])
    assert scores(run, reference)["ate"] > 1
    trusted = scores(run, reference, "--trusted-only")
    assert trusted["ate"] < 1e-9 and trusted["matched"] == 18
    assert trusted["auc3"] == pytest.approx(100 * 18 * 17 / (20 * 19))
    assert scores(run, reference, "--trusted-only", "--missing", "ignore")["auc3"] == pytest.approx(100)


def test_depth_of_a_run(tmp_path, scores, evaluate, reference):
    rows = walk()
    rows[:, 1:4] *= 4
    run = run_folder(tmp_path / "run", rows)
    truth = torch.rand(6, 8, generator=torch.Generator().manual_seed(0)) + 1
    for frame in (0, 2):
        write_depth(tmp_path / "truth" / f"{frame:06d}.png", truth)
        write_depth(run / "depth" / f"{frame:06d}.npy", 4 * truth * (1 + frame))
    result = scores(run, reference, "--depth", tmp_path / "truth")
    assert list(result) == [*KEYS, "absrel", "sqrel", "depth_frames", "depth_coverage"]
    assert result["absrel"] == pytest.approx(1, rel=1e-3), (
        "one frame is right, the other three times too deep"
    )
    median = scores(run, reference, "--depth", tmp_path / "truth", "--depth-align", "median")
    assert median["absrel"] < 1e-3
    beside = scores(reference, reference, "--depth", tmp_path / "truth", "--estimate-depth", run / "depth")
    assert beside["absrel"] > 3
    assert "AbsRel" in evaluate(run, reference, "--depth", tmp_path / "truth").stdout


def test_no_depth_to_score_is_said(tmp_path, evaluate, reference):
    write_depth(tmp_path / "truth" / "0.png", torch.ones(4, 4))
    result = evaluate(run_folder(tmp_path / "run", walk()), reference, "--depth", tmp_path / "truth")
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and "run/depth" in result.stderr

"""`geoweaver evaluate` as users and scripts run it: good input, bad input, exit codes, one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from geoweaver.cli.main import main
from geoweaver.formats.depth import write_depth

GEOWEAVER = str(Path(sys.executable).with_name("geoweaver"))
KEYS = ["frames", "matched", "ate", "rre_deg", "auc3", "auc5", "auc30", "scale"]


def real_command(*arguments):
    command = [GEOWEAVER, "evaluate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def evaluate(capfd):
    """The command in this process, which spares most tests the start of an interpreter."""

    def call(*arguments):
        code = main(["evaluate", *map(str, arguments)])
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return call


@pytest.fixture
def scores(evaluate):
    def call(*arguments):
        result = evaluate(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return call


def walk(frames=20, seed=0):
    """Rows of a TUM file."""
    rng = np.random.default_rng(seed)
    quaternion = np.array([0.0, 0, 0, 1]) + 0.1 * rng.normal(size=(frames, 4)).cumsum(0)
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    centre = rng.normal(size=(frames, 3)).cumsum(0)
    return np.concatenate([np.arange(frames)[:, None], centre, quaternion], 1)


def save(path, rows):
    np.savetxt(path, rows)
    return path


@pytest.fixture
def reference(tmp_path):
    return save(tmp_path / "reference.tum", walk())


@pytest.fixture
def estimate(tmp_path):
    rows = walk()
    rows[:, 1:4] = 2 * rows[:, [3, 1, 2]] + np.random.default_rng(1).normal(size=(20, 3)) * 0.01 + 7
    return save(tmp_path / "estimate.tum", rows)


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


def bad(name, content):
    def write(folder):
        path = folder / name
        path.write_bytes(content) if isinstance(content, bytes) else np.savetxt(path, content)
        return path

    return write


def edited(**changes):
    rows = walk()
    for place, value in changes.items():
        row, column = (int(part) for part in place.strip("_").split("_"))
        rows[row, column] = value
    return rows


def text(rows):
    return "\n".join(" ".join(map(repr, row)) for row in rows.tolist()).encode()


def folder(path):
    path = path / "empty"
    path.mkdir()
    return path


def zero_quaternion():
    rows = walk()
    rows[3, 4:] = 0
    return rows


BAD = {
    "truncated": (bad("truncated.tum", text(walk())[:-30]), "truncated.tum, line 20"),
    "text": (bad("text.tum", text(walk()).replace(b"3.0 ", b"three ", 1)), "'three'"),
    "nan": (bad("nan.tum", edited(_4_2=np.nan)), "line 5"),
    "infinite": (bad("infinite.tum", edited(_4_2=np.inf)), "line 5"),
    "zero quaternion": (bad("zero.tum", zero_quaternion()), "line 4"),
    "two frames": (bad("two.tum", walk()[:2]), "two.tum: only 2 common frames"),
    "no common times": (bad("late.tum", walk() + np.eye(8)[0] * 1e6), "one clock"),
    "binary": (bad("binary.tum", bytes(range(256)) * 20), "binary"),
    "jpeg": (bad("photo.tum", b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(1000)), "binary"),
    "empty file": (bad("empty.tum", b""), "no data"),
    "comments only": (bad("comments.tum", b"# nothing\n\n"), "no data"),
    "empty folder": (folder, "empty"),
    "no such file": (lambda path: path / "nowhere.tum", "does not exist"),
    "one place": (bad("still.tum", walk() * [1, 0, 0, 0, 1, 1, 1, 1]), "stand at one place"),
    "wrong columns": (bad("columns.tum", walk()[:, :5]), "5 columns"),
}


@pytest.mark.parametrize("side", ["estimate", "reference"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line_and_2(tmp_path, evaluate, reference, case, side):
    write, words = BAD[case]
    path = write(tmp_path)
    arguments = [path, reference] if side == "estimate" else [reference, path]
    result = evaluate(*arguments, "--json")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert words.split(": ")[-1] in result.stderr
    assert path.name in result.stderr or side == "reference", "the message says where"


REAL = (
    "truncated",
    "text",
    "nan",
    "zero quaternion",
    "two frames",
    "no common times",
    "binary",
    "empty folder",
)


@pytest.mark.parametrize("case", REAL)
def test_bad_input_to_the_real_command(tmp_path, reference, case):
    result = real_command(BAD[case][0](tmp_path), reference)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.stderr


def test_a_bad_one_among_good_ones_is_named(evaluate, tmp_path, estimate, reference):
    result = evaluate(estimate, BAD["two frames"][0](tmp_path), reference)
    assert result.returncode == 2 and "two.tum" in result.stderr and result.stdout == ""


def test_an_unwritable_plot_is_said(evaluate, tmp_path, estimate, reference):
    result = evaluate(estimate, reference, "--plot", reference / "plot.png")
    assert (
        result.returncode == 2
        and result.stderr.count("\n") == 1
        and "plot.png cannot be written" in result.stderr
    )


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

"""Every example runs as its first lines say, on a few rendered frames."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

from geoweaver.evaluation import score_trajectory
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.synth.clips import ClipOptions, make_clip
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import join
from geoweaver.synth.sequence import Output, write_sequence
from geoweaver.synth.solids import box, sheet
from geoweaver.synth.walls import wall
from geoweaver.synth.world import World

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = (
    "reconstruct", "inspect_priors", "own_prior", "stage_by_stage", "export_to_splats",
    "evaluate", "compare_runs",
)  # fmt: skip


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sequence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve frames of a walk through a brick room, with depth and cameras."""
    walls = [wall("x", y, (-2.5, 2.5), 2.5, "brick", "plain", [], 0.1) for y in (-2.5, 2.5)]
    walls += [wall("y", x, (-2.5, 2.5), 2.5, "brick", "brick", [], 0.1) for x in (-2.5, 2.5)]
    block = box((0.9, -1.7, 0), (1.7, -0.9, 0.9), {"": "print", "+z": "poster:1"}, fit=False)
    angle = np.arange(8) * np.pi / 4
    ring = np.stack([1.1 * np.cos(angle), 1.1 * np.sin(angle), np.full(8, 1.4)], -1)
    quads = join(sheet((-2.5, -2.5), (2.5, 2.5), 0, "tiles"), *walls, block)
    world = World("room", 3, quads, {"walk": ring}, Light(reach=0.5))
    folder = tmp_path_factory.mktemp("sequence")
    write_sequence(
        make_clip(world, ClipOptions(frames=12, size=(256, 192), laps=0.25)), folder, Output("jpg")
    )
    return folder


@pytest.fixture(scope="module")
def run(sequence: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "first"
    example("reconstruct").main(sequence / "images", out)
    return out


def ate(run: Path, sequence: Path) -> float:
    return score_trajectory(read_trajectory(run), read_trajectory(sequence / "groundtruth.tum")).ate


def test_every_example_is_tested_and_listed() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NAMES)
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"{name}.py" in listed for name in NAMES)


def test_reconstruct_finds_the_cameras(run: Path, sequence: Path) -> None:
    assert ate(run, sequence) < 0.05


def test_inspect_priors_draws_a_frame(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example("inspect_priors").main(run, tmp_path / "priors.png")
    assert cv2.imread(str(tmp_path / "priors.png")).std() > 10
    assert "covered" in capsys.readouterr().out


def test_export_to_splats_writes_images_and_points(run: Path, tmp_path: Path) -> None:
    example("export_to_splats").main(run, tmp_path / "splats")
    sizes = [
        cv2.imread(str(next((tmp_path / "splats" / folder).iterdir()))).shape[:2]
        for folder in ("images", "images_2")
    ]
    assert sizes == [(192, 256), (96, 128)]


def test_evaluate_and_compare_print_scores(
    run: Path, sequence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example("evaluate").main(run, sequence / "groundtruth.tum")
    assert "12 of 12 frames matched" in capsys.readouterr().out
    example("compare_runs").main(tmp_path / "plot.png", sequence / "groundtruth.tum", [run, run])
    assert capsys.readouterr().out.count("first") >= 2 and (tmp_path / "plot.png").stat().st_size > 1000


@pytest.mark.slow
def test_stage_by_stage_goes_the_same_way(
    run: Path, sequence: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # in the same workspace: all but the weave is found there
    example("stage_by_stage").main(sequence / "images", run)
    assert "12 of 12 cameras are trusted" in capsys.readouterr().out


@pytest.mark.slow
def test_own_prior_is_woven_as_a_user_runs_it(sequence: Path, tmp_path: Path) -> None:
    # as its own process: the model travels to the workers by name
    command = [sys.executable, EXAMPLES / "own_prior.py", sequence, tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    assert ate(tmp_path / "run", sequence) < 0.02

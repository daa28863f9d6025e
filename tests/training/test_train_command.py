"""`geoweaver train` as users run it: exit codes, one-line errors, going on, the two stages in a row."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_training import TINY, tiny_network

from geoweaver.cli.main import main
from geoweaver.models import load_gpm_folder, save_gpm


@pytest.fixture
def init(tmp_path: Path) -> Path:
    save_gpm(tiny_network(config=replace(TINY, camera_head="mlp")), tmp_path / "init")
    return tmp_path / "init"


def options(films: Path, init: Path, out: Path) -> list[str]:
    quick = "--iterations 2 --frames-per-device 4 --long-side 42 --device cpu --loaders 0 --head-rate 1e-3"
    return ["train", "--data", f"folder:{films}", "--init", str(init), "-o", str(out), *quick.split()]


def test_both_stages_one_after_the_other(
    films: Path, init: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert main([*options(films, init, one), "--camera-head", "transformer"]) == 0
    assert f"--prior gpm:{one}" in capfd.readouterr().out
    assert load_gpm_folder(one).config.camera_head == "transformer"
    held = ["--held-out", f"folder:{films}", "--held-out", f"folder:{films / 'walk0'}"]
    assert main([*options(films, one, two), "--stage", "2", *held]) == 0
    assert json.loads((two / "training.json").read_text())["config"]["views"] == [2, 4]
    assert "val_absrel" in json.loads((two / "log.jsonl").read_text().splitlines()[-1])
    # again: nothing is left to do, and --overwrite begins anew
    before = (one / "model.safetensors").stat().st_mtime_ns
    assert main([*options(films, init, one), "--camera-head", "transformer"]) == 0
    anew = ["--camera-head", "transformer", "--seed", "3", "--overwrite"]
    assert main([*options(films, init, one), *anew]) == 0
    assert (one / "model.safetensors").stat().st_mtime_ns > before


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--data", "nonsense:x"], "NAME one of folder, render"),
        (["--init", "/nowhere/at/all"], "no such checkpoint"),
        (["--iterations", "0"], "1 at least"),
        (["--frames-per-device", "3"], "frames per device"),
        (["--stage", "3"], "--stage"),
        (["--devices", "0"], "--devices 0"),
        (["--long-sid", "42"], "did you mean --long-side?"),
        (["--stage", "1", "--long-side", "14"], "cannot be cut into patches"),
    ],
)
def test_mistakes_are_one_line_and_code_2(
    films: Path, init: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main([*options(films, init, tmp_path / "out"), *more]) == 2
    complaint = capfd.readouterr().err.strip()
    assert words in complaint and complaint.count("\n") == 0
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_other_settings_in_a_used_folder(
    films: Path, init: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(options(films, init, tmp_path / "out")) == 0
    assert main([*options(films, init, tmp_path / "out"), "--seed", "4"]) == 2
    assert "other settings (seed)" in capfd.readouterr().err


def test_several_devices_need_the_extra(
    films: Path,
    init: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    assert main([*options(films, init, tmp_path / "out"), "--devices", "2"]) == 2
    assert "geoweaver[train]" in capfd.readouterr().err


@pytest.mark.slow
def test_two_processes_learn_as_one(films: Path, init: Path, tmp_path: Path) -> None:
    """Through lightning-fabric on the CPU; both begin with the same weights and end with the same."""
    pytest.importorskip("lightning_fabric")
    command = [sys.executable, "-m", "geoweaver", *options(films, init, tmp_path / "out"), "--devices", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("use it:") == 1
    assert json.loads((tmp_path / "out/training.json").read_text())["processes"] == 2
    load_gpm_folder(tmp_path / "out")

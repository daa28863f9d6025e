"""`geoweaver train` as users run it: exit codes, one-line errors, going on, the two stages in a row."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from tiny_training import TINY, noise_scene, tiny_network

from geoweaver.cli.main import main
from geoweaver.cli.train import Options, _config
from geoweaver.models import load_gpm_folder, save_gpm
from geoweaver.training.datasets import registry
from geoweaver.training.loop import predict
from geoweaver.training.losses import front_loss
from geoweaver.training.optimiser import freeze_untrained, make_optimiser, set_rates
from geoweaver.training.sampling import training_batch
from geoweaver.training.settings import STAGES


@pytest.fixture
def init(tmp_path: Path) -> Path:
    save_gpm(tiny_network(config=replace(TINY, camera_head="mlp")), tmp_path / "init")
    return tmp_path / "init"


def options(films: Path, init: Path, out: Path) -> list[str]:
    quick = "--iterations 2 --frames-per-device 4 --long-side 42 --device cpu --loaders 0 --head-rate 1e-3"
    return ["train", "--data", f"folder:{films}", "--init", str(init), "-o", str(out), *quick.split()]


@pytest.mark.parametrize("stage", [1, 2])
def test_without_options_it_is_the_papers_training(stage: Literal[1, 2]) -> None:
    given = Options(out=Path("out"), init=Path("init"), data=("folder:x",), stage=stage)
    assert _config(given) == STAGES[stage]
    assert _config(replace(given, frames_per_device=8)).views == {1: (4, 4), 2: (2, 8)}[stage]


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
    assert "[train]" in capfd.readouterr().err


def test_ctrl_c_keeps_the_step_and_says_how_to_go_on(
    films: Path,
    init: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    reads = []

    def on_read(frame: int) -> None:
        reads.append(frame)
        if len(reads) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setitem(registry.SOURCES, "folder", lambda path: [noise_scene(8, on_read=on_read)])
    command = options(films, init, tmp_path / "out")
    assert main(command) == 130
    assert "go on from the last finished piece with the same command" in capfd.readouterr().err
    assert len(reads) == 4  # one step of four views
    assert main(command) == 0
    assert "going on at iteration 1 of 2" in caplog.text and len(reads) == 8


@pytest.mark.slow
def test_two_processes_average_their_gradients(films: Path, init: Path, tmp_path: Path) -> None:
    """Through lightning-fabric on the CPU, against the same step by hand."""
    pytest.importorskip("lightning_fabric")
    arguments = [*options(films, init, tmp_path / "out"), "--iterations", "1", "--devices", "2"]
    command = [sys.executable, "-m", "geoweaver", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("use it:") == 1
    assert json.loads((tmp_path / "out/training.json").read_text())["processes"] == 2

    network, sources = load_gpm_folder(init).train(), registry.open_sources([f"folder:{films}"])
    config = replace(STAGES[1], iterations=1, frames_per_device=4, long_side=42, head_rate=1e-3)
    freeze_untrained(network)
    optimiser = make_optimiser(network, config)
    set_rates(optimiser, config, 0)
    for rank in (0, 1):
        batch = training_batch(sources, config, 0, rank)
        (front_loss(predict(network, batch.images), batch, config.loss).total / 2).backward()
    trained = [p for p in network.parameters() if p.requires_grad]
    torch.nn.utils.clip_grad_norm_(trained, config.gradient_norm)
    optimiser.step()
    other = load_gpm_folder(tmp_path / "out").state_dict()
    for name, value in network.state_dict().items():
        # the first step of Adam is the sign of the gradient: where that is rounding noise, anything goes
        off = (value - other[name]).abs() > 1e-5
        assert float(off.float().mean()) < 0.01, name

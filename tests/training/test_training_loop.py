"""A tiny GPM learns two clips by heart; a killed or interrupted training ends with the same bytes."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_training import TINY, noise_source, tiny_config, tiny_network

from geoweaver.errors import ConfigError, DegenerateError, FormatError
from geoweaver.evaluation.depth import score_depth
from geoweaver.models import GPM, load_gpm_folder
from geoweaver.priors.gpm import load_network, locate_gpm
from geoweaver.priors.views import Views
from geoweaver.training.batch import Batch
from geoweaver.training.checkpoint import CHECKPOINT
from geoweaver.training.datasets.registry import open_sources
from geoweaver.training.loop import LOG, SETTINGS, Data, predict, train
from geoweaver.training.losses import front_loss
from geoweaver.training.sampling import read_clip
from geoweaver.training.settings import LossWeights
from geoweaver.training.validation import depth_frames

FILES = ("model.safetensors", "config.json", CHECKPOINT, LOG)


class Killed(BaseException):
    """Nothing in the loop catches this: as SIGKILL, it leaves only what was on disk."""


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def scores(network: GPM, clips: list[Batch]) -> tuple[float, float]:
    """The loss as plain distances (a confidence of 1 everywhere), and AbsRel after median scaling."""
    loss, frames = 0.0, []
    for clip in clips:
        with torch.no_grad():
            output = predict(network.eval(), clip.images)
        plain = replace(output, confidence=torch.ones_like(output.depth))
        loss += float(front_loss(plain, clip, LossWeights()).total) / len(clips)
        frames += depth_frames(output, clip)
    return loss, score_depth(frames, align="median").absrel


def test_two_clips_are_learnt_by_heart(films: Path, tmp_path: Path) -> None:
    sources = open_sources([f"folder:{films}"])
    clips = [read_clip(scene, range(4), (84, 56)) for scene in sources[0].scenes]
    loss, absrel = scores(tiny_network(), clips)
    config = tiny_config(iterations=80, log_every=80, checkpoint_every=80, weight_decay=0.0, long_side=84)
    train(tiny_network(), Data(sources, sources), tmp_path, config)
    trained_loss, trained_absrel = scores(load_gpm_folder(tmp_path), clips)
    first, last = (json.loads(line) for line in (tmp_path / LOG).read_text().splitlines())
    # measured: 1.27 -> 0.15 and 0.116 -> 0.024
    assert trained_loss < loss / 4
    assert trained_absrel < absrel / 3
    assert last["rotation"] < first["rotation"] / 3 and last["total"] < first["total"] / 4
    assert {"val_loss", "val_absrel", "val_rotation_deg"} <= last.keys()


def test_the_result_is_a_prior(tmp_path: Path) -> None:
    train(tiny_network(), Data(noise_source()), tmp_path, tiny_config(iterations=2))
    path, digest = locate_gpm(str(tmp_path))
    K = torch.tensor([30.0, 30, 21, 14]).expand(3, 4)
    views = Views(torch.rand(3, 3, 28, 42), K, torch.zeros(3, dtype=torch.bool))
    with torch.inference_mode():
        prediction = load_network(path, "cpu")(views)
    assert prediction.depth.shape == (3, 28, 42) and digest
    settings = json.loads((tmp_path / SETTINGS).read_text())
    assert settings["config"]["iterations"] == 2 and settings["data"] == ["noise"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole training of six steps."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(tiny_network(), Data(noise_source()), folder, tiny_config())
    return folder


@pytest.fixture
def finished(undisturbed: Path, tmp_path: Path) -> Path:
    """A copy of it that may be spoilt."""
    return Path(shutil.copytree(undisturbed, tmp_path / "finished"))


def interrupting(at: int, end: Callable[[], None]) -> Callable[[int], None]:
    reads = 0

    def on_read(frame: int) -> None:
        nonlocal reads
        reads += 1
        if reads == at:
            end()

    return on_read


def kill() -> None:
    raise Killed


@pytest.mark.parametrize("threads", [0, 2])
def test_a_killed_training_goes_on_to_the_same_bytes(tmp_path: Path, undisturbed: Path, threads: int) -> None:
    """Eight views a step: the 36th read is in the fifth step, the last checkpoint after the fourth."""
    data = Data(noise_source(interrupting(36, kill)))
    with pytest.raises(Killed):
        train(tiny_network(), data, tmp_path / "killed", tiny_config())
    assert folder_bytes(tmp_path / "killed") != folder_bytes(undisturbed)
    with (tmp_path / "killed" / LOG).open("a") as file:
        file.write('{"step": 5, "total"')  # cut short while it was written
    # other weights to begin with: all that counts is in the checkpoint
    train(tiny_network(seed=9), Data(noise_source(), threads=threads), tmp_path / "killed", tiny_config())
    assert folder_bytes(tmp_path / "killed") == folder_bytes(undisturbed)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_step_and_is_then_obeyed(
    tmp_path: Path, undisturbed: Path, kind: signal.Signals
) -> None:
    data = Data(noise_source(interrupting(20, lambda: os.kill(os.getpid(), kind))))
    before = signal.signal(signal.SIGTERM, lambda number, frame: kill())
    try:
        with pytest.raises(KeyboardInterrupt if kind == signal.SIGINT else Killed):
            train(tiny_network(), data, tmp_path / "stopped", tiny_config(checkpoint_every=100))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
    steps = [json.loads(line)["step"] for line in (tmp_path / "stopped" / LOG).read_text().splitlines()]
    assert steps == [1, 2, 3]
    assert isinstance(load_gpm_folder(tmp_path / "stopped"), GPM)
    train(tiny_network(), Data(noise_source()), tmp_path / "stopped", tiny_config())
    assert folder_bytes(tmp_path / "stopped") == folder_bytes(undisturbed)


def test_a_finished_training_is_not_repeated(finished: Path, undisturbed: Path) -> None:
    note = train(tiny_network(), Data(noise_source(kill_all)), finished, tiny_config())
    assert note["step"] == 6 and folder_bytes(finished) == folder_bytes(undisturbed)


def kill_all(frame: int) -> None:
    raise Killed


def test_another_training_in_the_same_folder_is_refused(finished: Path) -> None:
    for other in (tiny_config(head_rate=2e-3), tiny_config(seed=1), tiny_config(iterations=7)):
        with pytest.raises(ConfigError, match=r"other settings \((head_rate|seed|iterations)\)"):
            train(tiny_network(), Data(noise_source()), finished, other)
    with pytest.raises(ConfigError, match="start"):
        train(tiny_network(), Data(noise_source()), finished, tiny_config(), start="other weights")
    # how often is noted changes nothing
    train(tiny_network(), Data(noise_source()), finished, tiny_config(log_every=5))


def test_a_damaged_checkpoint_is_named(finished: Path) -> None:
    whole = (finished / CHECKPOINT).read_bytes()
    for broken in (b"", whole[:50], b"x" * 200):
        (finished / CHECKPOINT).write_bytes(broken)
        with pytest.raises(FormatError, match=CHECKPOINT):
            train(tiny_network(), Data(noise_source()), finished, tiny_config())


def test_frozen_parts_keep_their_bytes(tmp_path: Path) -> None:
    network = tiny_network(config=replace(TINY, pose_conditioning=True, camera_head="mlp"))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    train(network, Data(noise_source()), tmp_path, tiny_config(iterations=1, warmup=0.0))
    for name, value in network.state_dict().items():
        frozen = name.startswith("cam_enc.") or "_aux" in name
        assert torch.equal(value, before[name]) == frozen or value.ndim <= 1, name


def test_steps_without_a_finite_gradient_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("geoweaver.training.loop._MOST_SKIPPED", 3)
    network = tiny_network()
    with torch.no_grad():
        network.head.scratch.output_conv2[2].bias.fill_(200)  # exp overflows float32
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(DegenerateError, match="3 iterations in a row"):
        train(network, Data(noise_source()), tmp_path, tiny_config())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert "not finite" in caplog.text


def test_a_monocular_gpm_is_refused(tmp_path: Path) -> None:
    mono = replace(TINY, alt_start=-1, camera_head="none", pose_conditioning=False)
    with pytest.raises(ConfigError, match="monocular"):
        train(GPM(mono), Data(noise_source()), tmp_path, tiny_config())


def test_recomputing_activations_changes_no_result(tmp_path: Path) -> None:
    for name, recompute in (("a", False), ("b", True)):
        train(
            tiny_network(),
            Data(noise_source()),
            tmp_path / name,
            tiny_config(iterations=2, recompute=recompute),
        )
    a, b = (load_gpm_folder(tmp_path / name).state_dict() for name in "ab")
    assert all(torch.allclose(a[key], b[key], atol=1e-5) for key in a)

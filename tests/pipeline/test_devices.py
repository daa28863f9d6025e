"""Where networks run is said once and told to all of them."""

import sys
from pathlib import Path

import pytest
import torch

from geoweaver import pipeline
from geoweaver.errors import ConfigError, MissingExtraError
from geoweaver.pipeline import Config, reconstruct


def test_the_device_is_told_to_prior_matcher_and_retriever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, str] = {}

    def stand_in(part: str) -> object:
        def find(*_: object, device: str = "auto", **__: object) -> None:
            told[part] = device

        return find

    for part in ("find_prior", "find_matcher", "find_retriever"):
        monkeypatch.setattr(pipeline, part, stand_in(part))
    monkeypatch.setattr(pipeline, "Clock", _stop)
    with pytest.raises(ConfigError, match="far enough"):
        reconstruct(tmp_path, tmp_path / "out", Config(device="cpu"))
    assert told == {"find_prior": "cpu", "find_matcher": "cpu", "find_retriever": "cpu"}


def test_a_gpu_that_is_not_there_is_refused_whatever_the_prior(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="--device cuda: PyTorch finds no GPU"):
        reconstruct(tmp_path, tmp_path / "out", Config(device="cuda"))
    assert not (tmp_path / "out").exists()


def test_ray_that_is_not_there_is_refused_before_the_input_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="--engine ray"):
        reconstruct(tmp_path / "none", tmp_path / "out", Config(engine="ray"))


def _stop() -> None:
    raise ConfigError("far enough")

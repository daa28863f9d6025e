"""Where networks run is said once and told to all of them."""

from pathlib import Path

import pytest

from geoweaver import pipeline
from geoweaver.errors import ConfigError
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


def _stop() -> None:
    raise ConfigError("far enough")

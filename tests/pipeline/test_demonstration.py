"""The demo films what it is asked for."""

from pathlib import Path

import pytest

from geoweaver import demonstration
from geoweaver.demonstration import film_demo
from geoweaver.synth.clips import Clip
from geoweaver.synth.sequence import Output, _description, write_json


@pytest.fixture
def filmed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Frames of every film that is made, without its pictures."""
    made: list[int] = []

    def write(clip: Clip, folder: Path, output: Output) -> None:
        made.append(len(clip))
        write_json(folder / "sequence.json", _description(clip))

    monkeypatch.setattr(demonstration, "write_sequence", write)
    return made


def test_another_length_or_seed_is_filmed_anew(tmp_path: Path, filmed: list[int]) -> None:
    for frames, seed in ((12, 0), (12, 0), (16, 0), (16, 1), (16, 1)):
        assert len(film_demo(tmp_path, frames, seed, workers=1)) == frames
    assert filmed == [12, 16, 16]

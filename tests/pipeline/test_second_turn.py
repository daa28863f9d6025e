"""Where a lens is found not to be as its model says, the stages run once more on straightened matches."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from small_sequence import small_config

from geoweaver import reconstruct
from geoweaver.polishing import better
from geoweaver.track_adjustment import PolishConfig

pytestmark = pytest.mark.slow


def turns(folder: Path) -> list[str]:
    """The parts of a run that lie between its priors and the frames between."""
    names = [stage["name"] for stage in json.loads((folder / "run.json").read_text())["stages"]]
    return [name for name in names if name.endswith(("weave", "polish"))]


def test_a_lens_that_is_as_its_model_says_needs_one_turn(finished: Path) -> None:
    assert turns(finished) == ["weave", "polish"]


def test_a_lens_that_is_not_needs_more(
    finished: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # every round counts, so that even the chance misses of a perfect lens are taken for the lens's
    monkeypatch.setattr("geoweaver.polishing.better", lambda before, after, point: True)
    shutil.copytree(finished, tmp_path / "run")
    config = small_config(polish=PolishConfig(rounds=1, again=1))
    first = reconstruct(small / "images", tmp_path / "run", config)
    assert turns(tmp_path / "run") == ["weave", "polish", "second weave", "second polish"]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "run/work").rglob("*.safetensors")}
    again = reconstruct(small / "images", tmp_path / "run", config)
    assert (again.cam_from_world.translation == first.cam_from_world.translation).all()
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "run/work").rglob("*.safetensors")}
    once = reconstruct(
        small / "images", tmp_path / "run", small_config(polish=PolishConfig(rounds=1, again=0))
    )
    assert turns(tmp_path / "run") == ["weave", "polish"]
    assert (once.cam_from_world.translation != first.cam_from_world.translation).any()


@pytest.mark.parametrize(
    ("gain", "points", "expected"), [(0.05, 2000, True), (0.05, 20, False), (0.0, 2000, False)]
)
def test_a_round_counts_where_more_tracks_gain_than_by_chance(
    gain: float, points: int, expected: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    point = torch.arange(points).repeat_interleave(3)
    before = torch.rand(len(point), generator=generator, dtype=torch.float64)
    change = 0.3 * torch.randn(len(point), generator=generator, dtype=torch.float64) - gain
    before[:3] = torch.inf
    assert better(before, before + change, point) is expected

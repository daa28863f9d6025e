"""What stands in a run folder belongs to its result, and is complete."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from geoweaver.clock import Clock
from geoweaver.engine import LocalEngine
from geoweaver.export.run_folder import RunRecord
from geoweaver.export.run_outputs import expected_outputs
from geoweaver.finished import PIECE, STAGE, SavedRun, load_run
from geoweaver.frames import FramesConfig
from geoweaver.outputs import OutputConfig, write_outputs
from geoweaver.pipeline import Config
from geoweaver.store import Store, restore

pytestmark = pytest.mark.slow
FILES = ("points.ply", "report.html", "transforms.json", "sparse_pc.ply", "colmap/sparse/0/images.bin")


class Folder:
    """A copy of a finished run whose last step can be repeated."""

    def __init__(self, finished: Path, path: Path) -> None:
        shutil.copytree(finished, path)
        self.path, self.summary = path, json.loads((finished / "run.json").read_text())

    def write(self, config: OutputConfig, key: str | None = None, trusted: bool = True) -> None:
        """As if the kept result had this key."""
        with Store.open(self.path / "work") as store:
            artifact = store.load(STAGE, PIECE, self.summary["result"])
            saved = restore(SavedRun, artifact.tensors, artifact.meta)
            believed = saved.result.trusted & trusted
            saved = replace(saved, result=replace(saved.result, trusted=believed))
            key, whole = key or self.summary["result"], Config(FramesConfig(max_size=192), outputs=config)
            record = RunRecord(Path(self.summary["input"]), whole, key, saved, Clock())
            write_outputs(self.path, record, config, store, LocalEngine())

    def names(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Folder:
    return Folder(finished, tmp_path / "run")


def times(out: Folder) -> dict[str, int]:
    return {name: (out.path / name).stat().st_mtime_ns for name in FILES}


def test_cameras_alone_leave_what_belongs_to_the_same_result(out: Folder) -> None:
    before = times(out)
    out.write(OutputConfig("cameras"))
    out.write(OutputConfig())
    assert times(out) == before


def test_cameras_of_another_result_leave_nothing_of_the_old_one(out: Folder) -> None:
    (out.path / "mine.txt").write_text("not ours")
    (out.path / ".colmap.0123456789ab.tmp").mkdir()
    out.write(OutputConfig("cameras"), key="f" * 32)
    assert out.names() == {"run.json", "trajectory.tum", "work", "mine.txt"}


def test_lost_outputs_come_back(out: Folder) -> None:
    before = {name: (out.path / name).read_bytes() for name in FILES if name != "report.html"}
    for lost in ("colmap", "transforms.json"):
        path = out.path / lost
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        out.write(OutputConfig())
        assert {name: (out.path / name).read_bytes() for name in before} == before


def test_a_run_that_trusts_no_frame_has_no_cameras_to_export(out: Folder) -> None:
    for _ in range(2):
        out.write(OutputConfig(), key="e" * 32, trusted=False)
        assert not out.names() & {"colmap", "transforms.json", "sparse_pc.ply"}
        assert {"points.ply", "depth", "report.html"} <= out.names()
        (out.path / "report.html").write_text("as it was left")
    # the second time nothing was missing
    assert (out.path / "report.html").read_text() == "as it was left"


def test_another_cloud_replaces_the_old_one(out: Folder) -> None:
    before = times(out)
    out.write(OutputConfig(fusion=replace(OutputConfig().fusion, target=500)))
    assert not set(times(out).values()) & set(before.values())
    assert set(expected_outputs(load_run(out.path))) <= out.names()


def test_a_newer_fusion_makes_the_cloud_anew(out: Folder) -> None:
    """The settings are the same, and so is the result: only the fusion's version went up."""
    (out.path / "points.ply").write_bytes(b"of the older fusion")
    out.write(OutputConfig())
    assert (out.path / "points.ply").read_bytes() == b"of the older fusion"
    for older in (out.summary["config"]["outputs"]["fusion"]["version"] - 1, None):
        fusion = {**out.summary["config"]["outputs"]["fusion"], "version": older}
        # runs of before versions were recorded have none
        fusion = {name: value for name, value in fusion.items() if value is not None}
        outputs = {**out.summary["config"]["outputs"], "fusion": fusion}
        earlier = {**out.summary, "config": {**out.summary["config"], "outputs": outputs}}
        (out.path / "run.json").write_text(json.dumps(earlier))
        (out.path / "points.ply").write_bytes(b"of the older fusion")
        out.write(OutputConfig())
        assert (out.path / "points.ply").read_bytes() != b"of the older fusion"

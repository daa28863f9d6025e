"""`geoweaver report`: writes beside the run, scores against a reference, and says what is wrong."""

import json

import pytest
import torch

from geoweaver import finished
from geoweaver.cli.main import main
from geoweaver.datatypes import Trajectory
from geoweaver.formats.tum import write_tum
from tests.viewer.report_runs import made_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    run = made_run(tmp_path, frames=12, doubted=(3, 4))
    path = Trajectory(run.result.cam_from_world, torch.arange(12), timestamps=run.result.timestamps)
    write_tum(tmp_path / "trajectory.tum", path)
    summary = {**run.summary, "names": list(run.result.names), "untrusted": [], "frames": {"total": 12}}
    (tmp_path / "run.json").write_text(json.dumps(summary))
    monkeypatch.setattr(finished, "load_run", lambda _: run)
    return tmp_path


def test_it_writes_beside_the_run(folder, capsys):
    assert main(["report", str(folder)]) == 0
    assert "report.html" in capsys.readouterr().out
    assert "Scores" not in (folder / "report.html").read_text()


def test_a_reference_adds_scores(folder):
    (folder / "truth.tum").write_bytes((folder / "trajectory.tum").read_bytes())
    out = folder / "elsewhere.html"
    assert main(["report", str(folder), "--reference", str(folder / "truth.tum"), "-o", str(out)]) == 0
    page = out.read_text()
    assert "AUC@30" in page and 'id="plan-reference"' in page


def test_a_folder_that_is_no_run_is_said_to_be_none(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no run.json" in capsys.readouterr().err

"""`geoweaver export`: every format by its name, one line where something is missing or in the way."""

import sys
from types import ModuleType, SimpleNamespace

import pycolmap
import pytest
import torch

import geoweaver.finished
from geoweaver.cli.main import main
from geoweaver.errors import ConfigError, MissingExtraError
from geoweaver.export import FORMATS, export_run
from geoweaver.formats.ply import PlyCloud, read_ply, write_ply


@pytest.fixture
def command(run, monkeypatch, capsys):
    """Runs `geoweaver export` on the made run; gives exit code, stdout and stderr."""

    def call(*words):
        monkeypatch.setattr(geoweaver.finished, "load_run", lambda folder: run)
        code = main(["export", "RUN", *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_it_writes_and_says_where(command, tmp_path):
    code, out, _ = command("--to", "colmap", "-o", tmp_path / "my model")
    assert code == 0 and str(tmp_path / "my model") in out
    assert pycolmap.Reconstruction(tmp_path / "my model/sparse/0").num_images() == 8


def test_all_frames_and_smaller_images(command, tmp_path):
    assert command("--to", "gsplat", "-o", tmp_path / "gs", "--downscale", 4, 2, "--all-frames")[0] == 0
    assert {p.name for p in (tmp_path / "gs").glob("images*")} == {"images", "images_2", "images_4"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "colmap", "--downscale", "2"), "gsplat"),
        (("--to", "gsplat", "--downscale", "1"), "at least 2"),
        (("--to", "obj"), "obj"),
        (("--to", "rerun"), "[rerun]"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(command, words, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    code, out, err = command(*words)
    assert code == 2 and said in err and len(err.strip().splitlines()) == 1 and not out


def test_an_unwritable_place_is_one_line(command, tmp_path):
    (tmp_path / "file").touch()
    for form in ("colmap", "depth", "tum", "ply"):
        code, _, err = command("--to", form, "-o", tmp_path / "file/below")
        assert code == 2 and "below" in err.splitlines()[-1]


def test_a_folder_without_a_finished_run(tmp_path, capsys):
    assert main(["export", str(tmp_path), "--to", "colmap"]) == 2
    assert "run.json" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_from_python(run):
    with pytest.raises(ConfigError, match="colmap, nerfstudio"):
        export_run(run, "obj")
    assert set(FORMATS) == {"colmap", "nerfstudio", "gsplat", "tum", "kitti", "ply", "depth", "rerun"}


def test_the_cloud_is_the_run_s_own_else_the_tracks_points(run, tmp_path, caplog):
    tracks = read_ply(export_run(run, "ply", tmp_path / "tracks.ply"))
    assert len(tracks) > 300 and tracks.colours is not None and "points.ply" in caplog.text
    fused = PlyCloud(torch.rand(7, 3), torch.zeros(7, 3, dtype=torch.uint8), confidence=torch.ones(7))
    run.folder.mkdir(exist_ok=True)
    write_ply(run.folder / "points.ply", fused)
    try:
        copied = export_run(run, "ply", tmp_path / "fused.ply")
        assert copied.read_bytes() == (run.folder / "points.ply").read_bytes()
    finally:
        (run.folder / "points.ply").unlink()


def test_rerun_gets_cameras_images_and_points(run, tmp_path, monkeypatch):
    """A stand-in for the library notes what is logged; its own file format is its own affair."""
    logged = []
    stand_in = ModuleType("rerun")
    for name in ("Points3D", "LineStrips3D", "Transform3D", "Pinhole"):
        setattr(stand_in, name, lambda *a, _name=name, **k: (_name, a, k))
    stand_in.Image = lambda image: SimpleNamespace(compress=lambda: ("Image", image, {}))
    stand_in.ViewCoordinates = SimpleNamespace(RDF=("RDF", (), {}))
    stand_in.RecordingStream = lambda name: name
    stand_in.save = lambda path, recording: open(path, "wb").write(b"rrd")  # noqa: PTH123, SIM115
    stand_in.set_time = lambda *a, **k: None
    stand_in.disconnect = lambda recording: None
    stand_in.log = lambda path, what, static=False, recording=None: logged.append((path, what[0]))
    monkeypatch.setitem(sys.modules, "rerun", stand_in)
    path = export_run(run, "rerun", tmp_path / "r.rrd")
    assert path.read_bytes() == b"rrd" and [p.name for p in tmp_path.iterdir()] == ["r.rrd"]
    assert logged.count(("world/camera/image", "Image")) == logged.count(("world/camera", "Transform3D")) == 8
    assert ("world/points", "Points3D") in logged


def test_without_rerun_nothing_is_left_behind(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingExtraError, match="rerun-sdk"):
        export_run(run, "rerun", tmp_path / "r.rrd")
    assert not list(tmp_path.iterdir())

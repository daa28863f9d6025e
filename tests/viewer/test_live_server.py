"""The served page from the server's side: who may look, which port, what is sent."""

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from live_runs import drifted, make_run

from geoweaver.cli import view
from geoweaver.cli.main import main
from geoweaver.datatypes import ChunkPrior, Trajectory
from geoweaver.errors import ConfigError
from geoweaver.formats.tum import write_tum
from geoweaver.geometry import Sim3
from geoweaver.store import Store, artifact_key, flatten_priors
from geoweaver.viewer.live import LiveViewer, open_viewer
from geoweaver.viewer.live_flight import glide
from geoweaver.viewer.live_unfinished import chunk_points, finished_chunks, progress_of, show_unfinished
from geoweaver.viewer.scene import NamedRun, build_scene

pytest.importorskip("viser")


@pytest.fixture
def viewer(tmp_path: Path) -> Any:
    served = open_viewer(port=0)
    named = [NamedRun(name, make_run(tmp_path), Sim3.identity()) for name in ("a", "a")]
    served.show(build_scene(named, drifted(named[0].run.result.cam_from_world, 0.2), most=4_000))
    yield served
    served.stop()


def test_only_this_machine_may_look_unless_asked(viewer: LiveViewer) -> None:
    assert viewer.server.get_host() == "127.0.0.1"
    assert viewer.url == f"http://127.0.0.1:{viewer.server.get_port()}"


def test_confidence_hides_whole_bands_and_sends_no_point(viewer: LiveViewer) -> None:
    panel = viewer.panel
    assert panel is not None
    bands = panel.nodes[0].bands
    assert sum(len(rows) for _, rows in bands.values()) == len(panel.scene.runs[0].cloud)
    before = [band.points for band, _ in bands.values()]
    panel.change(confidence=0.5)
    assert {k: band.visible for k, (band, _) in bands.items()} == {k: k >= 10 for k in range(20)}
    assert all(band.points is points for (band, _), points in zip(bands.values(), before, strict=True))


def test_bands_without_points_have_no_node(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    scene = build_scene([NamedRun("a", run, Sim3.identity())], most=500)
    sure = replace(scene.runs[0].cloud, confidence=torch.ones(len(scene.runs[0].cloud)))
    served = open_viewer(port=0)
    try:
        served.show(replace(scene, runs=(replace(scene.runs[0], cloud=sure),)))
        assert served.panel is not None
        assert list(served.panel.nodes[0].bands) == [19]
    finally:
        served.stop()


def test_each_control_changes_its_part(viewer: LiveViewer) -> None:
    panel = viewer.panel
    assert panel is not None
    nodes = panel.nodes[1]
    size, colours, path = (
        nodes.bands[5][0].point_size,
        nodes.bands[5][0].colors.copy(),
        nodes.path.points.copy(),
    )
    panel.change(point_size=2.0, colour="trust", stage="Stage 1", side_by_side=True, reference=False)
    assert nodes.bands[5][0].point_size == pytest.approx(2 * size)
    assert not np.array_equal(nodes.bands[5][0].colors, colours)
    assert not np.array_equal(nodes.path.points, path)
    assert nodes.root.position[0] == pytest.approx(panel.scene.width)
    assert not nodes.reference.visible
    panel.change(points=False, cameras=False, hidden=frozenset([0]))
    assert not any(band.visible for band, _ in nodes.bands.values()) and not nodes.path.visible
    assert not panel.nodes[0].root.visible and nodes.root.visible


def test_choosing_a_camera_moves_slider_marker_and_words(viewer: LiveViewer) -> None:
    panel = viewer.panel
    assert panel is not None
    panel.choose(1, 7)
    assert (panel.look.run, panel.look.frame) == (1, 7)
    assert "frame_00007" in panel._words.content
    assert panel.nodes[1].chosen.visible and not panel.nodes[0].chosen.visible
    expected = panel.nodes[1].cameras(panel.look)[7].centre
    assert np.allclose(panel.nodes[1].chosen.position, expected.numpy())


def test_runs_of_one_name_can_be_told_apart(viewer: LiveViewer) -> None:
    assert viewer.panel is not None
    assert viewer.panel._run.options == ("a (1)", "a (2)")


def test_a_flight_is_smooth_and_ends_where_the_path_ends(tmp_path: Path) -> None:
    cameras = make_run(tmp_path).result.cam_from_world
    centres, directions = glide(cameras, smooth=2)
    assert torch.allclose(directions.norm(dim=-1), torch.ones(12, dtype=torch.float64))
    bend = [(c[2:] - 2 * c[1:-1] + c[:-2]).norm(dim=-1).mean() for c in (centres, cameras.centre)]
    assert bend[0] < bend[1]
    assert torch.equal(glide(cameras, smooth=0)[0], cameras.centre)


def test_a_taken_port_is_said_and_not_swapped(viewer: LiveViewer) -> None:
    port = viewer.server.get_port()
    with pytest.raises(ConfigError, match=rf"port {port} of 127.0.0.1 cannot be used.*--port"):
        open_viewer(port=port)
    with pytest.raises(ConfigError, match="no port"):
        open_viewer(port=70_000)
    with pytest.raises(ConfigError, match="--host"):
        open_viewer(host="no such host", port=0)


def test_a_missing_viser_is_one_line_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    (tmp_path / "work").mkdir()
    assert main(["view", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "[viewer]" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nowhere"], "is no run"), ([], "RUN"), (["{run}", "--reference", "nowhere.tum"], "nowhere.tum")],
)
def test_what_cannot_be_viewed_is_said_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    assert main(["view", *(a.format(run=tmp_path) for a in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_the_command_aligns_runs_with_a_reference_and_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = Sim3(torch.tensor(9.0).double(), torch.eye(3).double(), torch.tensor([5.0, 0, 0]).double())
    runs = {"one": make_run(tmp_path), "two": make_run(tmp_path, world_from_truth=far)}
    for name in runs:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({}))
    truth = runs["one"].result
    write_tum(
        tmp_path / "truth.tum", Trajectory(truth.cam_from_world, torch.arange(12), None, truth.timestamps)
    )
    shown: list[Any] = []
    monkeypatch.setattr("geoweaver.finished.load_run", lambda folder: runs[folder.name])
    monkeypatch.setattr(LiveViewer, "show", lambda self, scene: shown.append(scene))
    monkeypatch.setattr(view.time, "sleep", _interrupt)
    folders = [str(tmp_path / name) for name in runs]
    assert main(["view", *folders, "--reference", str(tmp_path / "truth.tum"), "--port", "0"]) == 0
    left, right = (run.stages[-1].cam_from_view.centre for run in shown[0].runs)
    assert torch.allclose(left, right, atol=1e-6) and torch.allclose(left, shown[0].reference, atol=1e-6)
    out = capsys.readouterr()
    assert "http://127.0.0.1:" in out.out and out.err == ""


def _interrupt(_: float) -> None:
    raise KeyboardInterrupt


def _unfinished(folder: Path) -> None:
    run = make_run(folder)
    depth = torch.stack([run.depths.read(k).depth for k in range(4)])
    prior = ChunkPrior(
        torch.arange(4),
        depth,
        torch.ones_like(depth),
        run.result.cam_from_world[:4],
        run.result.intrinsics[:4],
    )
    with Store.open(folder / "work") as store:
        store.save("priors", "chunk-0000", artifact_key("priors", 1, [], ["a"]), *flatten_priors([prior]))


def test_a_run_in_progress_shows_its_finished_chunks(tmp_path: Path) -> None:
    assert progress_of(tmp_path).words() == "nothing is finished yet" and finished_chunks(tmp_path) == []
    _unfinished(tmp_path)
    assert progress_of(tmp_path).words() == "priors 1"
    with Store.open(tmp_path / "work") as store:
        # what a prior learns for all chunks is kept beside them
        store.save("priors", "shared", artifact_key("priors", 1, [], ["b"]), {}, {"cameras": []})
    (chunk,) = finished_chunks(tmp_path)
    points = chunk_points(chunk[0])
    assert len(points) > 1000 and float(points.norm(dim=-1).median()) < 10
    viewer = open_viewer(port=0)
    try:
        viewer.say("still running", ["<b>x</b>"])
        show_unfinished(viewer.server, [tmp_path])
        assert viewer.server.scene.get_handle_by_name("/run0/chunk0") is not None
    finally:
        viewer.stop()


def test_the_command_says_that_a_killed_run_is_not_running(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _unfinished(tmp_path)
    said: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(LiveViewer, "say", lambda self, title, lines: said.append((title, lines)))
    monkeypatch.setattr(view.time, "sleep", _interrupt)
    with Store.open(tmp_path / "work"):
        assert main(["view", str(tmp_path), "--port", "0"]) == 0
    assert main(["view", str(tmp_path), "--port", "0"]) == 0
    assert [title for title, _ in said] == ["still running", "not running"]
    told = capsys.readouterr().out
    assert told.count("was ended before it was done: run the same geoweaver reconstruct again") == 1


def test_the_command_waits_for_a_run_and_then_shows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _unfinished(tmp_path)
    shown: list[Any] = []

    def finish(seconds: float) -> None:
        if shown:
            raise KeyboardInterrupt
        (tmp_path / "run.json").write_text("{}")

    monkeypatch.setattr("geoweaver.finished.load_run", lambda folder: make_run(folder))
    monkeypatch.setattr(LiveViewer, "show", lambda self, scene: shown.append(scene))
    monkeypatch.setattr(view.time, "sleep", finish)
    assert main(["view", str(tmp_path), "--port", "0"]) == 0
    assert [run.name for run in shown[0].runs] == [tmp_path.name]


def test_a_busy_port_on_the_command_line_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert main(["view", str(tmp_path), "--port", str(other.getsockname()[1])]) == 2
    assert "--port" in capsys.readouterr().err

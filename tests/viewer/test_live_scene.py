"""What the viewer makes of a run, without a browser."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from live_runs import doubtful, drifted, make_run

from geoweaver.formats.ply import PlyCloud, read_ply, write_ply
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.geometry.so3 import so3_exp
from geoweaver.viewer.live_nodes import precision_of
from geoweaver.viewer.live_pictures import depth_picture, describe_frame
from geoweaver.viewer.scene import NamedRun, Scene, build_scene
from geoweaver.viewer.scene_cloud import run_cloud, spread_over
from geoweaver.viewer.scene_colours import DOUBTED, TRUSTED, chunk_colours, ramp_colours
from geoweaver.viewer.scene_place import RADIUS, similarity

SOMEWHERE = Sim3(
    torch.tensor(37.0, dtype=torch.float64),
    so3_exp(torch.tensor([0.4, -1.1, 0.7], dtype=torch.float64)),
    torch.tensor([100.0, -20.0, 3.0], dtype=torch.float64),
)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    run = make_run(tmp_path_factory.mktemp("run"))
    return build_scene([NamedRun("room", run, Sim3.identity())], most=20_000)


def test_the_viewer_shows_a_world_of_any_unit_and_tilt_alike(scene: Scene, tmp_path: Path) -> None:
    moved = make_run(tmp_path, world_from_truth=SOMEWHERE)
    other = build_scene([NamedRun("moved", moved, Sim3.identity())], most=20_000)
    a, b = (s.runs[0].stages[-1].cam_from_view.centre for s in (scene, other))
    assert torch.allclose(torch.cdist(a, a), torch.cdist(b, b), atol=1e-5)
    assert torch.allclose(a[:, 2], b[:, 2], atol=1e-5)
    points = other.runs[0].stage_points(3).double()
    assert (points.norm(dim=-1) < 2 * RADIUS).double().mean() > 0.9


def test_the_walk_is_level_in_the_viewer(scene: Scene) -> None:
    heads = -scene.runs[0].stages[-1].cam_from_view.rotation[:, 1].mean(0)
    assert float(heads[2] / heads.norm()) > 0.999


def test_stages_lose_their_similarity_but_keep_their_drift(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    views = tuple(replace(v, cam_from_world=world_camera(SOMEWHERE, v.cam_from_world)) for v in run.views)
    shown = build_scene([NamedRun("a", replace(run, views=views), Sim3.identity())], most=5_000).runs[0]
    final = shown.stages[-1].cam_from_view.centre
    miss = [float((s.cam_from_view.centre - final).norm(dim=-1).mean()) for s in shown.stages]
    assert miss[0] > miss[1] > 0.01
    assert miss[2] < 1e-6 and miss[3] == 0
    moved = [(shown.stage_points(k) - shown.stage_points(3)).norm(dim=-1).mean() for k in range(4)]
    assert moved[0] > moved[1] > 0.01 and moved[2] < 1e-5


def test_points_keep_their_place_in_their_own_camera(scene: Scene) -> None:
    run = scene.runs[0]
    in_camera = [
        run.stages[k].cam_from_view[run.cloud.frame].act(run.stage_points(k).double()) for k in (0, 3)
    ]
    assert torch.allclose(*in_camera, atol=1e-4)


def test_cameras_on_a_line_are_aligned_by_their_axes() -> None:
    centres = torch.tensor([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]], dtype=torch.float64)
    cameras = SE3(torch.eye(3, dtype=torch.float64).expand(3, 3, 3), -centres)
    moved = world_camera(SOMEWHERE, cameras)
    found = similarity(cameras, moved)
    assert torch.allclose(found.matrix(), SOMEWHERE.matrix(), atol=1e-6)


def test_colours_say_chunk_trust_and_confidence(scene: Scene, tmp_path: Path) -> None:
    run = scene.runs[0]
    cameras = run.frame_colours("trust")
    assert cameras[0].tolist() == list(TRUSTED) and cameras[-1].tolist() == list(DOUBTED)
    points = run.point_colours("trust")
    assert torch.equal(points, cameras[run.cloud.frame])
    assert len(run.point_colours("chunk").unique(dim=0)) == 3
    assert torch.equal(run.point_colours("RGB"), run.cloud.colours)
    low, high = ramp_colours(torch.tensor([0.0, 1.0])).long().sum(-1)
    assert high > low
    assert chunk_colours(torch.tensor([-1])).tolist() == [[128, 128, 128]]
    none = build_scene([NamedRun("d", doubtful(make_run(tmp_path)), Sim3.identity())], most=1_000).runs[0]
    assert none.point_colours("trust").unique(dim=0).tolist() == [list(DOUBTED)]


def test_the_fused_cloud_is_taken_where_there_is_one_and_thinned(scene: Scene, tmp_path: Path) -> None:
    run, cloud = make_run(tmp_path), scene.runs[0].cloud
    grey = torch.full((len(cloud), 3), 7, dtype=torch.uint8)
    write_ply(tmp_path / "points.ply", PlyCloud(cloud.points, colours=grey, confidence=cloud.confidence))
    read = run_cloud(run, most=3_000)
    assert len(read) == 3_000 and bool((read.colours == 7).all())
    # a point's frame must be one whose camera sees it
    seen = run.result.cam_from_world[read.frame].act(read.points.double())
    assert float((seen[:, 2] > 0).double().mean()) > 0.99


def test_a_run_without_any_depth_still_opens(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    blind = replace(run, depths=replace(run.depths, depths=()), chunk=torch.full_like(run.chunk, -1))
    shown = build_scene([NamedRun("blind", blind, Sim3.identity())]).runs[0]
    assert len(shown.cloud) == 0 and shown.frame_confidence.sum() == 0
    assert shown.stage_points(0).shape == (0, 3)


def test_lost_images_leave_grey_points(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    lost = replace(run, frames=replace(run.frames, pixels=None))
    assert len(run_cloud(lost, 500).colours.unique()) == 1


def test_runs_and_reference_meet_in_one_space(tmp_path: Path) -> None:
    a, b = make_run(tmp_path), make_run(tmp_path, world_from_truth=SOMEWHERE)
    reference = drifted(a.result.cam_from_world, 0.1)
    scene = build_scene(
        [NamedRun("a", a, Sim3.identity()), NamedRun("b", b, SOMEWHERE.inverse())], reference, most=2_000
    )
    left, right = (run.stages[-1].cam_from_view.centre for run in scene.runs)
    assert torch.allclose(left, right, atol=1e-6)
    assert scene.reference is not None
    back = scene.common_from_view.act(scene.reference)
    assert torch.allclose(back, reference.centre, atol=1e-9)
    assert scene.width > float(left[:, 0].max() - left[:, 0].min())


def test_names_and_reasons_are_text(tmp_path: Path) -> None:
    run = make_run(tmp_path, prefix='<script>alert("x")</script>ночь ')
    shown = build_scene([NamedRun("a", run, Sim3.identity())], most=100).runs[0]
    words = describe_frame(shown, 11)
    assert "<script>" not in words and "&lt;script&gt;" in words and "ночь" in words
    assert "not trusted" in words and "<b>here" not in words


def test_depth_pictures_are_bright_where_near_and_black_where_unknown() -> None:
    depth = torch.linspace(1, 5, 40).reshape(4, 10)
    depth[0, 0] = 0
    picture = depth_picture(depth).astype(int).sum(-1)
    assert picture[0, 0] == 0 and picture[0, 1] > picture[3, 9]
    assert not depth_picture(torch.zeros(3, 3)).any()


def test_half_precision_only_where_nobody_sees_it() -> None:
    near = np.array([[4.0, 0, 0]], np.float32)
    assert precision_of(near, 0.01) == "float16"
    assert precision_of(100 * near, 0.01) == "float32"
    assert precision_of(near[:0], 0.01) == "float16"


@given(st.integers(0, 60), st.integers(2, 20))
@settings(max_examples=50)
def test_spread_frames_are_few_and_hold_both_ends(count: int, most: int) -> None:
    frames = tuple(range(5, 5 + count))
    chosen = spread_over(frames, most)
    assert len(chosen) == min(count, most) == len(set(chosen))
    assert not count or (chosen[0], chosen[-1]) == (frames[0], frames[-1])


def test_an_export_is_what_is_shown(scene: Scene, tmp_path: Path) -> None:
    from geoweaver.viewer.live import open_viewer
    from geoweaver.viewer.live_saving import ply_bytes, shown_cloud

    pytest.importorskip("viser")
    viewer = open_viewer(port=0)
    try:
        viewer.show(scene)
        panel = viewer.panel
        assert panel is not None
        panel.change(confidence=0.5, colour="chunk")
        cloud = scene.runs[0].cloud
        keep = cloud.confidence >= 0.5
        (tmp_path / "out.ply").write_bytes(ply_bytes(shown_cloud(scene, panel.nodes, panel.look)))
        read = read_ply(tmp_path / "out.ply")
        assert 0 < len(read) == int(keep.sum()) < len(cloud)
        assert torch.allclose(read.points, cloud.points[keep], atol=1e-4)
        assert read.colours is not None and torch.equal(
            read.colours, scene.runs[0].point_colours("chunk")[keep]
        )
        panel.change(hidden=frozenset([0]))
        assert len(shown_cloud(scene, panel.nodes, panel.look)) == 0
    finally:
        viewer.stop()

"""Scenes are found where their archives unpack, references are the cameras, what is missing is named."""

from pathlib import Path

import numpy as np
import pytest
import torch
from made_suites import (
    FRAMES,
    make_folder_scene,
    make_mip_nerf,
    make_spires,
    make_tanks,
    make_vkitti,
    path,
    save_images,
)

from geoweaver.benchmark import SUITES, Scene, find_scenes
from geoweaver.benchmark.spires import LENS
from geoweaver.benchmark.weaving import scene_config
from geoweaver.datatypes import Trajectory
from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.formats.tum import write_tum
from geoweaver.frames import open_frames
from geoweaver.pipeline import Config

TRUTH = path()
MAKERS = {
    "tanks-and-temples": (make_tanks, "Barn", "Truck"),
    "mip-nerf-360": (make_mip_nerf, "bicycle", "treehill"),
    "vkitti2": (make_vkitti, "Scene01", "Scene20"),
    "oxford-spires": (make_spires, "keble-04", "christ-church-02"),
}
FOLDERS = {"keble-04": "2024-03-12-keble-college-04"}
COUNT = {"tanks-and-temples": 6, "mip-nerf-360": 9, "vkitti2": 5, "oxford-spires": 4}
"""As the paper's caption of its main table says."""


def found(suite: str, data: Path, **options) -> Scene:
    """The only scene that is there."""
    (scene,) = [s for s in find_scenes(suite, data, **options).values() if isinstance(s, Scene)]
    return scene


@pytest.mark.parametrize("suite", MAKERS)
def test_what_is_there_is_found_and_what_is_missing_is_named(suite, tmp_path):
    make, present, absent = MAKERS[suite]
    make(tmp_path / FOLDERS.get(present, present))
    scenes = find_scenes(suite, tmp_path)
    assert len(scenes) == COUNT[suite] and isinstance(scenes[present], Scene)
    assert isinstance(scenes[absent], str) and scenes[absent].startswith("no images in ")
    assert list(find_scenes(suite, tmp_path, [present])) == [present]
    with pytest.raises(ConfigError, match=f"'Nowhere': choose from .*{absent}"):
        find_scenes(suite, tmp_path, ["Nowhere"])
    with pytest.raises(InputError, match=f"{absent} is not there: no images"):
        find_scenes(suite, tmp_path, [absent])


@pytest.mark.parametrize("suite", [*MAKERS, "folder"])
def test_a_wrong_folder_is_told_the_layout(suite, tmp_path):
    for data in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError) as told:
            find_scenes(suite, data)
        assert SUITES[suite].layout in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize("suite", MAKERS)
def test_a_scene_without_its_reference_is_not_there(suite, tmp_path):
    make, present, _ = MAKERS[suite]
    folder = make(tmp_path / FOLDERS.get(present, present))
    for name in ("*_SfM.log", "sparse/0/*", "clone/extrinsic.txt", "processed/trajectory/*"):
        for file in folder.glob(name):
            file.unlink()
    with pytest.raises(InputError, match=f"{present}: no (?!images)"):
        find_scenes(suite, tmp_path)


def test_tanks_and_temples_are_in_metres_and_matched_by_place(tmp_path):
    folder = make_tanks(tmp_path / "Barn")
    scene = found("tanks-and-temples", tmp_path)
    reference = scene.read_reference()
    turn = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=torch.float64)
    expected = 2 * TRUTH.centre @ turn.T + torch.tensor([1.0, 2, 3], dtype=torch.float64)
    torch.testing.assert_close(reference.cam_from_world.centre, expected)
    torch.testing.assert_close(reference.cam_from_world.rotation, TRUTH.rotation @ turn.T)
    assert reference.index.tolist() == list(range(FRAMES)) and reference.names is None
    (folder / "Barn_trans.txt").unlink()
    torch.testing.assert_close(scene.read_reference().cam_from_world.centre, TRUTH.centre)
    (folder / "000003.jpg").unlink()
    with pytest.raises(InputError, match=r"frame 7, but .* has 7 images"):
        scene.read_reference()


def test_tanks_and_temples_with_images_in_a_folder_and_logs_beside(tmp_path):
    folder = make_tanks(tmp_path / "Truck")
    (folder / "images").mkdir()
    for file in folder.glob("*.jpg"):
        file.rename(folder / "images" / file.name)
    for file in folder.glob("Truck_*"):
        file.rename(tmp_path / file.name)
    scene = found("tanks-and-temples", tmp_path)
    assert scene.input == folder / "images" and len(scene.read_reference()) == FRAMES


def test_mip_nerf_takes_quarter_size_and_its_calibration_only_if_asked(tmp_path):
    make_mip_nerf(tmp_path / "bicycle")
    scene = found("mip-nerf-360", tmp_path)
    assert scene.input.name == "images_4" and scene.intrinsics is None
    reference = scene.read_reference()
    torch.testing.assert_close(reference.cam_from_world.matrix(), TRUTH.matrix())
    assert reference.names is not None and reference.names[0] == "DSC000.JPG"
    told = found("mip-nerf-360", tmp_path, calibrated=True)
    camera = open_frames(told.input, scene_config(Config(), told, tmp_path).frames).cameras[0]
    assert camera.calibrated and camera.params[:2] == (50.0, 50.0), (
        "the model's focal at a quarter of its size"
    )


def test_vkitti_has_names_depth_and_intrinsics(tmp_path):
    make_vkitti(tmp_path / "Scene06", first=3)
    scene = found("vkitti2", tmp_path)
    reference = scene.read_reference()
    torch.testing.assert_close(reference.cam_from_world.matrix(), TRUTH.matrix())
    assert reference.names == tuple(f"rgb_{k:05}.jpg" for k in range(3, 3 + FRAMES))
    assert scene.depth is not None and scene.depth_unit == 0.01 and scene.depth_far == 655.35
    assert scene.intrinsics is None
    assert found("vkitti2", tmp_path, calibrated=True).intrinsics == "50.5,51.5,31.5,23.5"


def test_spires_are_the_cameras_own_poses_at_the_images_times(tmp_path):
    make_spires(tmp_path / "sequences" / FOLDERS["keble-04"])
    scene = found("oxford-spires", tmp_path)
    reference = scene.read_reference()
    assert reference.index.tolist() == list(range(0, 2 * FRAMES, 2)), "every second image has a pose"
    assert reference.names is not None and reference.names[1] == "1710338123.375000000.jpg"
    # the front camera of the rig looks along the body's x axis, with its own x to the body's right
    cam_from_base = (reference.cam_from_world @ TRUTH.inverse()).matrix().numpy()
    expected = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]])
    assert np.abs(cam_from_base[:, :3, :3] - expected).max() < 0.03
    lever = np.linalg.inv(cam_from_base)[:, :3, 3]
    assert np.abs(lever).max() < 0.25 and np.abs(lever - lever[0]).max() < 1e-9
    (scene.input / "1.jpg").write_bytes(next(scene.input.glob("17*")).read_bytes())
    with pytest.raises(InputError, match="named by their time"):
        scene.read_reference()


def test_spires_fisheye_is_always_told(tmp_path):
    sequence = make_spires(tmp_path / FOLDERS["keble-04"])
    scene = found("oxford-spires", tmp_path)
    frames = open_frames(scene.input, scene_config(Config(), scene, tmp_path / "out").frames)
    (camera,) = frames.cameras
    assert camera.model == "OPENCV_FISHEYE" and camera.calibrated
    assert camera.params[0] == pytest.approx(LENS.params[0] * 64 / 1440)
    # the dataset counts from the first pixel's centre, a COLMAP camera from the image's corner
    assert LENS.params[2:4] == pytest.approx((713.2646767, 561.0751285))
    assert not (sequence / "lens.txt").exists(), "nothing is written into the data"


def test_folder_takes_images_videos_and_every_reference(tmp_path):
    make_folder_scene(tmp_path / "plain", depth=True)
    make_mip_nerf(tmp_path / "model", ("images",))
    (make_folder_scene(tmp_path / "tum") / "images").rename(tmp_path / "tum/rgb")
    (tmp_path / "tum/rgb.txt").write_text("".join(f"{k} rgb/{k:03}.png\n" for k in range(FRAMES)))
    (tmp_path / "film").mkdir()
    (tmp_path / "film/walk.mp4").write_bytes(b"a film")
    write_tum(tmp_path / "film/walk.tum", Trajectory(TRUTH, torch.arange(FRAMES)))
    save_images(tmp_path / "alone", ["a.png"])
    (tmp_path / "papers").mkdir()
    scenes = find_scenes("folder", tmp_path, depth_unit=0.002)
    assert set(scenes) == {"plain", "model", "tum", "film", "alone"}
    assert "no reference" in str(scenes.pop("alone"))
    for scene in scenes.values():
        assert isinstance(scene, Scene)
        torch.testing.assert_close(scene.read_reference().cam_from_world.centre, TRUTH.centre)
    plain, tum, film = scenes["plain"], scenes["tum"], scenes["film"]
    assert isinstance(plain, Scene) and isinstance(tum, Scene) and isinstance(film, Scene)
    assert plain.depth == tmp_path / "plain/depth" and plain.depth_unit == 0.002
    assert tum.timestamps == tmp_path / "tum/rgb.txt" and film.input == tmp_path / "film/walk.mp4"


def test_folder_reads_intrinsics_that_lie_there(tmp_path):
    folder = make_folder_scene(tmp_path / "a")
    (folder / "intrinsics.txt").write_text("50 51, 32 24\n")
    assert found("folder", tmp_path).intrinsics == "50,51,32,24"
    (folder / "cameras.txt").write_text("1 PINHOLE 64 48 50 50 32 24\n")
    assert found("folder", tmp_path).intrinsics == str(folder / "cameras.txt")
    (folder / "cameras.txt").unlink()
    (folder / "intrinsics.txt").write_text("50\n51\n32\n24\n")
    with pytest.raises(FormatError, match="one line: fx fy"):
        find_scenes("folder", tmp_path)


def test_folder_does_not_take_depth_for_a_camera(tmp_path):
    make_folder_scene(tmp_path / "good")
    folder = make_folder_scene(tmp_path / "flat", depth=True)
    for file in (folder / "images").iterdir():
        file.rename(folder / file.name)
    (folder / "images").rmdir()
    assert "move them into images/" in str(find_scenes("folder", tmp_path)["flat"])


def test_folder_leaves_finished_runs_out(tmp_path):
    make_folder_scene(tmp_path / "good")
    run = make_folder_scene(tmp_path / "run")
    (run / "run.json").write_text("{}")
    (run / "trajectory.tum").write_text("")
    assert list(find_scenes("folder", tmp_path)) == ["good"]

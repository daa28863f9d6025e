"""Every reader on a folder made in its layout: one wall, two cameras side by side."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from made_datasets import (
    DEPTH,
    STEP,
    make_blendedmvs,
    make_dynamicreplica,
    make_hypersim,
    make_scannet,
    make_tartanair,
    save_text,
)
from tiny_training import room

from geoweaver.errors import ConfigError, FormatError, GeoWeaverError, InputError, MissingExtraError
from geoweaver.geometry.camera import bearing, project
from geoweaver.synth.clips import ClipOptions
from geoweaver.training.datasets import dynamicreplica, hypersim, rendered
from geoweaver.training.datasets.registry import SOURCES, open_sources
from geoweaver.training.datasets.scene import Scene, View, window

MAKERS = {
    "scannet": make_scannet,
    "tartanair": make_tartanair,
    "blendedmvs": make_blendedmvs,
    "dynamicreplica": make_dynamicreplica,
}


def opened(name: str, maker: Callable[[Path], None], folder: Path) -> Scene:
    maker(folder)
    (source,) = open_sources([f"{name}:{folder}@2.5"])
    assert source.weight == 2.5 and len(source.scenes) == 1
    return source.scenes[0]


def assert_shows_the_wall(scene: Scene, ahead: np.ndarray, right: np.ndarray) -> None:
    """`ahead` and `right` are the first camera's axes in the source's own world."""
    first, second = scene.read(0), scene.read(1)
    for view, aside in ((first, 0), (second, float(STEP[0]))):
        known = view.depth[view.depth > 0]
        assert len(known) and torch.allclose(known, torch.tensor(DEPTH, dtype=known.dtype), atol=1e-5)
        world_from_cam = view.cam_from_world.inverse()
        hit = world_from_cam.act(torch.tensor([0, 0, DEPTH], dtype=torch.float64)).numpy()
        assert np.allclose(hit, DEPTH * ahead + aside * right, atol=1e-6)
        tip = world_from_cam.act(torch.tensor([1.0, 0, 0], dtype=torch.float64)).numpy()
        assert np.allclose(tip, (1 + aside) * right, atol=1e-6)
        assert torch.det(world_from_cam.rotation) == pytest.approx(1)
    middle = first.intrinsics[2:].numpy() * 2
    assert np.allclose(middle, first.image.shape[1::-1])


def test_scannet(tmp_path: Path) -> None:
    scene = opened("scannet", make_scannet, tmp_path)
    assert_shows_the_wall(scene, np.array([0, 0, 1]), np.array([1, 0, 0]))
    view = scene.read(0)
    assert view.image.shape == (24, 32, 3) and view.depth[0, 0] == 0
    assert view.intrinsics.tolist() == [30, 31, 16, 12]  # counted from the corner
    with pytest.raises(FormatError, match="lost"):
        scene.read(2)


def test_tartanair(tmp_path: Path) -> None:
    scene = opened("tartanair", make_tartanair, tmp_path)
    assert_shows_the_wall(scene, np.array([1, 0, 0]), np.array([0, 1, 0]))
    assert bool((scene.read(0).depth[:10] == 0).all())  # sky


def test_tartanair_with_a_pose_too_many(tmp_path: Path) -> None:
    make_tartanair(tmp_path)
    path = tmp_path / "office/Easy/P000/pose_left.txt"
    path.write_text(path.read_text() + "0 0 0 0 0 0 1\n")
    with pytest.raises(FormatError, match="2 images, but 3 poses"):
        open_sources([f"tartanair:{tmp_path}"])


def test_blendedmvs(tmp_path: Path) -> None:
    scene = opened("blendedmvs", make_blendedmvs, tmp_path)
    assert_shows_the_wall(scene, np.array([0, 0, 1]), np.array([1, 0, 0]))
    view = scene.read(0)
    assert bool((view.depth[0] == 0).all()) and bool((view.depth[-1] > 0).all())  # rows are not upside down
    assert set(scene.around(0, 2)) == {0, 1, 2} and set(scene.around(0, 1)) == {0, 1}


def test_dynamicreplica(tmp_path: Path) -> None:
    scene = opened("dynamicreplica", make_dynamicreplica, tmp_path)
    assert_shows_the_wall(scene, np.array([0, 0, 1]), np.array([1, 0, 0]))
    view = scene.read(0)
    assert view.intrinsics.tolist() == [30, 30, 16, 12] and bool((view.depth[0] == 0).all())


def test_cameras_of_dynamicreplica_project_as_pytorch3d_has_it() -> None:
    """A point up and to the left of the axis is seen up and to the left: (0, 0) is the image's corner."""
    seen = {
        "R": np.eye(3).tolist(), "T": [0, 0, 0], "focal_length": [2.0, 2.0],
        "principal_point": [0.1, -0.2], "intrinsics_format": "ndc_isotropic",
    }  # fmt: skip
    camera, K = dynamicreplica.camera_of(seen, 200, 100)
    # PyTorch3D: ndc = f x / z + p, x = 1 at the left edge of the short side's square
    pixel = project(camera.act(torch.tensor([0.25, 0.5, 1.0], dtype=torch.float64)), K)
    ndc = np.array([2 * 0.25 + 0.1, 2 * 0.5 - 0.2])
    assert np.allclose(pixel.numpy(), np.array([100, 50]) - 50 * ndc)


def test_hypersim(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    scene = opened("hypersim", make_hypersim, tmp_path)
    assert_shows_the_wall(scene, np.array([0, 0, -1]), np.array([1, 0, 0]))
    view = scene.read(1)
    assert view.depth[0, 0] == 0
    bright = np.percentile((view.image / 255.0) ** 2.2 @ [0.3, 0.59, 0.11], 90)
    assert bright ** (1 / 2.2) == pytest.approx(0.8, abs=0.02)


def test_hypersim_without_a_straight_lens(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    make_hypersim(tmp_path, skew=0.1)
    with pytest.raises(InputError, match="skew"):
        open_sources([f"hypersim:{tmp_path}"])


def test_hypersims_projection_and_light_need_no_library() -> None:
    M = np.zeros((4, 4))
    M[0, 0], M[1, 1], M[0, 2], M[1, 2] = 2.0, 3.0, 0.5, 0.25
    K = hypersim.intrinsics_of(M, 100, 60)
    assert K.tolist() == [100, 90, 25, 37.5]
    # OpenGL: x / -z of a point that it puts at x = 0.4 of the way from -1 to 1
    point = np.array([0.1, 0.2, -1.0])
    x, y = (M[0] @ [*point, 1]) / 1.0, (M[1] @ [*point, 1]) / 1.0
    ray = bearing(torch.tensor([[(x + 1) * 50, (1 - y) * 30]], dtype=torch.float64), K)[0]
    assert np.allclose(ray.numpy(), [0.1, -0.2, 1.0])
    dark = hypersim.tonemap(np.zeros((2, 2, 3)), np.ones((2, 2), bool))
    assert dark.max() == 0


def test_hypersim_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        hypersim._dataset(tmp_path / "x.hdf5")


def test_our_own_sequences(films: Path) -> None:
    (source,) = open_sources([f"folder:{films}"])
    assert len(source.scenes) == 2 and all(len(scene) == 4 for scene in source.scenes)
    view = source.scenes[0].read(1)
    assert view.image.shape == (56, 84, 3) and view.depth.shape == (56, 84)
    assert float(view.depth.max()) < 5
    assert torch.allclose(view.intrinsics[:2], torch.tensor(0.72 * 84, dtype=torch.float64))


def test_a_bent_lens_is_refused(films: Path, tmp_path: Path) -> None:
    scene = json.loads((films / "walk0/transforms.json").read_text())
    save_text(tmp_path / "transforms.json", json.dumps(scene | {"camera_model": "OPENCV", "k1": 0.1}))
    (tmp_path / "depth").symlink_to(films / "walk0/depth")
    (tmp_path / "images").symlink_to(films / "walk0/images")
    with pytest.raises(FormatError, match="rectify"):
        open_sources([f"folder:{tmp_path}"])[0].scenes[0].read(0)


def test_worlds_rendered_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendered, "build_world", lambda name, seed: room())
    scene = rendered.rendered_scene("tabletop", 7, ClipOptions(frames=3, size=(42, 28), laps=0.1))
    view = scene.read(1)
    assert view.image.shape == (28, 42, 3) and float(view.depth.max()) > 0
    assert len(open_sources(["render:street/3"])[0].scenes) == 3


@pytest.mark.parametrize(
    "spec",
    ["scannet", "nonsense:x", "render:nowhere", "render:street/0", "folder:/x@zero", "folder:/x@-1"],
)
def test_specs_that_cannot_be_understood(spec: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, InputError)):
        open_sources([spec])
    with pytest.raises(ConfigError, match="--data"):
        open_sources([])


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"render"}))
def test_a_folder_of_something_else_is_one_line(name: str, tmp_path: Path) -> None:
    save_text(tmp_path / "notes" / "hello.txt", "hello")
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(GeoWeaverError) as problem:
            open_sources([f"{name}:{folder}"])
        assert str(folder) in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_damaged_files_are_errors_of_the_user(name: str, tmp_path: Path) -> None:
    """Whatever file of a layout is cut short: opening or reading complains in our own words, or works."""
    MAKERS[name](tmp_path)
    for path in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 3])
        try:
            for scene in open_sources([f"{name}:{tmp_path}"])[0].scenes:
                assert isinstance(scene.read(0), View)
        except GeoWeaverError as error:
            assert "\n" not in str(error)
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("frames", "views", "per_view"), [(100, 4, 3.0), (5, 4, 30.0), (4, 4, 0.1), (50, 16, 0.0)]
)
def test_windows_hold_the_anchor_and_enough_others(frames: int, views: int, per_view: float) -> None:
    around = window(frames, per_view)
    reach = max(round(per_view * views), views - 1)
    for anchor in range(frames):
        found = around(anchor, views)
        assert anchor in found and found[0] >= 0 and found[-1] < frames
        assert len(found) == min(frames, 2 * reach + 1)


def test_a_camera_that_is_not_finite_is_refused(films: Path) -> None:
    view = open_sources([f"folder:{films}"])[0].scenes[0].read(0)
    with pytest.raises(FormatError, match="not finite"):
        View(view.image, view.depth, view.cam_from_world, view.intrinsics * float("nan"))
    with pytest.raises(FormatError, match="focal"):
        View(view.image, view.depth, view.cam_from_world, -view.intrinsics)

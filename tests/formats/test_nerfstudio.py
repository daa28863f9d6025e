"""transforms.json: axes, intrinsics for all or per frame, names, and what is refused."""

import json
import math

import hypothesis.strategies as st
import pytest
import torch
from format_strategies import cameras, lenses, relative_difference, tangents
from hypothesis import given, settings

from geoweaver.datatypes import Camera
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.nerfstudio import (
    NerfstudioScene,
    read_transforms,
    read_transforms_trajectory,
    write_transforms,
)
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry import SE3

EYE = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
FRAME = {"file_path": "images/0001.jpg", "transform_matrix": EYE}


def saved(path, **fields):
    """A transforms.json of one frame, with these fields."""
    path = path / "transforms.json"
    path.write_text(json.dumps({"frames": [FRAME], **fields}))
    return path


@settings(max_examples=30)
@given(tangents(), st.lists(lenses(), min_size=1, max_size=3, unique=True))
def test_round_trip(scratch, tangent, values):
    n = len(tangent)
    names = tuple(f"images/ü_{i}.jpg" for i in range(n))
    scene = NerfstudioScene(
        names, cameras(tangent), tuple(Camera(*lens) for lens in values[:n]), torch.arange(n) % len(values)
    )
    write_transforms(scratch / "t.json", scene)
    back = read_transforms(scratch / "t.json")
    assert back.file_paths == names
    assert relative_difference(scene.cam_from_world, back.cam_from_world) < 1e-14
    assert back.cameras == scene.cameras and torch.equal(back.camera, scene.camera)


def test_a_camera_that_looks_along_minus_z_with_y_up(tmp_path):
    world_from_cam = read_transforms(saved(tmp_path)).cam_from_world.inverse()
    ahead, down = torch.tensor([[0.0, 0, 1], [0, 1, 0]], dtype=torch.float64)
    torch.testing.assert_close(world_from_cam.act(ahead)[0], torch.tensor([0.0, 0, -1]).double())
    torch.testing.assert_close(world_from_cam.act(down)[0], torch.tensor([0.0, -1, 0]).double())


def test_shared_intrinsics_stand_at_the_top_and_others_per_frame(tmp_path):
    one, two = (Camera("PINHOLE", (float(f), float(f), 5.0, 4.0), 10, 8) for f in (7, 9))
    names, pose = ("a.png", "b.png"), SE3.identity(2)
    write_transforms(
        tmp_path / "one.json",
        NerfstudioScene(names, pose, (one,), torch.tensor([0, 0])),
        ["d/a", "d/b"],
        "points.ply",
    )
    shared = json.loads((tmp_path / "one.json").read_text())
    assert shared["fl_x"] == 7 and shared["camera_model"] == "PINHOLE" and "fl_x" not in shared["frames"][0]
    assert shared["ply_file_path"] == "points.ply" and shared["frames"][1]["depth_file_path"] == "d/b"
    write_transforms(tmp_path / "two.json", NerfstudioScene(names, pose, (one, two), torch.tensor([1, 0])))
    apart = json.loads((tmp_path / "two.json").read_text())
    assert [frame["fl_x"] for frame in apart["frames"]] == [9, 7] and "fl_x" not in apart
    assert read_transforms(tmp_path / "two.json").cameras == (two, one)


def test_frames_override_the_top(tmp_path):
    other = {**FRAME, "file_path": "b.jpg", "fl_x": 30}
    scene = read_transforms(saved(tmp_path, fl_x=20, w=10, h=8, frames=[FRAME, other]))
    assert [camera.params for camera in scene.cameras] == [(20, 20, 5, 4), (30, 30, 5, 4)]
    assert scene.camera.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("fields", "model", "params"),
    [
        ({"fl_x": 9, "cx": 1.5, "cy": 2.5}, "PINHOLE", (9, 9, 1.5, 2.5)),
        ({"fl_x": 9, "fl_y": 8, "k1": 0.1}, "OPENCV", (9, 8, 5, 4, 0.1, 0, 0, 0)),
        ({"fl_x": 9, "camera_model": "OPENCV"}, "OPENCV", (9, 9, 5, 4, 0, 0, 0, 0)),
        ({"fl_x": 9, "k3": 0.3, "p1": 1}, "FULL_OPENCV", (9, 9, 5, 4, 0, 0, 1, 0, 0.3, 0, 0, 0)),
        ({"fl_x": 9, "camera_model": "OPENCV_FISHEYE", "k4": 2}, "OPENCV_FISHEYE", (9, 9, 5, 4, 0, 0, 0, 2)),
        ({"fl_x": 9, "is_fisheye": True}, "OPENCV_FISHEYE", (9, 9, 5, 4, 0, 0, 0, 0)),
        ({"camera_angle_x": math.pi / 2}, "PINHOLE", (5, 5, 5, 4)),
    ],
)
def test_camera_models(tmp_path, fields, model, params):
    (camera,) = read_transforms(saved(tmp_path, w=10.0, h=8, **fields)).cameras
    assert (camera.model, camera.width, camera.height) == (model, 10, 8)
    assert camera.params == pytest.approx(params)


@pytest.mark.parametrize(
    "fields",
    [{}, {"fl_x": 5}, {"w": 5, "h": 5}, {"fl_x": 5, "w": 5, "h": 5, "camera_model": "EQUIRECTANGULAR"}],
)
def test_poses_are_read_where_intrinsics_are_not_stated(tmp_path, fields):
    scene = read_transforms(saved(tmp_path, **fields))
    assert scene.cameras == () and scene.camera.tolist() == [-1]
    write_transforms(tmp_path / "back.json", scene)
    assert len(read_transforms(tmp_path / "back.json")) == 1


def test_models_without_a_word_in_nerfstudio(tmp_path):
    for camera in (
        Camera("FOV", (1.0,) * 5, 2, 2),
        Camera("FULL_OPENCV", (1.0,) * 12, 2, 2),
    ):
        scene = NerfstudioScene(("a",), SE3.identity(1), (camera,), torch.tensor([0]))
        with pytest.raises(InputError, match=r"export rectified \(PINHOLE\) images"):
            write_transforms(tmp_path / "t.json", scene)


@pytest.mark.parametrize(
    ("file_path", "name"),
    [
        ("images/0001.jpg", "0001.jpg"),
        ("./images/0001.jpg", "0001.jpg"),
        ("images_4/cam0/1.jpg", "cam0/1.jpg"),
        (".\\images\\1.jpg", "1.jpg"),
        ("./train/r_0", "train/r_0"),
        ("images", "images"),
        ("./", "./"),
    ],
)
def test_names_as_colmap_has_them(tmp_path, file_path, name):
    path = saved(tmp_path, frames=[{**FRAME, "file_path": file_path}])
    assert read_transforms_trajectory(path).names == (name,)


def test_places_in_the_sequence(tmp_path):
    names = ["f_10.jpg", "f_9.jpg", "f_30.jpg"]
    path = saved(tmp_path, frames=[{**FRAME, "file_path": f"images/{name}"} for name in names])
    assert read_trajectory(path).index.tolist() == [1, 0, 2]
    (tmp_path / "images").mkdir()
    for name in [*names, "f_1.jpg", "notes.txt"]:
        (tmp_path / "images" / name).touch()
    assert read_trajectory(tmp_path).index.tolist() == [2, 1, 3]


def posed(matrix):
    """One frame with this matrix."""
    return [{**FRAME, "transform_matrix": matrix}]


BAD = {
    "not json": ("{'frames': 1}", "line 1: not valid JSON"),
    "cut": ('{"frames": [\n{"file_path": "a"', "line 2: not valid JSON"),
    "deep": ('{"a":' + "[" * 100_000, "not usable JSON"),
    "huge integer": ('{"frames": [' + "9" * 5000 + "]}", "not usable JSON"),
    "no frames": ('{"fl_x": 1}', "a list 'frames' was expected, found None"),
    "empty": ('{"frames": []}', "'frames' is empty"),
    "frames of numbers": ('{"frames": [1]}', "frame 0: a 'file_path' was expected"),
    "a nameless frame": ('{"frames": [{"file_path": 5}]}', "frame 0: a 'file_path' was expected, found 5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_json(tmp_path, name):
    text, expected = BAD[name]
    path = tmp_path / "any.name"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read_trajectory(path)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"frames": [FRAME, FRAME]}, "frame 1: 'images/0001.jpg' is also frame 0"),
        ({"frames": posed([[1]])}, "frame 0: transform_matrix is no 4x4 matrix"),
        ({"frames": posed([*EYE[:3], [0, 0, 0, "1"]])}, "an entry of transform_matrix is '1'"),
        ({"frames": posed([*EYE[:3], [0, 0, 0, math.nan]])}, "is nan, a finite number"),
        ({"frames": posed([*EYE[:3], [0, 0, 0, 10**400]])}, "a finite number was expected"),
        ({"frames": posed([*EYE[:3], [0, 0, 0, True]])}, "is True, a finite number"),
        ({"frames": posed([*EYE[:3], [0, 0, 0, 2]])}, "end with the row 0 0 0 1"),
        ({"frames": posed([[2, 0, 0, 0], *EYE[1:]])}, "is no rotation"),
        ({"w": 10, "h": 8, "fl_x": "wide"}, "frame 0: fl_x is 'wide', a finite number was expected"),
        ({"w": 10, "h": 8, "fl_x": 0}, "fl_x is 0.0, it must be positive"),
        ({"w": 10.5, "h": 8, "fl_x": 1}, "w is 10.5, a whole number of pixels was expected"),
        ({"w": -4, "h": 8, "fl_x": 1}, "a whole number of pixels"),
        ({"w": 4, "h": 8, "camera_angle_x": 7}, "it must lie in (0, pi)"),
        ({"w": 4, "h": 8, "fl_x": 1, "k4": 1}, "k4 of a perspective camera is not supported"),
        ({"w": 4, "h": 8, "fl_x": 1, "camera_model": 3}, "camera_model is 3, a name was expected"),
        ({"w": 4, "h": 8, "fl_x": 1, "cx": None}, "cx is None"),
    ],
)  # fmt: skip
def test_bad_fields(tmp_path, fields, expected):
    with pytest.raises(FormatError) as caught:
        read_transforms(saved(tmp_path, **fields))
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_a_3x4_matrix_and_noise_are_taken(tmp_path):
    noisy = [[1.0004, 0, 0, 1], [0, 0.9997, 0, 2], [0, 0.0003, 1, 3]]
    R = read_transforms(
        saved(tmp_path, frames=[{**FRAME, "transform_matrix": noisy}])
    ).cam_from_world.rotation[0]
    torch.testing.assert_close(R @ R.mT, torch.eye(3, dtype=torch.float64), atol=1e-14, rtol=0)

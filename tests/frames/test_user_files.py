"""What users hand in beside the images: lists of frames, times, intrinsics."""

import json
from pathlib import Path

import numpy as np
import pytest
import recordings
import torch

from geoweaver.errors import InputError
from geoweaver.frames import FramesConfig, open_frames, rectify_frames
from geoweaver.geometry.distortion import Lens, lens_from_opencv, undistort_points

K = "100,101,47.5,31.5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recordings.write_images(tmp_path / "in", recordings.flat([0, 40, 80, 120, 160]))


def written(tmp_path: Path, text: str, name: str = "given.txt") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize("text", ["1.png\n3.png\n", "# a comment\n3\n1\n\n1\n", "in/3.png\n1\n"])
def test_frame_list(folder: Path, tmp_path: Path, text: str) -> None:
    frames = open_frames(folder, FramesConfig(frames=written(tmp_path, text)))
    assert frames.names == ("1.png", "3.png")
    assert frames.timestamps.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.png\nnone.png\n", "line 2: 'none.png' is no frame's name"),
        ("7\n", "index"),
        ("", "holds no data"),
    ],
)
def test_bad_frame_list(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_frames(folder, FramesConfig(frames=written(tmp_path, text)))


@pytest.mark.parametrize("line", ["{time}", "{time} rgb/{i}.png"], ids=["plain", "tum"])
def test_timestamps(folder: Path, tmp_path: Path, line: str) -> None:
    lines = [line.format(time=10.5 + i, i=i) for i in range(5)]
    given = written(tmp_path, "# times\n" + "\n".join(lines))
    times = open_frames(folder, FramesConfig(timestamps=given, stride=2)).timestamps
    assert times.tolist() == [10.5, 12.5, 14.5]


def test_euroc_nanoseconds_become_seconds(folder: Path, tmp_path: Path) -> None:
    lines = [f"{1403715273262142976 + i * 50_000_000},{i}.png" for i in range(5)]
    given = written(tmp_path, "#timestamp [ns],filename\n" + "\n".join(lines), "data.csv")
    times = open_frames(folder, FramesConfig(timestamps=given)).timestamps
    assert times[0].item() == pytest.approx(1403715273.262142976)
    assert times.diff().tolist() == pytest.approx([0.05] * 4, abs=1e-6)


def test_timestamps_by_name_follow_the_name(folder: Path, tmp_path: Path) -> None:
    lines = [f"{100 + 2 * i} rgb/{i}.png" for i in range(9)]
    given = written(tmp_path, "\n".join(lines))
    times = open_frames(folder, FramesConfig(timestamps=given)).timestamps
    assert times.tolist() == [100, 102, 104, 106, 108]


def test_synchronised_cameras_share_times(tmp_path: Path) -> None:
    for side in ("left", "right"):
        recordings.write_images(tmp_path / "in" / side, recordings.flat([1, 2, 3]))
    given = written(tmp_path, "0.5\n0.6\n0.7\n")
    times = open_frames(tmp_path / "in", FramesConfig(timestamps=given)).timestamps
    assert times.tolist() == [0.5, 0.6, 0.7, 0.5, 0.6, 0.7]


def two_cameras(tmp_path: Path) -> Path:
    """Two cameras whose images have the same file names."""
    for side in ("cam0", "cam1"):
        recordings.write_images(tmp_path / "in" / side, recordings.flat([1, 2]))
    return tmp_path / "in"


def test_equal_file_names_of_two_cameras_have_their_own_times(tmp_path: Path) -> None:
    lines = [f"{time} data/cam{c}/{i}.png" for c in (0, 1) for i, time in enumerate((10 * c + 1, 10 * c + 2))]
    given = written(tmp_path, "\n".join(lines))
    times = open_frames(two_cameras(tmp_path), FramesConfig(timestamps=given)).timestamps
    assert times.tolist() == [1, 2, 11, 12]
    given = written(tmp_path, "\n".join(lines[:2]))
    with pytest.raises(InputError, match="no time for cam1/0"):
        open_frames(tmp_path / "in", FramesConfig(timestamps=given))


def test_a_name_without_folder_is_every_cameras(tmp_path: Path) -> None:
    given = written(tmp_path, "1,0.png\n2,1.png\n3,2.png\n", "data.csv")
    times = open_frames(two_cameras(tmp_path), FramesConfig(timestamps=given)).timestamps
    assert times.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("line", ["{time} rgb/my image {i}.png", "{time},my image {i}.png,"])
def test_image_names_with_blanks(tmp_path: Path, line: str) -> None:
    names = [f"my image {i}.png" for i in range(1, 4)]
    folder = recordings.write_images(tmp_path / "in", recordings.flat([1, 2, 3]), names)
    given = written(tmp_path, "\n".join(line.format(time=10 + i, i=i) for i in range(5)))
    times = open_frames(folder, FramesConfig(timestamps=given)).timestamps
    assert times.tolist() == [11, 12, 13]


def test_further_columns_are_no_names(folder: Path, tmp_path: Path) -> None:
    given = written(tmp_path, "\n".join(f"{i} rgb/{i}.png {i} depth/{4 - i}.png" for i in range(5)))
    assert open_frames(folder, FramesConfig(timestamps=given)).timestamps.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("first", "unit"),
    [(1403715273, 1), (1403715273262, 10**3), (1403715273262142, 10**6), (1403715273262142976, 10**9),
     (9 * 10**14, 10**9)],
)  # fmt: skip
def test_digits_tell_the_unit(folder: Path, tmp_path: Path, first: int, unit: int) -> None:
    given = written(tmp_path, "\n".join(str(first + i * unit * 50_000) for i in range(5)))
    times = open_frames(folder, FramesConfig(timestamps=given)).timestamps
    assert times.tolist() == pytest.approx([first / unit + 50_000 * i for i in range(5)], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n3\n", "has 3 times for 5 frames"),
        ("1\n2\nx\n4\n5\n", "line 3: the time is 'x'"),
        ("1\n2\n,\n4\n5\n", "line 3: the time is"),
        ("1\n2\n2\n4\n5\n", "times must increase"),
        ("1\n2\nnan\n4\n5\n", "not finite"),
    ],
)
def test_bad_timestamps(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_frames(folder, FramesConfig(timestamps=written(tmp_path, text)))


def test_typed_intrinsics_count_from_the_first_pixel_centre(folder: Path) -> None:
    frames = open_frames(folder, FramesConfig(intrinsics=K))
    assert frames.cameras[0].calibrated
    assert frames.cameras[0].rectified == pytest.approx((100, 101, 48, 32))


def test_files_of_intrinsics_agree_with_numbers(folder: Path, tmp_path: Path) -> None:
    cameras = written(tmp_path, "# list\n1 PINHOLE 192 128 200 202 96 64\n", "cameras.txt")
    scene = {"w": 96, "h": 64, "fl_x": 100, "fl_y": 101, "cx": 48, "cy": 32}
    scene["frames"] = [{"file_path": f"in/{i}.png", "transform_matrix": np.eye(4).tolist()} for i in range(5)]
    transforms = written(tmp_path, json.dumps(scene), "transforms.json")
    for given in (K, str(cameras), str(transforms)):
        camera = open_frames(folder, FramesConfig(intrinsics=given)).cameras[0]
        assert camera.rectified == pytest.approx((100, 101, 48, 32)), given


def test_one_camera_per_sub_folder(tmp_path: Path) -> None:
    for side in ("left", "right"):
        recordings.write_images(tmp_path / "in" / side, recordings.flat([1, 2]))
    given = written(tmp_path, "1 PINHOLE 96 64 100 100 48 32\n2 PINHOLE 96 64 120 120 48 32\n", "cameras.txt")
    frames = open_frames(tmp_path / "in", FramesConfig(intrinsics=str(given)))
    assert [camera.rectified[0] for camera in frames.cameras] == [100, 120]
    single = recordings.write_images(tmp_path / "single", recordings.flat([1, 2]))
    with pytest.raises(InputError, match="2 cameras and none for"):
        open_frames(single, FramesConfig(intrinsics=str(given)))


def test_equal_file_names_of_two_cameras_have_their_own_lenses(tmp_path: Path) -> None:
    size = {"w": 96, "h": 64, "cx": 48, "cy": 32, "transform_matrix": np.eye(4).tolist()}
    scene = {"frames": [
        {**size, "file_path": f"images/cam{c}/{i}.png", "fl_x": focal, "fl_y": focal}
        for c, focal in enumerate((100, 120)) for i in range(2)
    ]}  # fmt: skip
    given = FramesConfig(intrinsics=str(written(tmp_path, json.dumps(scene), "transforms.json")))
    frames = open_frames(two_cameras(tmp_path), given)
    assert [frames.cameras[g].rectified[0] for g in frames.camera.tolist()] == [100, 100, 120, 120]
    with pytest.raises(InputError, match="2 cameras and none for 0"):
        open_frames(tmp_path / "in/cam0", given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("1,2,3", "intrinsics have 3 values"),
        ("a,b,c,d", "neither a file nor numbers"),
        ("100,100,700,32", "principal point .* outside the image"),
        ("-5,100,47,32", "not usable"),
        ("none.json", "does not exist"),
    ],
)
def test_bad_intrinsics(folder: Path, given: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        open_frames(folder, FramesConfig(intrinsics=given))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 PINHOLE 64 96 100 100 32 48\n", "is for images of 64x96, these are 96x64"),
        ("1 MAGIC 96 64 100 100 48 32\n", "line 1: camera model 'MAGIC'"),
        ("1 PINHOLE 96 64\n", "line 1"),
        ("1 PINHOLE 96 64 100 100 48 many\n", "not a number"),
    ],
)
def test_bad_cameras_txt(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    given = written(tmp_path, text, "cameras.txt")
    with pytest.raises(InputError, match=message):
        open_frames(folder, FramesConfig(intrinsics=str(given)))


def spots(lens: Lens, where: torch.Tensor) -> np.ndarray:
    """A picture with bright spots at distorted positions."""
    y, x = np.mgrid[: lens.size[1], : lens.size[0]] + 0.5
    picture = sum(np.exp(-((x - u) ** 2 + (y - v) ** 2) / 8) for u, v in where.tolist())
    return np.repeat((255 * np.clip(picture, 0, 1)).astype(np.uint8)[..., None], 3, -1)


def test_distorted_images_become_pinhole_images(tmp_path: Path) -> None:
    """Spots lie where the rectified intrinsics say, to a fraction of a pixel."""
    given = "300,300,159.5,119.5,-0.2,0.05,0.001,-0.001"
    lens = lens_from_opencv(tuple(float(v) for v in given.split(",")), (320, 240))
    where = torch.tensor(
        [[60.0, 50.0], [250.0, 70.0], [160.0, 120.0], [80.0, 190.0], [260.0, 200.0]]
    ).double()
    picture = spots(lens, where)
    folder = recordings.write_images(tmp_path, [picture, picture])
    frames = open_frames(folder, FramesConfig(intrinsics=given))
    image = frames.pixels.read(0)[..., 0].astype(float)
    assert image.shape == frames.size[::-1]
    expected = undistort_points(where, lens, torch.tensor(frames.cameras[0].rectified, dtype=torch.float64))
    y, x = np.mgrid[: image.shape[0], : image.shape[1]] + 0.5
    for u, v in expected.tolist():
        near = image * ((x - u) ** 2 + (y - v) ** 2 < 64)
        found = (near * x).sum() / near.sum(), (near * y).sum() / near.sum()
        assert found == pytest.approx((u, v), abs=0.1)
    assert frames.cameras[0].model == "OPENCV"


def test_a_lens_found_later_rectifies_the_same_frames(folder: Path) -> None:
    frames = open_frames(folder)
    lens = Lens("SIMPLE_RADIAL", (110.0, 48.0, 32.0, -0.1), (96, 64))
    again = rectify_frames(frames, [lens])
    assert again.cameras[0].model == "SIMPLE_RADIAL"
    assert not again.cameras[0].calibrated
    assert again.pixels.read(1).shape[:2] == again.size[::-1]
    assert not set(again.digests) & set(frames.digests)


def test_a_calibration_file_is_found_from_other_folders_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "1 PINHOLE 192 128 200 202 96 64\n", "cameras.txt")
    monkeypatch.chdir(tmp_path)
    assert FramesConfig(intrinsics="cameras.txt").found_from_anywhere().intrinsics == str(
        tmp_path / "cameras.txt"
    )
    assert FramesConfig(intrinsics=K).found_from_anywhere().intrinsics == K

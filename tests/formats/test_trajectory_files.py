"""TUM, KITTI, EuRoC and Tanks-and-Temples logs: what is written reads back, what is stated is kept."""

import math

import pytest
import torch
from format_strategies import cameras, relative_difference, tangents
from hypothesis import given, settings
from hypothesis import strategies as st

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError
from geoweaver.formats.euroc import read_euroc
from geoweaver.formats.kitti import read_kitti, write_kitti
from geoweaver.formats.tnt_log import read_tnt_alignment, read_tnt_log, write_tnt_log
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.formats.tum import read_tum, write_tum
from geoweaver.formats.vkitti import read_vkitti, read_vkitti_intrinsics
from geoweaver.geometry import SE3


@settings(max_examples=30)
@given(tangents(), st.floats(0, 2e9), st.floats(1e-3, 1e3))
def test_tum_round_trip(scratch, tangent, start, step):
    times = start + torch.arange(len(tangent), dtype=torch.float64) * step
    trajectory = Trajectory(cameras(tangent), index=torch.arange(len(tangent)), timestamps=times)
    write_tum(scratch / "a.tum", trajectory)
    back = read_tum(scratch / "a.tum")
    assert torch.equal(back.timestamps, trajectory.timestamps)
    assert relative_difference(trajectory.cam_from_world, back.cam_from_world) < 1e-14


@settings(max_examples=30)
@given(tangents())
def test_kitti_round_trip(scratch, tangent):
    trajectory = Trajectory(cameras(tangent), index=torch.arange(len(tangent)))
    write_kitti(scratch / "a.txt", trajectory)
    back = read_kitti(scratch / "a.txt")
    assert torch.equal(back.index, trajectory.index) and back.timestamps is None
    assert relative_difference(trajectory.cam_from_world, back.cam_from_world) < 1e-14


@settings(max_examples=30)
@given(tangents())
def test_log_round_trip(scratch, tangent):
    trajectory = Trajectory(cameras(tangent), index=7 + 3 * torch.arange(len(tangent)))
    write_tnt_log(scratch / "a.log", trajectory)
    back = read_tnt_log(scratch / "a.log")
    assert torch.equal(back.index, trajectory.index)
    assert relative_difference(trajectory.cam_from_world, back.cam_from_world) < 1e-14


def test_tum_is_camera_to_world_with_w_last(tmp_path):
    half = math.sqrt(0.5)
    (tmp_path / "a.tum").write_text(f"0 1 2 3 0 0 {half} {half}\n")  # 90 degrees about z
    world_from_cam = read_tum(tmp_path / "a.tum").cam_from_world.inverse()
    moved = world_from_cam.act(torch.tensor([1.0, 0, 0], dtype=torch.float64))
    torch.testing.assert_close(moved, torch.tensor([[1.0, 3, 3]], dtype=torch.float64))


def test_kitti_and_log_are_camera_to_world(tmp_path):
    (tmp_path / "a.txt").write_text("0 -1 0 1 1 0 0 2 0 0 1 3\n")
    (tmp_path / "a.log").write_text("0 0 0\n0 -1 0 1\n1 0 0 2\n0 0 1 3\n0 0 0 1\n")
    for name in ("a.txt", "a.log"):
        moved = (
            read_trajectory(tmp_path / name).cam_from_world.inverse().act(torch.tensor([1.0, 0, 0]).double())
        )
        torch.testing.assert_close(moved, torch.tensor([[1.0, 3, 3]], dtype=torch.float64))


@pytest.mark.parametrize("stamp", ["1403636579.763555527", "0.1", "1e-300", "1305031102.175304", "17"])
def test_a_stamp_keeps_its_digits(tmp_path, stamp):
    (tmp_path / "a.tum").write_text(f"{stamp} 0 0 0 0 0 0 1\n")
    write_tum(tmp_path / "b.tum", read_tum(tmp_path / "a.tum"))
    written = (tmp_path / "b.tum").read_text().split()[0]
    assert float(written) == float(stamp)
    assert written == repr(float(stamp)).removesuffix(".0")


def test_whole_stamps_are_places_in_the_sequence(tmp_path):
    rows = [f"{stamp} 0 0 0 0 0 0 1" for stamp in (0, 5, 10)]
    (tmp_path / "a.tum").write_text("\n".join(rows))
    assert read_tum(tmp_path / "a.tum").index.tolist() == [0, 5, 10]
    (tmp_path / "b.tum").write_text("\n".join(["1403636579 0 0 0 0 0 0 1", "1403636580 0 0 0 0 0 0 1"]))
    assert read_tum(tmp_path / "b.tum").index.tolist() == [0, 1]


def test_a_trajectory_without_times_is_stamped_by_index(tmp_path):
    write_tum(tmp_path / "a.tum", Trajectory(SE3.identity(2), index=torch.tensor([3, 9])))
    assert read_tum(tmp_path / "a.tum").timestamps.tolist() == [3.0, 9.0]


def test_small_noise_is_removed(tmp_path):
    (tmp_path / "a.txt").write_text("1.0001 0.0002 0 0 0 0.9998 0 0 0 0 1 0\n")
    R = read_kitti(tmp_path / "a.txt").cam_from_world.rotation[0]
    torch.testing.assert_close(R @ R.mT, torch.eye(3, dtype=torch.float64), atol=1e-14, rtol=0)
    (tmp_path / "a.tum").write_text("0 0 0 0 0.71 0 0 0.7\n")
    R = read_tum(tmp_path / "a.tum").cam_from_world.rotation[0]
    torch.testing.assert_close(R @ R.mT, torch.eye(3, dtype=torch.float64), atol=1e-14, rtol=0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_line_ends_and_comments(tmp_path, encoding, newline):
    lines = ["# größe", "", "  0 1 2 3 0 0 0 1  ", "#x", "1\t1 2 4 0 0 0 1", ""]
    (tmp_path / "a.tum").write_bytes(newline.join(lines).encode(encoding))
    assert read_trajectory(tmp_path / "a.tum").cam_from_world.centre[:, 2].tolist() == [3.0, 4.0]


EUROC = (
    "#timestamp, p_RS_R_x [m], ...\r\n"
    "1403636579763555584,1,2,3,0.0,1.0,0.0,0.0,0.1,0.2,0.3,0,0,0,0,0,0\r\n"
    "1403636579813555456,1,2,4,0.0,1.0,0.0,0.0,0.1,0.2,0.3,0,0,0,0,0,0\r\n"
)


def test_euroc(tmp_path):
    (tmp_path / "data.csv").write_text(EUROC)
    read = read_trajectory(tmp_path / "data.csv")
    assert read.timestamps.tolist() == [1403636579.763555584, 1403636579.813555456]
    torch.testing.assert_close(read.cam_from_world.centre[1], torch.tensor([1.0, 2, 4]).double())
    down = read.cam_from_world.inverse().rotation[0] @ torch.tensor([0.0, 0, 1]).double()
    torch.testing.assert_close(down, torch.tensor([0.0, 0, -1]).double())


def test_euroc_of_the_camera_instead_of_the_body(tmp_path):
    (tmp_path / "data.csv").write_text(EUROC)
    body_from_cam = SE3.exp(torch.tensor([0.1, 0.2, 0.3, 1.0, 0.5, -0.2], dtype=torch.float64))
    camera = read_euroc(tmp_path / "data.csv", body_from_cam).cam_from_world
    body = read_euroc(tmp_path / "data.csv").cam_from_world
    torch.testing.assert_close((body_from_cam @ camera).matrix(), body.matrix())


VKITTI = (
    "frame cameraID r1,1 r1,2 r1,3 t1 r2,1 r2,2 r2,3 t2 r3,1 r3,2 r3,3 t3 0 0 0 1\n"
    "4 0 0 -1 0 1 1 0 0 2 0 0 1 3 0 0 0 1\n"
    "4 1 0 -1 0 0 1 0 0 2 0 0 1 3 0 0 0 1\n"
    "6 0 0 -1 0 1 1 0 0 2 0 0 1 5 0 0 0 1\n"
)
VKITTI_INTRINSICS = "frame cameraID K[0,0] K[1,1] K[0,2] K[1,2]\n0 0 725 726 620.5 187\n0 1 1 1 1 1\n"
ALIGNMENT = "0 -2 0 1\n2 0 0 2\n0 0 2 3\n0 0 0 1\n"


def test_virtual_kitti_is_world_to_camera_and_has_two_cameras(tmp_path):
    (tmp_path / "extrinsic.txt").write_text(VKITTI)
    read = read_trajectory(tmp_path / "extrinsic.txt")
    assert read.index.tolist() == [4, 6]
    seen = read.cam_from_world.act(torch.tensor([1.0, 0, 0]).double())
    torch.testing.assert_close(seen, torch.tensor([[1.0, 3, 3], [1, 3, 5]], dtype=torch.float64))
    assert read_vkitti(tmp_path / "extrinsic.txt", camera=1).cam_from_world.translation.tolist() == [
        [0, 2, 3]
    ]
    with pytest.raises(FormatError, match="no row of camera 2"):
        read_vkitti(tmp_path / "extrinsic.txt", camera=2)
    (tmp_path / "intrinsic.txt").write_text(VKITTI_INTRINSICS)
    assert read_vkitti_intrinsics(tmp_path / "intrinsic.txt") == (725, 726, 620.5, 187)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("6 0 0", "4 0 0", "appears twice"),
        ("6 0 0", "6.5 0 0", "frame numbers"),
        (" 5 0 0 0 1", " 5 0 0 0", "18"),
    ],
)
def test_virtual_kitti_with_wrong_rows(tmp_path, old, new, words):
    (tmp_path / "a.txt").write_text(VKITTI.replace(old, new))
    with pytest.raises(FormatError, match=words):
        read_vkitti(tmp_path / "a.txt")


def test_the_alignment_of_tanks_and_temples_is_a_similarity(tmp_path):
    (tmp_path / "a.txt").write_text(ALIGNMENT)
    moved = read_tnt_alignment(tmp_path / "a.txt").act(torch.tensor([1.0, 0, 0]).double())
    torch.testing.assert_close(moved, torch.tensor([1.0, 4, 3], dtype=torch.float64))
    for wrong in (
        ALIGNMENT.replace("2 0 0 2", "-2 0 0 2"),
        ALIGNMENT.replace("0 0 2 3", "0 0 3 3"),
        "1 0 0 0\n",
    ):
        (tmp_path / "a.txt").write_text(wrong)
        with pytest.raises(FormatError):
            read_tnt_alignment(tmp_path / "a.txt")


def test_log_with_all_zero_numbers_counts_entries(tmp_path):
    entry = "0 0 0\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"
    (tmp_path / "a.log").write_text(entry * 3)
    assert read_trajectory(tmp_path / "a.log").index.tolist() == [0, 1, 2]


@pytest.mark.parametrize("write", [write_tum, write_kitti, write_tnt_log])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, write, monkeypatch):
    trajectory = Trajectory(SE3.identity(2), index=torch.arange(2))
    (tmp_path / "a").write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", _full_disk)
    with pytest.raises(Exception, match=r"cannot be written .*No space left"):
        write(tmp_path / "a", trajectory)
    assert [p.name for p in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_text() == "old"


def _full_disk(*_):
    raise OSError(28, "No space left on device")

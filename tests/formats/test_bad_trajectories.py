"""What users really hand over by mistake: one line that says what, where and what to do."""

import os
from pathlib import Path

import pytest

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import writing
from geoweaver.formats.kitti import read_kitti
from geoweaver.formats.tnt_log import read_tnt_log
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.formats.tum import read_tum

GOOD = "0 0 0 0 0 0 0 1"
UNIT = "1 0 0 0 0 1 0 0 0 0 1 0"
LOG = "0 0 0\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1"

BAD = {
    "text in a number": (f"{GOOD}\n1 0 0 zero 0 0 0 1", "line 2: tz is 'zero', not a number"),
    "a nan": (f"{GOOD}\n\n1 0 0 nan 0 0 0 1", "line 3: tz is 'nan', not finite"),
    "an infinity": ("0 -inf 0 0 0 0 0 1", "line 1: tx is '-inf', not finite"),
    "a huge integer": (f"{'9' * 5000} 0 0 0 0 0 0 1", "line 1: timestamp is '9999"),
    "an underscore": ("1_0 0 0 0 0 0 0 1", "line 1: timestamp is '1_0', not a number"),
    "other digits": ("１ 0 0 0 0 0 0 1", "not a number"),
    "a norm of zero": (f"{GOOD}\n1 0 0 0 0 0 0 0", "line 2: the quaternion's norm is 0, not 1"),
    "a norm of two": ("1 0 0 0 0 0 0 2", "line 1: the quaternion's norm is 2, not 1"),
    "a huge quaternion": ("1 0 0 0 1e300 0 0 0", "norm"),
    "a cut line": (
        f"{GOOD}\n1 0 0 0",
        "line 2: 8 numbers (timestamp tx ty tz qx qy qz qw) were expected, 4 found",
    ),
    "a line too long": (f"{GOOD}\n{GOOD} 1", "line 2: 8 numbers"),
    "the same time twice": (
        f"# c\n{GOOD}\n1 0 0 0 0 0 0 1\n0 9 0 0 0 0 0 1",
        "line 4: the time 0 is already on line 2",
    ),
    "a far place": ("0 1e30 0 0 0 0 0 1", "line 1: a coordinate of 1e+30 is out of range"),
    "nothing": ("", "holds no data"),
    "comments only": ("# a\n\n#b\n", "holds no data"),
    "unknown columns": ("1 2 3 4 5", "line 1: 5 columns fit no known format"),
    "prose": ("Dear reader, this is\nno path", "line 1: 4 columns fit no known format"),
    "no rotation": (f"{UNIT}\n2 0 0 0 0 1 0 0 0 0 1 0", "line 2: the left 3x3 block is no rotation"),
    "a reflection": ("1 0 0 0 0 1 0 0 0 0 -1 0", "line 1: the left 3x3 block is no rotation (determinant -1"),
    "a zero matrix": ("0 " * 12, "no rotation"),
    "a cut log": (LOG.rsplit("\n", 1)[0], "line 4: the last entry is cut off"),
    "a log of a wrong last row": (LOG.replace("0 0 0 1", "0 0 5 1"), "entry 0: the matrix must end"),
    "a log with one frame twice": (f"{LOG}\n1{LOG[1:]}\n1{LOG[1:]}", "line 6: frame 1 appears more"),
    "a log of half frames": ("0.5 0 0" + LOG[5:], "line 1: 0.5 is no frame number"),
    "a log of negative frames": ("-1 0 0" + LOG[5:], "no frame number"),
    "euroc in seconds": ("1.5,0,0,0,1,0,0,0", "line 1: the time '1.5' is no whole number of nanoseconds"),
    "euroc cut": ("14,0,0,0,1,0,0,0\n15,0,0,0,1,0,0", "line 2: at least 8 columns were expected, 7 found"),
    "a json list": ("[1, 2]", "fit no known format"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_text(tmp_path, name):
    text, expected = BAD[name]
    path = tmp_path / "file.dat"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read_trajectory(path)
    message = str(caught.value)
    assert message.startswith(str(path)) and expected in message and "\n" not in message


@pytest.mark.parametrize("read", [read_trajectory, read_tum, read_kitti, read_tnt_log])
@pytest.mark.parametrize("data", [b"\x00\x01\x02" * 50, b"\xff" * 50, os.urandom(5000) + b"\0"])
def test_a_binary_is_no_trajectory(tmp_path, read, data):
    (tmp_path / "video.mp4").write_bytes(data)
    with pytest.raises(FormatError, match=r"binary file|not valid text"):
        read(tmp_path / "video.mp4")


@pytest.mark.parametrize("read", [read_tum, read_kitti, read_tnt_log])
def test_a_folder_where_a_file_is_expected(tmp_path, read):
    with pytest.raises(InputError, match=r"is a folder, .* was expected"):
        read(tmp_path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match=r"holds no run.json, no COLMAP model .* and no transforms.json"):
        read_trajectory(tmp_path)


@pytest.mark.parametrize(
    "name", ["missing.tum", "no/such/folder.tum", "file.tum/inside", "x" * 5000, "nul\0byte"]
)
def test_a_path_that_is_not_there(tmp_path, name):
    (tmp_path / "file.tum").write_text(GOOD)
    with pytest.raises(InputError) as caught:
        read_trajectory(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_no_permission(tmp_path, monkeypatch):
    path = tmp_path / "secret.tum"
    path.write_text(GOOD)

    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything, so the refusal is made here
    with pytest.raises(InputError, match="may not be read: check its permissions"):
        read_tum(path)
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        read_trajectory(path)


def test_devices_and_pipes_are_refused_instead_of_read_for_ever(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="is no regular file"):
            read_trajectory(path)


def test_a_name_with_a_line_break_stays_on_one_line(tmp_path):
    path = tmp_path / "two\nlines.tum"
    path.write_text("1 2")
    with pytest.raises(FormatError) as caught:
        read_tum(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_written(tmp_path):
    from geoweaver.formats.tum import write_tum

    trajectory = read_tum(_written(tmp_path / "a.tum"))
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "a.tum" / "below"):
        with pytest.raises(InputError, match="cannot be written"):
            write_tum(path, trajectory)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tum", "folder"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "free some space"),
        (OSError("4096 requested and 0 written"), "free space of its disk"),
        (OSError(13, "Permission denied"), "check the output path"),
    ],
)
def test_a_full_disk_is_told_from_a_wrong_path(tmp_path, error, words):
    with pytest.raises(InputError, match=words) as caught, writing(tmp_path / "a"):
        raise error
    assert ("space" in str(caught.value)) == (error.errno != 13)


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: sizes.append((os.fstat(handle).st_size, *tmp_path.glob("a")))
    )
    with writing(tmp_path / "a") as file:
        file.write(b"content")
    assert sizes == [(7,)] and (tmp_path / "a").read_bytes() == b"content"


def _written(path):
    path.write_text(GOOD)
    return path

"""A run folder: every frame, and which of them are trusted."""

import json

import pytest

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.trajectory import read_trajectory


def run_folder(folder, stamps=(0, 5, 10), **run):
    lines = [f"{stamp} {i} 0 0 0 0 0 1" for i, stamp in enumerate(stamps)]
    (folder / "trajectory.tum").write_text("\n".join(lines) + "\n")
    (folder / "run.json").write_text(json.dumps({"version": "1", "untrusted": [], **run}))
    return folder


def test_every_frame_and_which_are_trusted(tmp_path):
    run_folder(tmp_path, untrusted=[{"frame": 1, "reason": "blur"}])
    (tmp_path / "transforms.json").write_text("another thing in the folder")
    read = read_trajectory(tmp_path)
    assert read.trusted.tolist() == [True, False, True]
    assert read.timestamps.tolist() == [0, 5, 10] and read.index.tolist() == [0, 5, 10] and read.names is None


def test_names_where_the_run_states_them(tmp_path):
    assert read_trajectory(run_folder(tmp_path, names=["a", "b", "c"])).names == ("a", "b", "c")


def test_cameras_of_one_run_may_share_times(tmp_path):
    read = read_trajectory(run_folder(tmp_path, stamps=(0.5, 1.5, 0.5)))
    assert read.index.tolist() == [0, 1, 2] and read.timestamps.tolist() == [0.5, 1.5, 0.5]


@pytest.mark.parametrize("missing", ["run.json", "trajectory.tum"])
def test_an_unfinished_run(tmp_path, missing):
    (run_folder(tmp_path) / missing).unlink()
    with pytest.raises(
        InputError, match=f"holds no {missing}, the run is not finished: run geoweaver reconstruct"
    ):
        read_trajectory(tmp_path)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"untrusted": None}, "a list 'untrusted' was expected"),
        ({"untrusted": [{"frame": 3}]}, r"an untrusted frame is 3, a row of trajectory.tum \(0 to 2\)"),
        ({"untrusted": [{"frame": "1"}]}, "an untrusted frame is '1'"),
        ({"untrusted": [{}]}, "an untrusted frame is None"),
        ({"untrusted": [{"frame": True}]}, "an untrusted frame is True"),
        ({"untrusted": [-1]}, "an untrusted frame is -1"),
        ({"names": ["a"]}, "one image name for each of the 3 rows"),
        ({"names": ["a", "b", 3]}, "one image name for each"),
    ],
)
def test_a_damaged_summary(tmp_path, run, expected):
    with pytest.raises(FormatError, match=expected):
        read_trajectory(run_folder(tmp_path, **run))

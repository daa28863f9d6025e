"""What users get wrong: one line that helps, the right exit code, nothing that a later run would trust."""

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image
from small_sequence import FRAMES, OPTIONS, geoweaver, write_small

from geoweaver.store.whole import PARTIAL

pytestmark = pytest.mark.slow
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
"""Linux's numbers."""


def refused(*arguments: str | Path, **process: Any) -> str:
    """The one line that a refusal prints."""
    done = geoweaver(*arguments, **process)
    lines = [x for x in done.stderr.strip().splitlines() if x.startswith("geoweaver:")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1 and "Traceback" not in done.stderr, done.stderr
    return lines[0]


def picture(path: Path, size: tuple[int, int], seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (*size[::-1], 3), dtype=np.uint8)).save(path)


def index_first(film: Path) -> Path:
    """The same film with its table of contents at the front, as cameras for the web write it."""
    other = film.with_name("web.mp4")
    with av.open(str(film)) as old, av.open(str(other), "w", options={"movflags": "faststart"}) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)
    return other


def test_a_missing_file(tmp_path: Path) -> None:
    assert "does not exist" in refused("reconstruct", tmp_path / "none.mp4", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_overwrite_throws_nothing_away_for_a_wrong_input(tmp_path: Path, small: Path, finished: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    refused("reconstruct", tmp_path / "none", "-o", out, "--overwrite")
    refused("reconstruct", small / "images", "-o", out, "--overwrite", "--prior", "nonsense")
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_overwrite_leaves_nothing_of_the_old_run(tmp_path: Path, finished: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    for k in range(2):
        picture(tmp_path / f"blank/{k}.png", (200, 150), seed=k)
    refused("reconstruct", tmp_path / "blank", "-o", out, *OPTIONS, "--overwrite")
    left = {path.relative_to(out).parts[0] for path in out.rglob("*") if path.is_file()}
    assert left == {"work"} and not list(out.glob("work/result/*"))


def test_a_text_file_named_mp4(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_text("this is no film\n" * 100)
    said = refused("reconstruct", tmp_path / "film.mp4", "-o", tmp_path / "out")
    assert f"{tmp_path / 'film.mp4'} cannot be opened as a video" in said
    assert not (tmp_path / "out").exists()


def test_known_cameras_for_a_prior_that_takes_none(tmp_path: Path) -> None:
    (tmp_path / "known.tum").write_text("0 0 0 0 0 0 0 1\n")
    said = refused("reconstruct", tmp_path, "-o", tmp_path / "out", "--poses", tmp_path / "known.tum")
    assert "the prior sfm takes no known cameras" in said


def test_one_image_only(tmp_path: Path) -> None:
    picture(tmp_path / "images/a.png", (200, 150))
    said = refused("reconstruct", tmp_path / "images", "-o", tmp_path / "out")
    assert f"{tmp_path / 'images'} has only one readable frame" in said
    assert not (tmp_path / "out").exists()


def test_two_identical_images(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        picture(tmp_path / "images" / name, (200, 150))
    # the second time as well, from what the first one kept
    for _ in range(2):
        said = refused("reconstruct", tmp_path / "images", "-o", tmp_path / "out", *OPTIONS)
        assert str(tmp_path / "images") in said and "the camera hardly moved" in said
        assert {path.name for path in (tmp_path / "out").iterdir()} == {"work"}


def test_images_of_three_by_three_pixels(tmp_path: Path) -> None:
    for k in range(4):
        picture(tmp_path / f"images/{k}.png", (3, 3), k)
    said = refused("reconstruct", tmp_path / "images", "-o", tmp_path / "out", "--workers", "1")
    assert f"{tmp_path / 'images/0.png'} has only 3x3 pixels" in said
    assert not (tmp_path / "out").exists()


def bound_by_permissions() -> None:
    """What a process does before it becomes a command: root may no longer read and write everything."""
    for right in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, right, 0, 0, 0):
            raise PermissionError


@pytest.fixture
def bound(tmp_path: Path) -> Iterator[Path]:
    """A folder whose permissions hold for those whom `bound_by_permissions` has bound."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed").chmod(0)
    try:
        listed = subprocess.run(["ls", tmp_path / "closed"], preexec_fn=bound_by_permissions).returncode == 0
    except subprocess.SubprocessError:
        listed = True
    if listed:
        pytest.skip("root may read everything here, and cannot give that up")
    yield tmp_path
    (tmp_path / "closed").chmod(0o755)


def test_a_folder_without_read_permission(bound: Path) -> None:
    arguments = ("reconstruct", bound / "closed", "-o", bound / "out")
    said = refused(*arguments, preexec_fn=bound_by_permissions)
    assert f"{bound / 'closed'} cannot be listed (Permission denied)" in said
    assert not (bound / "out").exists()


def test_an_unwritable_output(bound: Path, small: Path) -> None:
    (bound / "closed").chmod(0o555)
    for out in (bound / "closed", bound / "closed/out"):
        said = refused("reconstruct", small / "images", "-o", out, preexec_fn=bound_by_permissions)
        assert str(out) in said and "Permission denied" in said
    assert not list((bound / "closed").iterdir())


def test_an_output_that_is_a_file(tmp_path: Path, small: Path) -> None:
    (tmp_path / "out").write_text("a file")
    said = refused("reconstruct", small / "images", "-o", tmp_path / "out")
    assert str(tmp_path / "out") in said and (tmp_path / "out").read_text() == "a file"


def test_a_truncated_video_is_reconstructed_as_far_as_it_goes(tmp_path: Path) -> None:
    film = write_small(tmp_path / "film", "mp4", frames=24) / "video.mp4"
    data = index_first(film).read_bytes()
    film.write_bytes(data[: len(data) * 2 // 3])
    done = geoweaver("reconstruct", film, "-o", tmp_path / "out", *OPTIONS, "--outputs", "cameras")
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["partial"] and 2 <= run["frames"]["total"] < 24
    (warning,) = run["warnings"]
    assert "of 24 frames are damaged or missing" in warning
    assert warning in done.stderr.splitlines()
    assert "PARTIAL" in done.stdout and f"WARNING: {warning}" in done.stdout


def test_broken_images_keep_their_places_and_are_not_trusted(tmp_path: Path, small: Path) -> None:
    shutil.copytree(small / "images", tmp_path / "images")
    names = sorted((tmp_path / "images").iterdir())
    names[5].write_bytes(b"no picture")
    names[9].write_bytes(names[9].read_bytes()[:200])
    done = geoweaver(
        "reconstruct", tmp_path / "images", "-o", tmp_path / "out", *OPTIONS, "--outputs", "cameras"
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["frames"]["total"] == FRAMES
    untrusted = {row["frame"]: row["reason"] for row in run["untrusted"]}
    assert {5, 9} <= set(untrusted) and "cannot be read" in untrusted[5]
    rows = (tmp_path / "out/trajectory.tum").read_text().splitlines()
    assert [float(row.split()[0]) for row in rows] == list(range(FRAMES))


def test_a_camera_that_nothing_can_place_does_not_end_the_run(tmp_path: Path, small: Path) -> None:
    shutil.copytree(small / "images", tmp_path / "images")
    picture(tmp_path / "images/other.png", (200, 150))
    done = geoweaver(
        "reconstruct", tmp_path / "images", "-o", tmp_path / "out", *OPTIONS, "--outputs", "cameras"
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["frames"]["trusted"] == FRAMES, run["untrusted"]
    assert [row["frame"] for row in run["untrusted"]] == [FRAMES]


def test_wrong_options_are_refused_before_anything_is_computed(tmp_path: Path, small: Path) -> None:
    for options in (("--prior", "nonsense"), ("--matcher", "nonsense"), ("--retriever", "nonsense"),
                    ("--chunk-size", "1"), ("--stride", "0"), ("--known-distance", "1,2"),
                    ("--intrinsics", "1,2"), ("--masks", tmp_path / "none"), ("--scale", "-1"),
                    ("--workers", "-1"), ("--known-distance", "0,nope.jpg,1"),
                    ("--known-distance", "2,2,1")):  # fmt: skip
        refused("reconstruct", small / "images", "-o", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=False)


def test_a_full_disk(small: Path, finished: Path, small_disk: Path) -> None:
    """The same command on a disk with room again ends as if nothing had happened."""
    arguments = ("reconstruct", small / "images", "-o", small_disk / "out", *OPTIONS, "--outputs", "cameras")
    said = refused(*arguments)
    assert str(small_disk / "out") in said and "No space left" in said
    assert not (small_disk / "out/run.json").exists()
    assert not list((small_disk / "out").rglob(f"*{PARTIAL}")), "what was half written took the last space"
    subprocess.run(["mount", "-o", "remount,size=400m", small_disk], check=True)
    assert geoweaver(*arguments).returncode == 0
    assert (small_disk / "out/trajectory.tum").read_bytes() == (finished / "trajectory.tum").read_bytes()

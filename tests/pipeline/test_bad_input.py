"""What users get wrong: one line that helps, the right exit code, nothing that a later run would trust."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from small_sequence import FRAMES, OPTIONS, geoweaver, write_small

pytestmark = pytest.mark.slow


def refused(*arguments: str | Path) -> str:
    """The one line that a refusal prints."""
    done = geoweaver(*arguments)
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
    assert "film.mp4" in refused("reconstruct", tmp_path / "film.mp4", "-o", tmp_path / "out")


def test_known_cameras_for_a_prior_that_takes_none(tmp_path: Path) -> None:
    (tmp_path / "known.tum").write_text("0 0 0 0 0 0 0 1\n")
    said = refused("reconstruct", tmp_path, "-o", tmp_path / "out", "--poses", tmp_path / "known.tum")
    assert "the prior sfm takes no known cameras" in said


def test_one_image_only(tmp_path: Path) -> None:
    picture(tmp_path / "images/a.png", (200, 150))
    assert "only one readable frame" in refused("reconstruct", tmp_path / "images", "-o", tmp_path / "out")


def test_two_identical_images(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        picture(tmp_path / "images" / name, (200, 150))
    done = geoweaver("reconstruct", tmp_path / "images", "-o", tmp_path / "out", *OPTIONS)
    if done.returncode == 0:
        assert json.loads((tmp_path / "out/run.json").read_text())["frames"]["trusted"] == 0
    else:
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr


def test_images_of_three_by_three_pixels(tmp_path: Path) -> None:
    for k in range(4):
        picture(tmp_path / f"images/{k}.png", (3, 3), k)
    refused("reconstruct", tmp_path / "images", "-o", tmp_path / "out", "--workers", "1")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_a_folder_without_read_permission_and_an_unwritable_output(tmp_path: Path, small: Path) -> None:
    picture(tmp_path / "images/a.png", (200, 150))
    (tmp_path / "images").chmod(0)
    refused("reconstruct", tmp_path / "images", "-o", tmp_path / "out")
    (tmp_path / "images").chmod(0o755)
    tmp_path.chmod(0o555)
    refused("reconstruct", small / "images", "-o", tmp_path / "out")
    tmp_path.chmod(0o755)


def test_an_output_that_is_a_file(tmp_path: Path, small: Path) -> None:
    (tmp_path / "out").write_text("a file")
    refused("reconstruct", small / "images", "-o", tmp_path / "out")


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


def test_a_full_disk(small: Path, small_disk: Path) -> None:
    said = refused("reconstruct", small / "images", "-o", small_disk / "out", *OPTIONS)
    assert "space" in said.lower() or "disk" in said.lower()
    assert not (small_disk / "out/run.json").exists()

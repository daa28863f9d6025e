"""Folders of images: order, cameras, odd files, broken ones."""

import os
from pathlib import Path

import numpy as np
import pytest
import recordings
from PIL import Image

from geoweaver.errors import ConfigError, InputError
from geoweaver.frames import FramesConfig, UnreadableFrameError, chains, open_frames
from geoweaver.frames.images import read_mask


def test_natural_order_and_index_as_time(tmp_path: Path) -> None:
    names = ["frame_10.png", "frame_2.png", "frame_1.png", "notes.txt.png"]
    recordings.write_images(tmp_path, recordings.flat([100, 20, 10, 200]), names)
    (tmp_path / "readme.txt").write_text("no image")
    (tmp_path / ".hidden.png").write_bytes(b"no image")
    frames = open_frames(tmp_path)
    assert frames.names == ("frame_1.png", "frame_2.png", "frame_10.png", "notes.txt.png")
    assert [int(frames.pixels.read(i).mean()) for i in range(4)] == [10, 20, 100, 200]
    assert frames.timestamps.tolist() == [0, 1, 2, 3]


def test_stride_keeps_the_index_among_all_images(tmp_path: Path) -> None:
    recordings.write_images(tmp_path, recordings.flat(list(range(0, 240, 20))))
    frames = open_frames(tmp_path, FramesConfig(stride=5))
    assert frames.timestamps.tolist() == [0, 5, 10]
    assert [int(frames.pixels.read(i).mean()) for i in range(3)] == [0, 100, 200]


def test_broken_images_keep_their_place(tmp_path: Path) -> None:
    recordings.write_images(tmp_path, recordings.sliding(6), [f"{i}.jpg" for i in range(6)])
    whole = (tmp_path / "2.jpg").read_bytes()
    (tmp_path / "2.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "0.jpg").write_bytes(b"")
    (tmp_path / "4.jpg").write_text("text")
    frames = open_frames(tmp_path)
    assert frames.broken == (0, 2, 4)
    assert len(frames) == 6
    assert frames.timestamps.tolist() == [0, 1, 2, 3, 4, 5]
    assert frames.keyframe.tolist() == [False, True, False, True, False, True]
    assert len(frames.notes) == 3
    assert all("replace or remove it" in note for note in frames.notes)
    assert len(frames.cameras) == 1
    frames.pixels.read(1)
    with pytest.raises(UnreadableFrameError):
        frames.pixels.read(2)


def test_truncated_png_is_broken(tmp_path: Path) -> None:
    recordings.write_images(tmp_path, recordings.sliding(3))
    whole = (tmp_path / "1.png").read_bytes()
    (tmp_path / "1.png").write_bytes(whole[:-500])
    assert open_frames(tmp_path).broken == (1,)


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    picture = np.zeros((64, 96, 3), np.uint8)
    picture[:32, :48] = 255
    for i, turned in enumerate((1, 6, 8, 3)):
        exif = Image.Exif()
        exif[0x0112] = turned
        Image.fromarray(picture).save(tmp_path / f"{i}.png", exif=exif)
    frames = open_frames(tmp_path)
    upright = [picture, np.rot90(picture, -1), np.rot90(picture, 1), np.rot90(picture, 2)]
    for i, expected in enumerate(upright):
        original = frames.pixels.read_original(i)
        assert original.shape == expected.shape
        assert np.array_equal(original, expected)


def test_exif_focal_is_a_hint(tmp_path: Path) -> None:
    for i, picture in enumerate(recordings.sliding(3)):
        exif = Image.Exif()
        exif.get_ifd(0x8769)[0xA405] = 26
        Image.fromarray(picture).save(tmp_path / f"{i}.jpg", exif=exif)
    camera = open_frames(tmp_path).cameras[0]
    assert camera.focal_hint
    assert not camera.calibrated
    assert camera.params[0] == pytest.approx(26 / np.hypot(36, 24) * np.hypot(96, 64))


def test_without_any_hint_the_focal_is_guessed(tmp_path: Path) -> None:
    camera = open_frames(recordings.write_images(tmp_path, recordings.sliding(3))).cameras[0]
    assert camera.params == (1.2 * 96, 1.2 * 96, 48, 32)
    assert not camera.focal_hint


def test_sub_folders_are_cameras(tmp_path: Path) -> None:
    recordings.write_images(tmp_path / "left", recordings.flat([10, 20, 30]))
    recordings.write_images(tmp_path / "right", recordings.flat([40, 50, 60]))
    frames = open_frames(tmp_path)
    assert frames.names[0] == "left/0.png"
    assert frames.camera.tolist() == [0, 0, 0, 1, 1, 1]
    assert frames.timestamps.tolist() == list(range(6))
    strided = open_frames(tmp_path, FramesConfig(stride=2, max_frames=4))
    assert strided.names == ("left/0.png", "left/2.png", "right/0.png", "right/2.png")
    assert open_frames(tmp_path, FramesConfig(max_frames=3)).names == (
        "left/0.png",
        "left/1.png",
        "right/0.png",
    )


def test_dataset_folder_means_its_images(tmp_path: Path) -> None:
    recordings.write_images(tmp_path / "images", recordings.flat([10, 20]))
    recordings.write_images(tmp_path / "depth", recordings.flat([1, 1]))
    frames = open_frames(tmp_path)
    assert frames.names == ("0.png", "1.png")


def test_a_folder_with_nothing_but_a_film_names_the_film(tmp_path: Path) -> None:
    (tmp_path / "walk.MP4").write_bytes(b"")
    with pytest.raises(InputError, match=r"give the file itself, .*walk\.MP4"):
        open_frames(tmp_path)


@pytest.mark.parametrize("mark", ["out/work/store.json", "out/colmap/geoweaver.json"])
def test_what_a_run_left_in_its_own_input_is_no_camera(
    tmp_path: Path, mark: str, caplog: pytest.LogCaptureFixture
) -> None:
    recordings.write_images(tmp_path / "left", recordings.flat([10, 20]))
    recordings.write_images(tmp_path / "out/colmap/images", recordings.flat([1, 1]))
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).write_text("{}")
    with caplog.at_level("INFO"):
        assert open_frames(tmp_path).names == ("left/0.png", "left/1.png")
    assert len(caplog.messages) == 1 and "left out" in caplog.messages[0]
    # asked for by name, it is an input like any other
    assert len(open_frames(tmp_path / "out/colmap")) == 2


def test_resized_copies_are_the_same_camera(tmp_path: Path) -> None:
    pictures = recordings.sliding(4, 192, 128)
    pictures[2] = pictures[2][::2, ::2]
    frames = open_frames(recordings.write_images(tmp_path, pictures))
    assert len(frames.cameras) == 1
    assert frames.pixels.read(2).shape == (128, 192, 3)
    assert frames.masks is None


def test_another_shape_is_another_camera_in_the_middle_of_the_common_size(tmp_path: Path) -> None:
    portrait = np.full((192, 96, 3), 200, np.uint8)
    pictures = [*recordings.flat([10, 20, 30], 192, 128), portrait]
    frames = open_frames(recordings.write_images(tmp_path, pictures))
    assert frames.size == (192, 128)
    assert frames.camera.tolist() == [0, 0, 0, 1]
    assert (frames.cameras[1].width, frames.cameras[1].height) == (96, 192)
    usable = frames.masks.read(3)
    assert usable.mean() == pytest.approx(64 / 192, abs=0.02)
    fx, fy, cx, cy = frames.cameras[1].rectified
    assert (cx, cy) == pytest.approx((96, 64), abs=0.51)
    assert fx == pytest.approx(1.2 * 192 * 128 / 192, rel=0.01)
    assert fy == pytest.approx(fx, rel=0.01)
    assert frames.masks.read(0).all()


def test_sixteen_bit_grey_and_alpha(tmp_path: Path) -> None:
    ramp = np.tile(np.linspace(0, 4000, 96).astype(np.uint16), (64, 1))
    Image.fromarray(ramp).save(tmp_path / "0.png")
    Image.fromarray(np.full((64, 96), 77, np.uint8)).save(tmp_path / "1.png")
    clear = np.full((64, 96, 4), 50, np.uint8)
    clear[:, :48, 3], clear[:, 48:, 3] = 255, 0
    Image.fromarray(clear).save(tmp_path / "2.png")
    import cv2

    cv2.imwrite(str(tmp_path / "3.png"), np.dstack([ramp] * 3))
    cv2.imwrite(str(tmp_path / "4.tiff"), np.dstack([ramp] * 3))
    frames = open_frames(tmp_path)
    assert not frames.broken
    for i in (0, 3, 4):  # twelve bits fill the range, and grey and colour agree
        assert frames.pixels.read(i)[0, -1].tolist() == [249] * 3
    assert (frames.pixels.read(1) == 77).all()
    assert frames.pixels.read(2)[0, 0].tolist() == [50] * 3
    assert frames.pixels.read(2)[0, -1].tolist() == [255] * 3
    assert frames.masks.read(2)[:, :48].all()
    assert not frames.masks.read(2)[:, 48:].any()
    assert frames.masks.read(0).all()


def test_masks_folder(tmp_path: Path) -> None:
    recordings.write_images(tmp_path / "in", recordings.sliding(3), ["a.jpg", "b.jpg", "c.jpg"])
    black = np.zeros((64, 96), np.uint8)
    black[:, 48:] = 255
    recordings.write_images(tmp_path / "masks", [black, black], ["a.jpg.png", "b.png"])
    frames = open_frames(tmp_path / "in", FramesConfig(masks=tmp_path / "masks"))
    for i in (0, 1):
        assert frames.masks.read(i).mean() == 0.5
        assert frames.masks.read(i)[:, 48:].all()
    assert frames.masks.read(2).all()
    assert frames.notes == ("1 of 3 frames have no mask: all of their pixels count",)
    recordings.write_images(tmp_path / "masks", [black[::2, ::2]], ["c.png"])
    whole = open_frames(tmp_path / "in", FramesConfig(masks=tmp_path / "masks"))
    (note,) = whole.notes
    assert note.startswith("1 masks are stretched") and "c.png has 48x32 pixels, its image 96x64" in note
    plain = open_frames(tmp_path / "in")
    assert plain.notes == ()
    assert frames.digests[0] != plain.digests[0]
    assert frames.digests[2] == plain.digests[2]


@pytest.mark.parametrize(
    ("white", "kind", "suffix"),
    [(1, np.uint8, "png"), (1, np.uint16, "png"), (255, np.uint16, "png"), (65535, np.uint16, "png"),
     (1, np.float32, "tiff"), (255, np.uint8, "jpg"), (True, bool, "png")],
)  # fmt: skip
def test_masks_of_every_level(tmp_path: Path, white: int, kind: type, suffix: str) -> None:
    recordings.write_images(tmp_path / "in", recordings.sliding(3), [f"{k}.{suffix}" for k in range(3)])
    (tmp_path / "masks").mkdir()
    for k, shown in enumerate((slice(48, None), slice(None), slice(0))):
        mask = np.zeros((64, 96), kind)
        mask[:, shown] = white
        Image.fromarray(mask).save(tmp_path / f"masks/{k}.{suffix}")
    frames = open_frames(tmp_path / "in", FramesConfig(masks=tmp_path / "masks"))
    assert [frames.masks.read(i).mean() for i in range(3)] == [0.5, 1, 0]
    assert frames.masks.read(0)[:, 48:].all() and frames.notes == ()


def test_ones_in_the_black_of_a_jpeg_mean_nothing(tmp_path: Path) -> None:
    Image.fromarray(np.ones((64, 96), np.uint8)).save(tmp_path / "0.jpg")
    assert not read_mask(tmp_path / "0.jpg").any()


@pytest.mark.parametrize(("rows", "told"), [(0, True), (1, False)])
def test_masks_that_leave_nothing_are_told(tmp_path: Path, rows: int, told: bool) -> None:
    recordings.write_images(tmp_path / "in", recordings.sliding(3))
    mask = np.zeros((64, 96), np.uint8)
    mask[:rows] = 255
    recordings.write_images(tmp_path / "masks", [mask] * 3)
    notes = open_frames(tmp_path / "in", FramesConfig(masks=tmp_path / "masks")).notes
    assert any("more than 99 %" in note for note in notes) == told


def test_working_size(tmp_path: Path) -> None:
    recordings.write_images(tmp_path, [recordings.texture(1600, 900, i) for i in range(2)])
    frames = open_frames(tmp_path)
    assert frames.size == (640, 360)
    fx, fy, cx, cy = frames.cameras[0].rectified
    assert (fx, fy, cx, cy) == pytest.approx((768, 768, 320, 180))
    assert (frames.cameras[0].width, frames.cameras[0].height) == (1600, 900)
    assert open_frames(tmp_path, FramesConfig(max_size=320)).size == (320, 180)


@pytest.mark.parametrize(
    ("pictures", "message"),
    [
        ([], "holds no image"),
        ([1], "only one readable frame"),
        ([3, 3], r"no readable frame .*only 3x3 pixels.*at least two are needed"),
    ],
)
def test_too_little_to_begin_with(tmp_path: Path, pictures: list[int], message: str) -> None:
    sizes = {1: (96, 64), 3: (3, 3)}
    recordings.write_images(tmp_path, [recordings.flat([9], *sizes[p])[0] for p in pictures])
    with pytest.raises(InputError, match=message) as caught:
        open_frames(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_single_image_and_bad_options(tmp_path: Path) -> None:
    recordings.write_images(tmp_path, recordings.sliding(2))
    with pytest.raises(InputError, match="is a single image"):
        open_frames(tmp_path / "0.png")
    for options in (FramesConfig(stride=0), FramesConfig(max_frames=1), FramesConfig(max_size=3)):
        with pytest.raises(ConfigError, match="give"):
            open_frames(tmp_path, options)
    with pytest.raises(InputError, match="is no folder of masks"):
        open_frames(tmp_path, FramesConfig(masks=tmp_path / "none"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folder_without_permission(tmp_path: Path) -> None:
    folder = recordings.write_images(tmp_path / "in", recordings.sliding(2))
    folder.chmod(0)
    try:
        with pytest.raises(InputError, match="permissions"):
            open_frames(folder)
    finally:
        folder.chmod(0o700)


def test_a_turned_phone_is_another_camera_in_the_same_chain(tmp_path: Path) -> None:
    names = [f"{folder}/{k}.png" for folder in ("left", "right") for k in range(3)]
    shapes = [(96, 64), (64, 96), (96, 64), (96, 64), (96, 64), (96, 64)]
    recordings.write_images(tmp_path, [recordings.texture(*s, i) for i, s in enumerate(shapes)], names)
    frames = open_frames(tmp_path)
    assert frames.camera.tolist() == [0, 1, 0, 2, 2, 2]
    assert chains(frames) == [[0, 1, 2], [3, 4, 5]]

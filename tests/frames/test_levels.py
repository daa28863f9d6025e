"""Black and white of images with more than eight bits: one answer for a camera, and no pixel decides it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geoweaver.frames import open_frames
from geoweaver.frames.levels import Levels, find_levels, sampled

RAMP = np.tile(np.linspace(0, 4000, 96).astype(np.uint16), (64, 1))


def read(folder: Path) -> list[np.ndarray]:
    frames = open_frames(folder)
    assert not frames.broken
    return [frames.pixels.read(k) for k in range(len(frames))]


def test_a_hot_pixel_darkens_nothing(tmp_path: Path) -> None:
    hot = RAMP.copy()
    hot[10, 10] = 65535
    for k, picture in enumerate((RAMP, hot, RAMP)):
        Image.fromarray(picture).save(tmp_path / f"{k}.png")
    shown = read(tmp_path)
    assert shown[0][0, -1].tolist() == [249] * 3 and shown[1][10, 10].tolist() == [255] * 3
    assert (shown[0] == shown[2]).all() and (shown[1] != shown[0]).any(-1).sum() == 1


def test_one_answer_for_all_frames_of_a_camera_and_another_for_the_next(tmp_path: Path) -> None:
    for folder, gain in (("a", 1), ("b", 16)):
        (tmp_path / folder).mkdir()
        for k in range(3):
            Image.fromarray((RAMP // (k + 1)) * gain).save(tmp_path / folder / f"{k}.png")
    shown = [picture[0, -1, 0] for picture in read(tmp_path)]
    assert shown[:3] == shown[3:] == [249, 125, 83]


def test_raw_thermal_images_are_not_grey_in_grey(tmp_path: Path) -> None:
    for k in range(2):
        Image.fromarray(RAMP // 4 + 22000).save(tmp_path / f"{k}.png")
    for picture in read(tmp_path):
        assert picture.min() > 20 and picture.max() < 235
        assert int(picture.max()) - int(picture.min()) > 150


@pytest.mark.parametrize("gain", [1.0, 255.0])
def test_real_values(tmp_path: Path, gain: float) -> None:
    picture = RAMP.astype(np.float32) / 4000 * gain
    picture[3, 3], picture[4, 4], picture[5, 5] = np.nan, np.inf, 1e9
    for k in range(2):
        Image.fromarray(picture).save(tmp_path / f"{k}.tiff")
    for shown in read(tmp_path):
        assert shown[0, 0].tolist() == [0] * 3 and shown[0, -1, 0] >= 254
        assert [shown[k, k, 0] for k in (3, 4, 5)] == [0, 255, 255]


def test_eight_bits_beside_sixteen_stay_as_they_are(tmp_path: Path) -> None:
    Image.fromarray(np.full((64, 96), 77, np.uint8)).save(tmp_path / "0.png")
    alone = tmp_path / "alone"
    alone.mkdir()
    for k in range(2):
        Image.fromarray(np.full((64, 96), 77, np.uint8)).save(alone / f"{k}.png")
    Image.fromarray(RAMP).save(tmp_path / "1.png")
    frames = open_frames(tmp_path)
    assert (frames.pixels.read(frames.names.index("0.png")) == 77).all()
    assert len({frames.digests[frames.names.index(n)] for n in ("0.png", "alone/0.png")}) == 1


def test_the_sample_lies_all_over_the_image() -> None:
    picture = np.tile(np.arange(1024, dtype=np.uint16), (1024, 1))
    assert len(np.unique(sampled(picture))) > 500
    assert find_levels([], real=False) == Levels() and find_levels([np.zeros(9, np.float32)], True).white == 1

"""Keyframes and kept images on made-up recordings."""

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
import recordings
import torch

from geoweaver.engine import LocalEngine
from geoweaver.errors import ConfigError
from geoweaver.frames import (
    FramesConfig,
    KeyframeConfig,
    keep_pixels,
    measure_motion,
    open_frames,
    select_keyframes,
)
from geoweaver.frames.keyframes import choose_keyframes
from geoweaver.frames.motion import Motion
from geoweaver.store import Store


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 frames of 320 px: 2 px a frame, blurred where i % 5 != 0, the second half at rest."""
    pictures = recordings.sliding(26, 320, 200, 2)
    pictures = pictures[:25] + [pictures[25]] * 25
    blurred = [p if i % 5 == 0 else cv2.GaussianBlur(p, (0, 0), 1.5) for i, p in enumerate(pictures)]
    return recordings.write_video(tmp_path_factory.mktemp("k") / "slide.mp4", blurred)


def motion(displacement: list[float], sharpness: list[float] | None = None) -> Motion:
    sharpness = sharpness or [1.0] * len(displacement)
    return Motion(torch.tensor(displacement).double(), torch.tensor(sharpness).double())


def test_motion_is_measured(slide: Path) -> None:
    measured = measure_motion(open_frames(slide))
    assert measured.displacement[0] == 0
    assert measured.displacement[1:25].tolist() == pytest.approx([2 / 320] * 24, rel=0.1)
    assert measured.displacement[27:].max() < 0.3 / 320
    for i in (5, 10, 15, 20):
        assert measured.sharpness[i] > 1.1 * max(measured.sharpness[i - 1], measured.sharpness[i + 1])


def test_keyframes_follow_motion_and_sharpness(slide: Path) -> None:
    config = KeyframeConfig(step=0.03, fewest=2, max_gap=20)
    frames = select_keyframes(open_frames(slide), config)
    chosen = frames.keyframe.nonzero()[:, 0].tolist()
    assert chosen[:5] == [0, 5, 10, 15, 20]  # 5 frames of 2 px are the step of 0.03 * 320 px, and sharp
    assert chosen[-1] == 49
    assert 2 <= len([i for i in chosen if i > 25]) <= 3
    assert len(frames) == 50


def test_a_short_recording_gets_a_smaller_step(slide: Path) -> None:
    few = select_keyframes(open_frames(slide), KeyframeConfig(step=0.08, fewest=2))
    more = select_keyframes(open_frames(slide), KeyframeConfig(step=0.08, fewest=15))
    assert more.keyframe.sum() > few.keyframe.sum()


def test_small_folders_keep_all_frames(tmp_path: Path) -> None:
    frames = open_frames(recordings.write_images(tmp_path, recordings.sliding(6)))
    assert select_keyframes(frames).keyframe.all()
    fewer = select_keyframes(frames, KeyframeConfig(all_up_to=3, step=0.2, fewest=2))
    assert fewer.keyframe.sum() < 6
    assert select_keyframes(frames, KeyframeConfig(mode="all", all_up_to=3)).keyframe.all()


def test_a_folder_of_a_films_frames_is_taken_as_a_film(tmp_path: Path) -> None:
    """Frames that hardly differ are no better in a folder than in a video; a few of them do no harm."""
    names = [f"{i:02}.jpg" for i in range(12)]
    recordings.write_images(tmp_path, recordings.sliding(12), names)
    frames = open_frames(tmp_path)
    dense = KeyframeConfig(step=0.2, fewest=2)
    chosen = select_keyframes(frames, dense).keyframe
    assert 2 <= int(chosen.sum()) < 0.6 * len(frames)
    assert select_keyframes(frames, replace(dense, redundant=0.99)).keyframe.all()
    assert select_keyframes(frames, replace(dense, fewest=12)).keyframe.all()


def test_lost_tracks_make_keyframes() -> None:
    cut = motion([0.0, 0.0, 0.0, float("inf"), 0.0, 0.0])
    assert 3 in choose_keyframes(cut, range(6), KeyframeConfig(window=0.0))


def test_the_sharpest_in_the_window_wins() -> None:
    sharpness = [1.0] * 20
    sharpness[9], sharpness[10] = 5.0, 0.1
    chosen = choose_keyframes(motion([0.004] * 20, sharpness), range(20), KeyframeConfig(step=0.04))
    assert chosen[1] == 9


def test_gaps_are_bounded() -> None:
    chosen = choose_keyframes(motion([0.0] * 100), range(100), KeyframeConfig(max_gap=10))
    assert max(b - a for a, b in pairwise(chosen)) <= 10
    assert (chosen[0], chosen[-1]) == (0, 99)


def test_frames_that_cannot_be_read_become_broken(tmp_path: Path) -> None:
    recordings.write_images(tmp_path, recordings.sliding(6), [f"{i}.jpg" for i in range(6)])
    (tmp_path / "3.jpg").write_bytes(b"")
    frames = open_frames(tmp_path)
    chosen = select_keyframes(replace(frames, broken=()), KeyframeConfig(all_up_to=2))
    assert chosen.broken == (3,)
    assert not chosen.keyframe[3]


def test_bad_options(slide: Path) -> None:
    with pytest.raises(ConfigError, match="step"):
        select_keyframes(open_frames(slide), KeyframeConfig(step=0))


def test_motion_is_kept_and_the_same_with_workers(
    slide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = open_frames(slide)
    monkeypatch.setattr("geoweaver.frames.motion.BLOCK", 20)
    alone = measure_motion(frames)
    with Store.open(tmp_path / "work") as store:
        first = measure_motion(frames, store, LocalEngine(2))
        assert len(list((tmp_path / "work/motion").iterdir())) == 3
        monkeypatch.setattr("geoweaver.frames.motion._measure", None)  # nothing is computed twice
        again = measure_motion(frames, store)
    assert torch.equal(first.displacement, alone.displacement)
    assert torch.equal(again.sharpness, alone.sharpness)


def test_kept_images_are_the_same_images(slide: Path, tmp_path: Path) -> None:
    frames = open_frames(slide, FramesConfig(max_frames=8))
    with Store.open(tmp_path / "work") as store:
        kept = keep_pixels(frames, store, which=[1, 3, 4])
        assert len(list((tmp_path / "work/pixels").iterdir())) == 3
        for i in (1, 2, 3, 4):
            assert np.array_equal(kept.pixels.read(i), frames.pixels.read(i))
        copied = pickle.loads(pickle.dumps(kept.pixels))
        assert np.array_equal(copied.read(3), frames.pixels.read(3))
        slide.rename(slide.with_suffix(".gone"))  # what is kept needs the video no more
        try:
            assert np.array_equal(copied.read(4), frames.pixels.read(4))
        finally:
            slide.with_suffix(".gone").rename(slide)

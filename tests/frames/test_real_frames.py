"""Frames of real recordings."""

from pathlib import Path

import numpy as np
import pytest

from geoweaver.features import extract_features
from geoweaver.frames import FramesConfig, open_frames, select_keyframes

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize(
    ("name", "count", "size", "hidden"),
    [("great_wall_vggt", 288, (640, 360), 0), ("robot_unitree_da3", 174, (640, 360), 1)],
)
def test_videos(realdata: Path, name: str, count: int, size: tuple[int, int], hidden: int) -> None:
    """The second stores 175 frames and presents 174 of them: its edit list leaves the first one out."""
    frames = open_frames(realdata / "videos" / f"{name}.mp4")
    assert len(frames) == count
    assert frames.size == size
    assert len(frames.notes) == hidden
    assert (frames.timestamps.diff() > 0).all()
    assert frames.timestamps[0] == 0
    last, first = frames.pixels.read(count - 1), frames.pixels.read(0)
    assert np.abs(last.astype(int) - first).mean() > 1


def test_video_keyframes(realdata: Path) -> None:
    frames = open_frames(realdata / "videos" / "great_wall_vggt.mp4", FramesConfig(max_frames=60))
    chosen = select_keyframes(frames)
    assert 4 <= int(chosen.keyframe.sum()) <= 30
    assert not chosen.broken


def test_fox(realdata: Path) -> None:
    given = FramesConfig(max_frames=5, intrinsics=str(realdata / "fox" / "transforms.json"))
    frames = open_frames(realdata / "fox", given)
    assert len(frames) == 5
    assert frames.timestamps.tolist() == [0, 1, 2, 3, 4]
    camera = frames.cameras[0]
    assert (camera.model, camera.width, camera.height) == ("OPENCV", 540, 960)
    assert camera.calibrated
    assert frames.pixels.read(0).shape == (frames.size[1], frames.size[0], 3)
    assert 0.2 < frames.size[0] * frames.size[1] / 1e6 < 0.25
    assert len(extract_features(frames.pixels.read(0))) > 1000

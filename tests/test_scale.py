"""What a user knows about lengths: frames are counted among all images, as --frames counts them."""

from pathlib import Path

import pytest

from geoweaver.datatypes import Frames
from geoweaver.errors import ConfigError
from geoweaver.frames import FramesConfig, open_frames
from geoweaver.scale import KnownScale, parse_scale
from tests.frames import recordings


@pytest.fixture
def every_fifth(tmp_path: Path) -> Frames:
    recordings.write_images(
        tmp_path, recordings.flat(list(range(0, 240, 20))), [f"in/{k}.png" for k in range(12)]
    )
    return open_frames(tmp_path, FramesConfig(stride=5))


@pytest.mark.parametrize("text", ["5,10,2.5", "in/5.png,10.png,2.5", "5, in/10.png, 2.5"])
def test_frames_are_counted_among_all_images(every_fifth: Frames, text: str) -> None:
    known = parse_scale(text, None)
    assert known is not None and known.found(every_fifth) == KnownScale(2.5, "in/5.png", "in/10.png")


@pytest.mark.parametrize("text", ["1,10,2.5", "0,15,2.5", "0,12.png,2.5", "5,5.png,2.5"])
def test_frames_that_are_not_used_are_refused(every_fifth: Frames, text: str) -> None:
    known = parse_scale(text, None)
    with pytest.raises(ConfigError, match=r"is no frame that is used|are one frame"):
        known.found(every_fifth)

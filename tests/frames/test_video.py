"""Videos: presentation times, rotation, random access, damage."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import recordings
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geoweaver.datatypes import Frames
from geoweaver.errors import InputError
from geoweaver.frames import FramesConfig, UnreadableFrameError, keep_pixels, open_frames
from geoweaver.frames.video import VideoSource, open_video
from geoweaver.store import Store

VALUES = [10 + 9 * i for i in range(24)]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video whose grey value tells the frame."""
    return recordings.write_video(tmp_path_factory.mktemp("v") / "v.mp4", recordings.flat(VALUES))


def shown(picture: np.ndarray) -> int:
    """Which frame of `counted` a picture is."""
    return int(np.abs(np.array(VALUES) - picture.mean()).argmin())


def test_variable_rate_gives_presentation_times(tmp_path: Path) -> None:
    ticks = [0, 33, 66, 200, 233, 1000, 1033, 1500]
    path = recordings.write_video(tmp_path / "v.mp4", recordings.flat(VALUES[:8]), ticks)
    frames = open_frames(path)
    assert frames.timestamps.tolist() == pytest.approx([t / 1000 for t in ticks], abs=2e-4)
    assert frames.size == (96, 64)
    assert not frames.cameras[0].calibrated


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
def test_containers_give_every_frame(tmp_path: Path, suffix: str) -> None:
    path = recordings.write_video(tmp_path / f"v{suffix}", recordings.flat(VALUES))
    source = open_video(path).source
    assert [shown(source.read(i)) for i in range(len(VALUES))] == list(range(len(VALUES)))


@given(order=st.lists(st.integers(0, len(VALUES) - 1), min_size=1, max_size=20))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_reading_gives_the_same_frames(counted: Path, order: list[int]) -> None:
    source = open_video(counted).source
    assert [shown(source.read(i)) for i in order] == order


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_rotation_flag_is_applied(tmp_path: Path, turns: int) -> None:
    picture = np.zeros((64, 96, 3), np.uint8)
    picture[:32, :48] = 255  # bright corner: top left as stored
    path = recordings.write_video(tmp_path / "v.mp4", [picture] * 4)
    recordings.turn_flag(path, turns)
    frames = open_frames(path)
    assert frames.size == ((96, 64) if turns % 2 == 0 else (64, 96))
    upright = np.rot90(picture, -turns)
    assert np.abs(frames.pixels.read(1).astype(int) - upright).mean() < 10


def test_source_travels_to_workers(counted: Path) -> None:
    source = open_video(counted).source
    source.read(7)
    assert shown(pickle.loads(pickle.dumps(source)).read(9)) == 9


def test_cache_is_bounded(counted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoweaver.frames.video.CACHE_BYTES", 3 * 96 * 64 * 3)
    source = open_video(counted).source
    assert isinstance(source, VideoSource)
    for i in range(len(VALUES)):
        source.read(i)
    assert len(source._cache) == 3


@pytest.mark.parametrize("content", [b"this is no video", b"", b"\0" * 4096])
def test_fake_video_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fake.mp4"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"fake.mp4 .*give a video") as caught:
        open_frames(path)
    assert "\n" not in str(caught.value)


def test_video_without_its_end_cannot_be_opened(tmp_path: Path) -> None:
    path = recordings.write_video(tmp_path / "v.mp4", recordings.flat(VALUES))
    path.write_bytes(path.read_bytes()[:-200])  # the table of contents stands at the end
    with pytest.raises(InputError, match="cannot be opened as a video"):
        open_frames(path)


def test_broken_tail_is_left_out_with_a_note(tmp_path: Path) -> None:
    noisy = recordings.sliding(48)
    path = recordings.write_video(tmp_path / "v.mp4", noisy, faststart=True)
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    frames = open_frames(path)
    assert 8 <= len(frames) < 40
    assert len(frames.notes) == 1
    assert "damaged or missing" in frames.notes[0]
    assert frames.lost == frames.notes
    for i in range(len(frames)):
        assert np.abs(frames.pixels.read(i).astype(int) - noisy[i]).mean() < 12


def damage_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = bytes(3000)
    path.write_bytes(bytes(data))


def test_damage_in_the_middle_costs_frames_not_the_run(tmp_path: Path) -> None:
    path = recordings.write_video(tmp_path / "v.mp4", recordings.sliding(48), faststart=True)
    damage_the_middle(path)
    frames = open_frames(path)
    assert len(frames) >= 40
    read = 0
    for i in range(len(frames)):
        try:
            frames.pixels.read(i)
            read += 1
        except UnreadableFrameError as error:
            assert "cannot be decoded" in str(error)
    assert read >= 24


def test_stride_and_limit_keep_times(counted: Path) -> None:
    frames = open_frames(counted, FramesConfig(stride=5, max_frames=3))
    assert frames.names == ("frame_000000", "frame_000005", "frame_000010")
    assert frames.timestamps.tolist() == pytest.approx([0.0, 0.2, 0.4])
    assert [shown(frames.pixels.read(i)) for i in range(3)] == [0, 5, 10]


def test_digests_follow_the_content(tmp_path: Path, counted: Path) -> None:
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(counted.read_bytes())
    one, moved = open_frames(counted), open_frames(copy)
    assert one.digests == moved.digests
    assert len(set(one.digests)) == len(one)
    smaller = open_frames(counted, FramesConfig(max_size=64))
    assert not set(smaller.digests) & set(one.digests)


def test_missing_file_and_sound_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_frames(tmp_path / "none.mp4")
    path = tmp_path / "sound.wav"
    import wave

    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16000))
    with pytest.raises(InputError, match="no video stream"):
        open_frames(path)


def overwrite_packets(path: Path, which: range) -> None:
    """Damage the data of some stored frames."""
    import av

    with av.open(str(path)) as container:
        packets = [p for p in container.demux(video=0) if p.size]
        places = [(packets[k].pos, packets[k].size) for k in which]
    data = bytearray(path.read_bytes())
    for at, size in places:
        data[at : at + size] = bytes([255]) * size
    path.write_bytes(bytes(data))


def test_damage_near_the_beginning_keeps_times_and_is_said(tmp_path: Path) -> None:
    path = recordings.write_video(tmp_path / "v.mp4", recordings.sliding(30), faststart=True)
    whole = open_frames(path).timestamps
    overwrite_packets(path, range(12, 16))
    frames = open_frames(path)
    assert torch.equal(frames.timestamps, whole[: len(frames)]) and len(frames) >= 26
    assert len(frames) == len(whole) or frames.lost


def test_frames_that_cannot_be_decoded_are_no_keyframes(tmp_path: Path) -> None:
    path = recordings.write_video(tmp_path / "v.mp4", recordings.sliding(48), faststart=True)
    damage_the_middle(path)
    frames = open_frames(path)
    unreadable = [i for i in range(len(frames)) if not _readable(frames, i)]
    assert unreadable, "the damage costs frames"
    with Store.open(tmp_path / "work") as store:
        kept = keep_pixels(frames, store)
    assert list(kept.broken) == unreadable and not kept.keyframe[unreadable].any()


def _readable(frames: Frames, frame: int) -> bool:
    try:
        frames.pixels.read(frame)
    except UnreadableFrameError:
        return False
    return True

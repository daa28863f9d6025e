"""Whatever a damaged file holds, opening it ends with pixels or with one line."""

import io
from pathlib import Path

import pytest
import recordings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from geoweaver.errors import InputError
from geoweaver.frames.images import look_at_image, read_alpha, read_image
from geoweaver.frames.video import open_video

Damage = list[tuple[float, int]]
damages = st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=6)


def image_bytes(kind: str) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif.get_ifd(0x8769)[0xA405] = 26
    buffer = io.BytesIO()
    Image.fromarray(recordings.texture(40, 40)).save(buffer, kind, exif=exif)
    return buffer.getvalue()


IMAGES = {kind: image_bytes(kind) for kind in ("PNG", "JPEG", "TIFF", "WEBP")}


def damaged(data: bytes, damage: Damage, length: float) -> bytes:
    changed = bytearray(data)
    for where, value in damage:
        # headers break in more interesting ways than pixels
        changed[int(where**3 * len(changed))] = value
    return bytes(changed[: max(1, int(length * len(changed)))])


@given(kind=st.sampled_from(sorted(IMAGES)), damage=damages, length=st.sampled_from([1.0, 1.0, 0.9, 0.1]))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_images(tmp_path: Path, kind: str, damage: Damage, length: float) -> None:
    path = tmp_path / f"x.{kind.lower()}"
    path.write_bytes(damaged(IMAGES[kind], damage, length))
    for use in (
        lambda: look_at_image(path.read_bytes(), path),
        lambda: read_image(path),
        lambda: read_alpha(path),
    ):
        try:
            use()
        except InputError as error:
            assert "\n" not in str(error)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    return recordings.write_video(folder / "v.mp4", recordings.sliding(12), faststart=True).read_bytes()


@given(damage=damages, length=st.sampled_from([1.0, 1.0, 0.9, 0.4]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_videos(tmp_path: Path, video: bytes, damage: Damage, length: float) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(damaged(video, damage, length))
    try:
        recording = open_video(path)
    except InputError as error:
        assert "\n" not in str(error)
        return
    for i in range(min(len(recording), 12)):
        try:
            recording.source.read(i)
        except InputError as error:
            assert "\n" not in str(error)

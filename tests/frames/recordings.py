"""Tiny recordings that tests write: a textured picture that slides, as a video or as a folder."""

import struct
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from PIL import Image

Picture = np.ndarray


def texture(width: int = 400, height: int = 300, seed: int = 0) -> Picture:
    """A smooth random picture with corners to track."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (height // 10, width // 10, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def sliding(count: int, width: int = 96, height: int = 64, step: int = 4) -> list[Picture]:
    """Views of one texture, each `step` pixels further to the right."""
    wide = texture(width + step * count, height)
    return [np.ascontiguousarray(wide[:, step * i : step * i + width]) for i in range(count)]


def flat(values: list[int], width: int = 96, height: int = 64) -> list[Picture]:
    """Grey pictures that tell by their value which frame they are."""
    return [np.full((height, width, 3), value, np.uint8) for value in values]


def write_video(
    path: Path,
    pictures: list[Picture],
    ticks: list[int] | None = None,
    keyframe_every: int = 8,
    faststart: bool = False,
) -> Path:
    """H.264 with B-frames; `ticks` are presentation times in 1/1000 s."""
    ticks = [40 * i for i in range(len(pictures))] if ticks is None else ticks
    options = {"movflags": "faststart"} if faststart else {}
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream("h264", rate=25)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt, stream.time_base = "yuv420p", Fraction(1, 1000)
        stream.codec_context.time_base = Fraction(1, 1000)
        stream.options = {"crf": "5", "threads": "1", "g": str(keyframe_every), "bf": "2"}
        for picture, tick in zip(pictures, ticks, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = tick, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def turn_flag(path: Path, quarter_turns: int) -> None:
    """Write a rotation into an mp4's track header, as a phone held sideways does (clockwise turns)."""
    data = bytearray(path.read_bytes())
    matrix = data.index(b"tkhd") + 4 + 40
    one, zero = 0x10000, 0
    a, b, c, d = [
        (one, zero, zero, one),
        (zero, one, -one, zero),
        (-one, zero, zero, -one),
        (zero, -one, one, zero),
    ][quarter_turns % 4]
    struct.pack_into(">9i", data, matrix, a, b, 0, c, d, 0, 0, 0, 0x40000000)
    path.write_bytes(bytes(data))


def write_images(folder: Path, pictures: list[Picture], names: list[str] | None = None) -> Path:
    """PNG files `0.png`, `1.png` ... or of the given names."""
    names = [f"{i}.png" for i in range(len(pictures))] if names is None else names
    for name, picture in zip(names, pictures, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / name)
    return folder

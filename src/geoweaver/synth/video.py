"""Write an H.264 video, frame by frame."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from geoweaver.errors import InputError
from geoweaver.synth.quads import Array

_QUALITY = {"crf": "12", "preset": "fast", "threads": "1"}
"""Nearly lossless; one thread, so that the same frames give the same bytes."""


@contextmanager
def writing_video(path: Path, size: tuple[int, int], fps: float) -> Iterator[Callable[[Array], None]]:
    """An open mp4 (yuv420p): call with each frame's RGB pixels in turn."""
    import av

    if size[0] % 2 or size[1] % 2:
        raise InputError(f"a video of {size[0]}x{size[1]} cannot be written: give an even width and height")
    try:
        container: Any = av.open(str(path), "w")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): check the output path") from None
    with container:
        rate = Fraction(fps).limit_denominator(1000)
        stream = container.add_stream("h264", rate=rate)
        (stream.width, stream.height), stream.pix_fmt, stream.options = size, "yuv420p", _QUALITY
        count = 0

        def write(picture: Array) -> None:
            nonlocal count
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts, frame.time_base = count, 1 / rate
            count += 1
            container.mux(stream.encode(frame))

        yield write
        container.mux(stream.encode(None))

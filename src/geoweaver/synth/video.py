"""Write an H.264 video, frame by frame."""

from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from jaxtyping import UInt8

from geoweaver.errors import InputError


class VideoWriter:
    """An mp4 being written: high quality, yuv420p, one thread so that the same frames give the same bytes."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        import av

        if size[0] % 2 or size[1] % 2:
            raise InputError(
                f"a video of {size[0]}x{size[1]} cannot be written: give an even width and height"
            )
        rate = Fraction(fps).limit_denominator(1000)
        try:
            self._container: Any = av.open(str(path), "w")
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror}): check the output path") from None
        self._stream: Any = self._container.add_stream("h264", rate=rate)
        self._stream.width, self._stream.height = size
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"crf": "12", "preset": "fast", "threads": "1"}
        self._count, self._rate = 0, rate

    def write(self, picture: UInt8[np.ndarray, "H W 3"]) -> None:
        """Append a frame."""
        import av

        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        frame.pts, frame.time_base = self._count, 1 / self._rate
        self._count += 1
        self._container.mux(self._stream.encode(frame))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._container.mux(self._stream.encode(None))
        self._container.close()

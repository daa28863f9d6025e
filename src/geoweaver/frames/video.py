"""A video: frames by place, decoded on demand from the nearest start before them; never all in memory."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, UInt8

from geoweaver.formats.files import place as written_place
from geoweaver.frames.images import UnreadableFrameError
from geoweaver.frames.source import Recording
from geoweaver.frames.video_index import VideoIndex, decoded_from, index_video, open_container
from geoweaver.store import digest_of, file_digest

CACHE_BYTES = 48_000_000
"""Decoded frames that are kept: enough for the neighbours of the frame that is being read."""


class VideoSource:
    """Random access to a video; reading on is as cheap as playing it."""

    def __init__(self, path: Path, index: VideoIndex) -> None:
        self.path = path
        self.index = index
        self._container: Any = None
        self._frames: Iterator[tuple[int, Any]] = iter(())
        self._reached: int | None = None
        self._cache: OrderedDict[int, np.ndarray] = OrderedDict()

    def __reduce__(self) -> tuple[type["VideoSource"], tuple[Path, VideoIndex]]:
        return VideoSource, (self.path, self.index)  # decoders do not travel

    def read(self, place: int) -> UInt8[np.ndarray, "height width 3"]:
        """Upright RGB with square pixels."""
        for start in self.index.starts_before(self.index.times[place]):
            if place not in self._cache:
                self._decode_to(place, start)
        if place not in self._cache:
            where = f"{written_place(self.path)}, frame {place}"
            raise UnreadableFrameError(f"{where} cannot be decoded: convert the video or leave the frame out")
        self._cache.move_to_end(place)
        return self._cache[place]

    def mask(self, place: int) -> Bool[np.ndarray, "height width"] | None:
        """Videos have none of their own."""
        return None

    def _decode_to(self, place: int, start: int) -> None:
        """Go on from where the decoder stands if that is between the start and the frame, else seek."""
        wanted = self.index.times[place]
        if self._reached is None or not start <= self._reached < wanted:
            self._seek(start)
        for time, frame in self._frames:
            self._reached = time
            self._keep(time, frame, wanted)
            if time >= wanted:
                return
        self._reached = None

    def _seek(self, time: int) -> None:
        if self._container is None or self.index.counted:
            self._container, self._stream = open_container(self.path)
        if self.index.counted:
            played = decoded_from(self._container, self._stream, None)
            self._frames = ((count, frame) for count, (_, frame) in enumerate(played))
        else:
            self._frames = decoded_from(self._container, self._stream, time)

    def _keep(self, time: int, frame: Any, wanted: int) -> None:
        """Convert the wanted frame alone: most of those on the way are never asked for."""
        if time != wanted:
            return
        self._cache[bisect_left(self.index.times, time)] = _upright(frame, self.index)
        size = 3 * self.index.size[0] * self.index.size[1]
        while len(self._cache) > max(1, CACHE_BYTES // size):
            self._cache.popitem(last=False)


def open_video(path: Path) -> Recording:
    """All frames that a video presents, stamped with their presentation times in seconds."""
    index = index_video(path)
    count, digest = len(index.times), file_digest(path)
    times = torch.tensor([float(time * index.tick) for time in index.times], dtype=torch.float64)
    return Recording(
        source=VideoSource(path, index),
        names=tuple(f"frame_{i:06}" for i in range(count)),
        folders=(".",) * count,
        sizes=(index.size,) * count,
        timestamps=times,
        digests=tuple(digest_of([digest, time]) for time in index.times),
        notes=(*index.notes, *index.lost),
        lost=index.lost,
    )


def _upright(frame: Any, index: VideoIndex) -> UInt8[np.ndarray, "height width 3"]:
    pixels = np.rot90(frame.to_ndarray(format="rgb24"), index.quarter_turns)
    if (pixels.shape[1], pixels.shape[0]) != index.size:
        import cv2

        pixels = cv2.resize(np.ascontiguousarray(pixels), index.size, interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(pixels)

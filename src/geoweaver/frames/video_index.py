"""Which frames a video presents and when: from its packets, with head and tail decoded to be sure."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from geoweaver.errors import InputError
from geoweaver.formats.files import place, reason

_HEAD = 48
"""Frames decoded to see whether the container's times are theirs."""
_IN_ORDER = 8
"""Frames in order that show the container's times to be sound: past damage the order may break."""
EXPECTED = "a video (mp4, mov, mkv, webm, avi ...)"


@dataclass(frozen=True)
class VideoIndex:
    """Presentation times in the stream's ticks, and where decoding can start."""

    times: tuple[int, ...]
    starts: tuple[int, ...]
    """Times of the frames that can be decoded without others."""
    tick: Fraction
    """Seconds."""
    size: tuple[int, int]
    """(width, height) upright, with square pixels."""
    quarter_turns: int
    """Counter-clockwise, to be upright."""
    counted: bool = False
    """True where the container tells no sound times: then `times` count the frames that come out."""
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """What should be there and is not, in words."""

    def starts_before(self, time: int) -> tuple[int, ...]:
        """Where to decode from to reach `time`: the nearest start, and two more for files that seek badly."""
        at = bisect_right(self.starts, time) - 1
        nearest = [self.starts[max(at, 0)], self.starts[max(at - 1, 0)], self.starts[0]]
        return tuple(dict.fromkeys(nearest))


def open_container(path: Path) -> tuple[Any, Any]:
    """PyAV's container and its first video stream, decoded in one thread."""
    import av

    try:
        container = av.open(str(path))
    except (av.FFmpegError, OSError, ValueError) as error:
        raise InputError(
            f"{place(path)} cannot be opened as a video ({_words(error)}): "
            f"give {EXPECTED} or a folder of images"
        ) from None
    if not container.streams.video:
        container.close()
        raise InputError(f"{place(path)} holds no video stream: give {EXPECTED} or a folder of images")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        container.close()
        raise InputError(f"{place(path)} holds a video that cannot be decoded: convert it to H.264")
    stream.codec_context.thread_count = 1
    return container, stream


def decoded_from(container: Any, stream: Any, time: int | None) -> Iterator[tuple[int, Any]]:
    """Frames with their times from a time on (None: from where a new container stands).

    Packets that cannot be decoded are passed over; a container that cannot seek gives nothing.
    """
    import av

    try:
        if time is not None:
            container.seek(time, stream=stream, backward=True, any_frame=False)
        packets = container.demux(stream)
    except av.FFmpegError:
        return
    while True:
        try:
            packet = next(packets)
            frames = packet.decode()
        except (StopIteration, av.EOFError):
            return
        except av.FFmpegError:
            # a demuxer that fails has ended, and says so at the next packet
            continue
        for frame in frames:
            ticks = frame.pts if frame.pts is not None else frame.dts
            if ticks is not None and not frame.is_corrupt:
                yield int(ticks), frame


def index_video(path: Path) -> VideoIndex:
    """Read the packets without decoding, then drop what head or tail cannot deliver."""
    head, size, turns = _head(path)
    container, stream = open_container(path)
    with container:
        # only these headers count frames; others estimate
        stated = int(stream.frames) if "mp4" in container.format.name else 0
        packets, hidden = _packets(container, stream)
        starts = tuple(sorted(time for time, start in packets.items() if start))
        if not _tells_time(packets, head) or not _can_seek(container, stream, head[0]):
            return _index_by_counting(path, size, turns, stated)
        last = _last_time(container, stream, starts, head[-1])
        kept = tuple(sorted(t for t in packets if t not in hidden and head[0] <= t <= last))
        notes, lost = _hidden(path, len(hidden)), _lost(path, stated, len(kept) + len(hidden))
        return VideoIndex(kept, starts, Fraction(stream.time_base), size, turns, notes=notes, lost=lost)


def _head(path: Path) -> tuple[list[int], tuple[int, int], int]:
    """Times of the first frames that come out, upright size and turns."""
    container, stream = open_container(path)
    with container:
        playing = islice(decoded_from(container, stream, None), _HEAD)
        first = next(playing, None)
        if first is None:
            raise InputError(
                f"{place(path)}: no frame of the video can be decoded: convert it or give images"
            )
        return [first[0], *(time for time, _ in playing)], *_shape(stream, first[1])


def _can_seek(container: Any, stream: Any, time: int) -> bool:
    return next(decoded_from(container, stream, time), None) is not None


def _tells_time(packets: dict[int, bool], decoded: list[int]) -> bool:
    """Whether the container's presentation times are those of the frames that come out, in order."""
    first = decoded[:_IN_ORDER]
    increasing = all(a < b for a, b in pairwise(first))
    return any(packets.values()) and increasing and all(time in packets for time in decoded)


def _index_by_counting(path: Path, size: tuple[int, int], turns: int, stated: int) -> VideoIndex:
    """The slow way, for containers without sound times (avi): one decode of everything, frame by frame."""
    container, stream = open_container(path)
    with container:
        count = sum(1 for _ in decoded_from(container, stream, None))
        tick = 1 / Fraction(stream.average_rate or 25)
    lost = (
        f"{place(path)}: {stated - count} of {stated} frames cannot be decoded: left out, later times are off"
    )
    told = (lost,) if stated > count else ()
    return VideoIndex(tuple(range(count)), (0,), tick, size, turns, counted=True, lost=told)


def _packets(container: Any, stream: Any) -> tuple[dict[int, bool], set[int]]:
    """Each packet's time and whether decoding can start there; and the times that the file does not show."""
    import av

    found: dict[int, bool] = {}
    hidden: set[int] = set()
    try:
        for packet in container.demux(stream):
            if packet.size == 0:
                continue
            if packet.pts is None or packet.pts in found:
                return {}, set()
            found[packet.pts] = bool(packet.is_keyframe)
            if packet.is_discard:
                hidden.add(packet.pts)
    except av.FFmpegError:
        return found, hidden  # a broken tail: what came before it counts
    return found, hidden


def _last_time(container: Any, stream: Any, starts: tuple[int, ...], known: int) -> int:
    """The last time that really can be decoded, searched backwards start by start."""
    for start in reversed(starts):
        decoded = [time for time, _ in decoded_from(container, stream, start)]
        if decoded:
            return max(decoded)
    return known


def _shape(stream: Any, frame: Any) -> tuple[tuple[int, int], int]:
    """Upright size with square pixels, and the turns that the rotation flag asks for."""
    width, height = frame.width, frame.height
    ratio = stream.sample_aspect_ratio
    if ratio and ratio != 1:
        width = max(1, round(width * float(ratio)))
    turns = round(frame.rotation / 90) % 4
    return ((height, width) if turns % 2 else (width, height)), turns


def _hidden(path: Path, count: int) -> tuple[str, ...]:
    words = f"{place(path)}: {count} of the stored frames are not presented (edit list): left out"
    return (words,) if count else ()


def _lost(path: Path, stated: int, found: int) -> tuple[str, ...]:
    words = f"{place(path)}: the last {stated - found} of {stated} frames are damaged or missing: left out"
    return (words,) if stated > found else ()


def _words(error: BaseException) -> str:
    return reason(error).split(": '")[0]

"""Chunks: runs of keyframes of one camera that share one frame with the next (stride = size - shared)."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.datatypes import Chunk, Frames
from geoweaver.errors import ConfigError
from geoweaver.frames.motion import frames_by

TieStrength = Callable[[int], float] | Float[Tensor, "F"] | None
"""How well a frame is tied to its neighbours on both sides, e.g. verified matches to the weaker side."""


def split_chunks(
    frames: Frames,
    size: int = 60,
    shared: int = 1,
    tie_strength: TieStrength = None,
    *,
    fixed: bool = False,
    window: float = 0.15,
) -> tuple[Chunk, ...]:
    """Cut every camera's keyframes into chunks; borders move within `window * size` to the best-tied frame.

    `fixed` is the paper's stride: no border moves, and the tail stays as long as it is.
    """
    check_chunk_size(size, shared)
    keyframe = frames.keyframe.tolist()
    chunks: list[Chunk] = []
    for chain in frames_by(frames.camera):
        rows = [i for i in chain if keyframe[i]]
        if not rows:
            continue
        reach = 0 if fixed else int(window * size)
        starts = _starts(rows, size, shared, reach, _strength(tie_strength), merge=not fixed)
        ends = [start + shared for start in starts[1:]] + [len(rows)]
        for start, end in zip(starts, ends, strict=True):
            chunks.append(Chunk(len(chunks), tuple(rows[start:end])))
    return tuple(chunks)


def check_chunk_size(size: int, shared: int = 1) -> None:
    """Refuse chunks that cannot be chained."""
    if size < 3 or not 0 <= shared < size / 2:
        raise ConfigError(
            f"chunks of {size} frames sharing {shared} make no chain: give a larger --chunk-size"
        )


def _strength(given: TieStrength) -> Callable[[int], float]:
    if given is None:
        return lambda frame: 0.0
    if isinstance(given, Tensor):
        values = given.tolist()
        return lambda frame: float(values[frame])
    return given


def _starts(
    rows: Sequence[int],
    size: int,
    shared: int,
    reach: int,
    strength: Callable[[int], float],
    merge: bool,
) -> list[int]:
    """Places where chunks begin; the frame (or first of the frames) there also ends the chunk before."""
    stride = size - shared
    starts = [0]
    # a tail too short to stand alone is merged: its frames make the last chunk longer
    shortest = size // 3 if merge else shared + 1
    while len(rows) - (starts[-1] + stride) >= max(shortest, shared + 1):
        nominal = starts[-1] + stride
        allowed = range(
            max(nominal - reach, starts[-1] + shared + 1), min(nominal + reach, len(rows) - 2) + 1
        )
        best = max(allowed, key=lambda at: (strength(rows[at]), -abs(at - nominal)), default=nominal)
        starts.append(best)
    return starts


def tie_strength_from_pairs(
    first: Sequence[int], second: Sequence[int], matches: Sequence[float], count: int
) -> Float[Tensor, "F"]:
    """Per frame, verified matches to earlier or to later frames, whichever are fewer: the weaker tie."""
    earlier = torch.zeros(count, dtype=torch.float64)
    later = torch.zeros(count, dtype=torch.float64)
    for i, j, weight in zip(first, second, matches, strict=True):
        later[min(i, j)] += weight
        earlier[max(i, j)] += weight
    return torch.minimum(earlier, later)

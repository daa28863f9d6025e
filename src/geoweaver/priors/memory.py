"""Does a chunk fit? What a network needs per view, what the machine has, and the largest chunk in between."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from geoweaver.errors import ConfigError

_SPARE = 0.9
"""Share of the free memory that may be asked for."""
_REFUSED = ("can't allocate memory", "not enough memory", "out of memory")
"""What torch's allocators say where they raise no type of their own."""


@dataclass(frozen=True)
class Footprint:
    """Bytes that a network needs: always, and for every view of a chunk."""

    fixed: int
    per_view: int

    def of(self, views: int) -> int:
        return self.fixed + views * self.per_view

    def most_views(self, memory: int) -> int:
        """The longest chunk that so many bytes hold; 0 where not even one view fits."""
        return max(0, (memory - self.fixed) // self.per_view)


def vit_footprint(dim: int, size: tuple[int, int], features: int, weights: int, block: int = 8) -> Footprint:
    """A ViT with a dense head: tokens of all views at once, the head's maps for a block of views only."""
    pixels = size[0] * size[1]
    tokens = pixels // 196 + 1
    # queries, keys, values, MLP, taps and copies: da3-small takes 37 MB for a view of 280x504
    attended = 30 * 4 * dim * tokens
    dense = 4 * pixels * (features + 64)
    return Footprint(weights + 150_000_000 + block * dense, attended + 6 * 4 * pixels)


@dataclass(frozen=True)
class Room:
    """What one worker's network may take, its weights included."""

    device: str
    workers: int
    memory: int


def measure_room(device: str, workers: int) -> Room:
    """Measured once, before any network is loaded: later, free memory lacks what is already counted."""
    workers = 1 if device == "cuda" else max(workers, 1)
    return Room(device, workers, int(_SPARE * free_memory(device) / workers))


def free_memory(device: str) -> int:
    """Bytes that are free now: the GPU's, or the machine's within the limits of its container."""
    if device == "cuda":
        # what torch has set aside and does not use is free for us, though not for the driver
        idle = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return int(torch.cuda.mem_get_info()[0]) + idle
    found = [_available(), *_container()]
    return min(found)


def check_fits(views: int, footprint: Footprint, room: Room) -> None:
    """Refuse a chunk that this machine cannot hold, and say which it can."""
    if footprint.of(views) > room.memory:
        raise too_large(views, footprint, room)


def too_large(views: int, footprint: Footprint, room: Room) -> ConfigError:
    """One line: what is needed, what there is, the largest chunk that fits."""
    most = min(footprint.most_views(room.memory), views - 1)
    where = (
        "the GPU"
        if room.device == "cuda"
        else "memory"
        if room.workers <= 1
        else f"memory for each of {room.workers} workers"
    )
    head = (
        f"a chunk of {views} frames needs about {footprint.of(views) / 1e9:.1f} GB with this prior, "
        f"{room.memory / 1e9:.1f} GB of {where} are free"
    )
    if most >= 3:
        return ConfigError(f"{head}: give --chunk-size {most} or less, the largest that fits")
    more = ", or fewer --workers" if room.workers > 1 else ""
    return ConfigError(f"{head}: no chunk fits; take a smaller model{more}")


@contextmanager
def saying_what_fits(views: int, footprint: Footprint, room: Room) -> Iterator[None]:
    """Turn an allocator's refusal into the same words."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        refused = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not refused and not any(words in str(error) for words in _REFUSED):
            raise
        # the refusal itself tells more than the estimate: less than this chunk's need is there
        less = replace(room, memory=min(room.memory, footprint.of(views - 1)))
        raise too_large(views, footprint, less) from error


def _available() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else []
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container() -> list[int]:
    """What is left of a container's limit (cgroup 2), where there is one."""
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        text = limit.read_text().strip()
        return [] if text == "max" else [int(text) - int(used.read_text())]
    except (OSError, ValueError):
        return []

"""Does a chunk fit? What a network needs per view, what the machine has, and the largest chunk in between."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


def free_memory(device: str) -> int:
    """Bytes that are free now: the GPU's, or the machine's within the limits of its container."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    found = [_available(), *_container()]
    return min(found)


def check_fits(views: int, footprint: Footprint, device: str, workers: int) -> None:
    """Refuse a chunk that this machine cannot hold, and say which it can."""
    share = int(_SPARE * free_memory(device) / max(workers, 1))
    if footprint.of(views) > share:
        raise too_large(views, footprint, share, device, workers)


def too_large(views: int, footprint: Footprint, memory: int, device: str, workers: int) -> ConfigError:
    """One line: what is needed, what there is, the largest chunk that fits."""
    most = min(footprint.most_views(memory), views - 1)
    where = (
        "the GPU"
        if device == "cuda"
        else "memory"
        if workers <= 1
        else f"memory for each of {workers} workers"
    )
    head = (
        f"a chunk of {views} frames needs about {footprint.of(views) / 1e9:.1f} GB with this prior, "
        f"{memory / 1e9:.1f} GB of {where} are free"
    )
    if most >= 3:
        return ConfigError(f"{head}: give --chunk-size {most} or less, the largest that fits")
    more = ", or fewer --workers" if workers > 1 else ""
    return ConfigError(f"{head}: no chunk fits; take a smaller model{more}")


@contextmanager
def saying_what_fits(views: int, footprint: Footprint, device: str, workers: int) -> Iterator[None]:
    """Turn an allocator's refusal into the same words."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        refused = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not refused and not any(words in str(error) for words in _REFUSED):
            raise
        # the refusal itself tells more than the estimate: less than this chunk's need is there
        memory = min(int(_SPARE * free_memory(device) / max(workers, 1)), footprint.of(views - 1))
        raise too_large(views, footprint, memory, device, workers) from error


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

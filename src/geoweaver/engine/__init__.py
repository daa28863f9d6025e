"""Map a function over chunks or edges: here, in local processes, or on a Ray cluster."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from geoweaver.engine.crew import WorkerError
from geoweaver.engine.local import LocalEngine, available_cores, map_pieces
from geoweaver.engine.progress import stage_progress
from geoweaver.engine.ray_cluster import RayEngine
from geoweaver.engine.threads import map_in_threads, one_blas_thread, one_thread
from geoweaver.errors import ConfigError

P = TypeVar("P")
R = TypeVar("R")


@runtime_checkable
class Engine(Protocol):
    """Anything that can map a function over pieces and deliver the results in order."""

    def map(
        self,
        function: Callable[[P], R],
        pieces: Iterable[P],
        *,
        title: str = "",
        initializer: Callable[[], None] | None = None,
    ) -> Iterator[R]: ...


ENGINES: dict[str, Callable[[int, str | None], Engine]] = {
    "local": lambda workers, address: LocalEngine(workers),
    "ray": lambda workers, address: RayEngine(workers, address),
}


def find_engine(name: str = "local", workers: int = 1, address: str | None = None) -> Engine:
    """An engine by the name that users give it."""
    if name not in ENGINES:
        raise ConfigError(f"there is no engine {name!r}: choose one of {', '.join(ENGINES)}")
    return ENGINES[name](workers, address)


__all__ = [
    "ENGINES",
    "Engine",
    "LocalEngine",
    "RayEngine",
    "WorkerError",
    "available_cores",
    "find_engine",
    "map_in_threads",
    "map_pieces",
    "one_blas_thread",
    "one_thread",
    "stage_progress",
]

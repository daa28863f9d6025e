"""The same map on a Ray cluster; the only file that knows Ray."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from geoweaver.engine.parcel import answer, read_answer
from geoweaver.engine.progress import stage_progress
from geoweaver.engine.worker import ONE_THREAD
from geoweaver.errors import GeoWeaverError, MissingExtraError

P = TypeVar("P")
R = TypeVar("R")
_initialized: set[str] = set()


@dataclass(frozen=True)
class RayEngine:
    """Pieces as Ray tasks of one core each; the run folder must lie where all machines see it."""

    workers: int = 0
    """Tasks under way at once; 0 = twice the cluster's cores."""
    address: str | None = None
    """The cluster's address; None takes Ray's own choice: a running one, else a new one on this machine."""

    def __post_init__(self) -> None:
        _imported()  # that it is missing shows at once

    def map(
        self,
        function: Callable[[P], R],
        pieces: Iterable[P],
        *,
        title: str = "",
        initializer: Callable[[], None] | None = None,
    ) -> Iterator[R]:
        """Results in the order of the pieces, with a bounded number of tasks submitted."""
        ray = _connected(self.address)
        task = ray.remote(num_cpus=1, runtime_env={"env_vars": ONE_THREAD})(_run)
        job = ray.put((function, initializer))
        limit = self.workers or 2 * int(ray.cluster_resources().get("CPU", 1))
        pending: deque[Any] = deque()
        with stage_progress(title, len(pieces) if isinstance(pieces, Sized) else None) as advance:
            for piece in pieces:
                pending.append(task.remote(job, piece))
                if len(pending) >= limit:
                    yield _result(ray, pending.popleft())
                    advance(1)
            while pending:
                yield _result(ray, pending.popleft())
                advance(1)


def _imported() -> Any:
    """The package, or a line that says how to get it."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "computing on a cluster (--engine ray)") from error
    return ray


def _connected(address: str | None) -> Any:
    ray = _imported()
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError as error:
            raise GeoWeaverError(f"no Ray cluster answers at {address}: check --address") from error
    return ray


def _run(job: tuple[Callable[[Any], Any], Callable[[], None] | None], piece: Any) -> bytes:
    """One task: errors come back as answers, so that they look the same on every engine."""
    function, initializer = job

    def compute(piece: Any) -> Any:
        torch.set_num_threads(1)
        name = repr(initializer)
        if initializer is not None and name not in _initialized:
            initializer()
            _initialized.add(name)
        return function(piece)

    return answer(compute, piece)


def _result(ray: Any, reference: Any) -> Any:
    try:
        parcel = ray.get(reference)
    except ray.exceptions.RayError as lost:
        words = str(lost).strip().partition("\n")[0]
        raise GeoWeaverError(f"the cluster lost a piece: {words}; run the same command again") from lost
    result, error = read_answer(parcel)
    if error is not None:
        raise error
    return result

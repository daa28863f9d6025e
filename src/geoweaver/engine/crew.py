"""The worker processes of one map: started clean, ended at once, and missed in words when one is killed."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from types import ModuleType
from typing import Any

from geoweaver.engine.parcel import pack, read_answer
from geoweaver.engine.worker import ONE_THREAD, serve
from geoweaver.errors import GeoWeaverError

PRELOAD = [
    "torch", "scipy.optimize", "cv2", "numba",
    "geoweaver.engine.worker", "geoweaver.datatypes", "geoweaver.engine.preloaded",
]  # fmt: skip
"""Loaded once by the server that workers are forked from: a worker then starts in milliseconds."""


class WorkerError(GeoWeaverError):
    """A worker process ended without an answer: killed, out of memory, or crashed inside a library."""


@dataclass
class _Worker:
    """One process and the line to it."""

    process: Any
    line: Any
    answered: int = 0


@dataclass
class Crew:
    """The worker processes of one map, and what they have answered before its turn."""

    job: bytes
    workers: int
    idle: list[_Worker] = field(default_factory=list)
    busy: dict[Any, tuple[_Worker, int]] = field(default_factory=dict)
    early: dict[int, tuple[Any, BaseException | None]] = field(default_factory=dict)
    """Results, or errors, by the piece's index."""
    handed: int = 0

    def __post_init__(self) -> None:
        self.idle = [_start(self.job) for _ in range(self.workers)]

    def hand(self, index: int, piece: Any) -> None:
        """Give the next piece to an idle worker."""
        parcel = pack(piece)
        worker = self.idle.pop()
        self.busy[worker.line] = worker, index
        self.handed = index + 1
        with suppress(ConnectionError):  # If it is dead, its line says so when we listen to it.
            worker.line.send_bytes(parcel)

    def receive(self) -> bool:
        """Take the answers that are there; True if one of them is an error."""
        for line in wait(list(self.busy)):
            worker, index = self.busy.pop(line)
            try:
                parcel = worker.line.recv_bytes()
            except (EOFError, ConnectionError):
                self.early[index] = None, _obituary(worker, index, self.workers)
                worker.line.close()
                continue
            worker.answered += 1
            self.idle.append(worker)
            self.early[index] = read_answer(parcel)
        return any(error is not None for _, error in self.early.values())

    def end(self) -> None:
        """Stop everybody at once; pieces under way are lost, finished ones are with their receiver."""
        everybody = self.idle + [worker for worker, _ in self.busy.values()]
        for worker in everybody:
            worker.process.kill()
        for worker in everybody:
            worker.process.join()
            worker.line.close()


def _start(job: bytes) -> _Worker:
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload(PRELOAD)
    line, far_end = context.Pipe()
    with _environment(ONE_THREAD), _script_kept_out(b"__main__" not in job):
        process = context.Process(target=serve, args=(far_end, dict(os.environ)), daemon=True)
        process.start()
    far_end.close()
    with suppress(ConnectionError):  # One that died at once is noticed when it is asked.
        line.send_bytes(job)
    return _Worker(process, line)


def _obituary(worker: _Worker, index: int, workers: int) -> WorkerError:
    worker.process.join()
    code = worker.process.exitcode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    if code == -signal.SIGKILL:
        advice = f"the machine probably ran out of memory; use fewer workers than {workers} and run it again"
    elif not worker.answered:
        advice = "see its words above; a script with functions of its own needs `if __name__ == '__main__':`"
    else:
        advice = "run it again; if it stays, use one worker to see where it happens"
    return WorkerError(f"a worker process {how} at piece {index}: {advice}")


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _script_kept_out(wanted: bool) -> Iterator[None]:
    """Workers that need nothing of the user's script must not run it again to be able to start."""
    script = sys.modules["__main__"]
    if wanted:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script

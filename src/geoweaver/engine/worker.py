"""What runs inside a worker process: one thread, one piece at a time, until its owner is gone."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from geoweaver.engine.parcel import answer, unpack
from geoweaver.engine.signals import answer_signal

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "OPENCV_FOR_THREADS_NUM",
    ),
    "1",
)
"""What the numeric libraries read when they are loaded: set before a worker starts."""


def serve(line: Connection, environment: dict[str, str]) -> None:
    """Answer parcels until the line is closed; the first one brings the function."""
    # Ctrl-C and `kill` of a group reach everybody; the owner decides
    for kind in (signal.SIGINT, signal.SIGTERM):
        answer_signal(kind, signal.SIG_IGN)
    threading.Thread(target=_end_with_owner, daemon=True).start()
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        job = line.recv_bytes()
        run = _Job(job)
        while True:
            line.send_bytes(answer(run, line.recv_bytes()))
    except (EOFError, ConnectionError):
        return


class _Job:
    """The function and its initializer, unpacked with the first piece so that their errors travel too."""

    def __init__(self, parcel: bytes) -> None:
        self._parcel = parcel
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, piece: bytes) -> Any:
        if self._function is None:
            function, initializer = unpack(self._parcel)
            if initializer is not None:
                initializer()
            self._function = function
        return self._function(unpack(piece))


def _end_with_owner() -> None:
    """A worker whose owner was killed has nobody to work for."""
    owner = multiprocessing.parent_process()
    if owner is not None:
        owner.join()
        os._exit(1)

"""Functions that workers import by name."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import torch

from geoweaver.engine import map_in_threads, map_pieces
from geoweaver.errors import MissingExtraError
from geoweaver.geometry import SE3

ready = False


def square(x):
    return x * x


def slow_first(x):
    """Early pieces take longest: completion order is the reverse of delivery order."""
    time.sleep(0.05 * max(0, 3 - x))
    return x, os.getpid()


def reduce_many(seed):
    """Sums whose bytes depend on the order of addition."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(200, 3000, generator=generator)
    return {"sum": a.sum(), "product": a @ a.T, "camera": SE3.exp(a[:2, :6].double()), "seed": seed}


def threads(_):
    return torch.get_num_threads(), os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("GEOWEAVER_TEST")


def met_in_threads(x):
    """How many threads were in here at once, at the most, and the results in order."""
    inside, most, lock = [0], [0], threading.Lock()

    def wait(k):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        with lock:
            inside[0] -= 1
        return k * x

    found = map_in_threads(wait, range(6))
    return most[0], found


def fail_at_three(x):
    if x == 3:
        raise KeyError("the third one")
    return x


def die_at_three(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def exit_at_three(x):
    if x == 3:
        os._exit(7)
    return x


class PickyError(Exception):
    def __init__(self, what, *, where):
        super().__init__(f"{what} at {where}")
        self.where = where


def raise_kind(kind):
    class LocalError(Exception):
        pass

    errors = {
        "extra": lambda: MissingExtraError("viser", "viewer", "viewing"),
        "picky": lambda: PickyError("lost", where=(1, 2)),
        "local": lambda: LocalError("inner words"),
        "command": lambda: subprocess.CalledProcessError(3, ["ls", "-l"]),
        "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad start"),
        "group": lambda: ExceptionGroup("several", [ValueError("one")]),
        "exit": lambda: SystemExit("no"),
    }
    if kind == "file":
        Path("/nowhere/at/all").read_text()
    if kind == "result":
        return lambda: None
    raise errors[kind]()


def initialise():
    global ready
    assert not ready, "initialised twice"
    ready = True


def refuse_to_initialise():
    raise OSError("no weights here")


def is_ready(_):
    return ready, os.getpid()


def big(n):
    return torch.full((n, 1_000_000), float(n))


def big_sum(tensor):
    return tensor.double().sum().item()


def nested(x):
    return list(map_pieces(square, range(x), 4))


def note_and_sleep(folder):
    (Path(folder) / str(os.getpid())).write_text("")
    time.sleep(600)


def sleep_long(folder):
    """What the interrupted scripts run."""
    list(map_pieces(note_and_sleep, [folder] * 4, 2))

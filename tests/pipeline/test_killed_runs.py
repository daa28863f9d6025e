"""A run killed at any moment goes on by the same command and ends with the same bytes."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_sequence import OPTIONS, command, environment, geoweaver

from geoweaver.store.whole import PARTIAL

pytestmark = pytest.mark.slow
NEW_FILES = (1, 2, 1, 5, 3, 8, 2, 6, *[1] * 12, 5, 20, 3, 9)
"""A run is killed when so many more files are there than at its start; late stages leave few."""


class Commands:
    """Commands one after the other, each killed at a moment of our choice."""

    def __init__(self) -> None:
        self.host = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked_commands.py")],
            env={**environment(), "NUMBA_THREADING_LAYER": "workqueue"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0,  # a line that waits in a buffer is not seen by poll
        )  # fmt: skip

    def kill_after(self, new: int, out: Path, *arguments: str | Path) -> int:
        """Kill once so many new files are in the folder; the exit code, which is 0 if the run was faster."""
        enough = files(out) + new
        self.host.stdin.write((json.dumps(list(map(str, arguments))) + "\n").encode())
        pid = int(self.host.stdout.readline())
        ended = select.poll()
        ended.register(self.host.stdout, select.POLLIN)
        while files(out) < enough and not ended.poll(1):
            pass
        if not ended.poll(0):
            os.killpg(pid, signal.SIGKILL)
        return int(self.host.stdout.readline())

    def close(self) -> None:
        self.host.stdin.close()
        self.host.wait()


@pytest.fixture
def commands() -> Iterator[Commands]:
    opened = Commands()
    yield opened
    opened.close()


def files(folder: Path) -> int:
    """Finished ones, those of half-written exports included."""
    return sum(len([n for n in names if not n.endswith(PARTIAL)]) for _, _, names in os.walk(folder))


def test_killed_at_many_moments(small: Path, finished: Path, tmp_path: Path, commands: Commands) -> None:
    out, left = tmp_path / "run", set()
    for new in NEW_FILES:
        code = commands.kill_after(new, out, "reconstruct", small / "images", "-o", out, *OPTIONS)
        if code == 0:
            break
        assert code == -signal.SIGKILL and not (out / "run.json").exists()
        left.add(frozenset(path for path in out.rglob("*") if path.is_file()))
    assert len(left) >= 15, "too few different states to go on from"
    stages = {path.parent.name for state in left for path in state}
    assert {"pixels", "features", "graph", "matches", "priors", "weave", "result", "cloud"} <= stages
    assert geoweaver("reconstruct", small / "images", "-o", out, *OPTIONS).returncode == 0
    for name in ("trajectory.tum", "points.ply", "colmap/sparse/0/points3D.bin", "transforms.json"):
        assert (out / name).read_bytes() == (finished / name).read_bytes(), name
    assert not list(out.rglob(f".*{PARTIAL}")) and not list(out.glob(".*.tmp"))


def test_a_second_process_refuses_politely(small: Path, tmp_path: Path) -> None:
    arguments = command("reconstruct", small / "images", "-o", tmp_path / "run", *OPTIONS)
    first = subprocess.Popen(arguments, env=environment(), start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        lock = tmp_path / "run/work/store.json"
        while not lock.exists():
            assert first.poll() is None
            time.sleep(0.05)
        os.killpg(first.pid, signal.SIGSTOP)  # on a busy machine it could be done before the second begins
        second = geoweaver("reconstruct", small / "images", "-o", tmp_path / "run", *OPTIONS)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert second.returncode == 2 and len(second.stderr.strip().splitlines()) == 1, second.stderr


def test_ctrl_c_says_how_to_go_on(small: Path, tmp_path: Path) -> None:
    arguments = command("reconstruct", small / "images", "-o", tmp_path / "run", *OPTIONS)
    process = subprocess.Popen(
        arguments, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "run/work/features").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command" in said.splitlines()[-1]

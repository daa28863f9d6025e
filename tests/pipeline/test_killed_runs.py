"""A run killed at any moment goes on by the same command and ends with the same bytes."""

import json
import os
import random
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
LATER = 0.2
"""Seconds; up to so long after a new file is there, at random: workers are amid their pieces then."""
PATIENCE = 1.0
"""Seconds in which somebody should be found writing."""
PARTS = (
    "--workers",
    "2",
    "--max-size",
    "192",
    "--chunk-size",
    "5",
    "--max-frames",
    "12",
    "--quality",
    "draft",
)
"""Three chunks."""


class Commands:
    """Commands one after the other, each killed at a moment of our choice."""

    def __init__(self) -> None:
        self.host = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked_commands.py")],
            env={**environment(), "NUMBA_THREADING_LAYER": "workqueue"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0,  # a line that waits in a buffer is not seen by poll
        )  # fmt: skip

    def run(self, *arguments: str | Path) -> int:
        """Undisturbed; the exit code."""
        self._begin(arguments)
        return int(self.host.stdout.readline())

    def kill(self, out: Path, draw: random.Random, *arguments: str | Path) -> int:
        """Kill everybody some time after a new file is there, or then as soon as something is half written;
        the exit code, which is 0 if the run was faster."""
        before = files(out)
        pid, ended = self._begin(arguments), select.poll()
        ended.register(self.host.stdout, select.POLLIN)
        while files(out) <= before and not ended.poll(1):
            pass
        writing = draw.random() < 0.5
        latest = time.monotonic() + (PATIENCE if writing else draw.uniform(0, LATER))
        while time.monotonic() < latest and not ended.poll(0) and not (writing and half_written(out)):
            pass
        if not ended.poll(0):
            os.killpg(pid, signal.SIGKILL)
        return int(self.host.stdout.readline())

    def _begin(self, arguments: tuple[str | Path, ...]) -> int:
        self.host.stdin.write((json.dumps(list(map(str, arguments))) + "\n").encode())
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


def half_written(folder: Path) -> list[Path]:
    return list((folder / "work").rglob(f".*{PARTIAL}"))


def pieces(folder: Path) -> dict[Path, tuple[int, int]]:
    """Finished ones, and what tells a file from one that was written anew."""
    found = {path.relative_to(folder): path.stat() for path in folder.glob("work/*/*.safetensors")}
    return {path: (facts.st_ino, facts.st_mtime_ns) for path, facts in found.items()}


def has_cloud(files: set[Path]) -> bool:
    return any(path.parent.name == "cloud" and not path.name.endswith(PARTIAL) for path in files)


def test_killed_at_many_moments(small: Path, tmp_path: Path, commands: Commands) -> None:
    """Workers and all; what was finished is not made again, and what was half written is not used."""
    calm, out, draw = tmp_path / "calm", tmp_path / "run", random.Random(0)
    left, writing, finished = [], 0, {}
    while not (out / "run.json").exists() and len(list(filter(has_cloud, left))) < 3:
        code = commands.kill(out, draw, "reconstruct", small / "images", "-o", out, *PARTS)
        kept = pieces(out)
        assert finished.items() <= kept.items(), "a finished piece was made again"
        assert code in (0, -signal.SIGKILL)
        left.append({path for path in out.rglob("*") if path.is_file()})
        writing, finished = writing + bool(half_written(out)), kept
    assert len(left) >= 20, "too few different states to go on from"
    assert writing >= 3, "too few were killed while they wrote"
    stages = {path.parent.name for state in left for path in state}
    assert {"pixels", "features", "graph", "matches", "priors", "weave", "result", "cloud"} <= stages
    assert commands.run("reconstruct", small / "images", "-o", out, *PARTS) == 0
    assert finished.items() <= pieces(out).items(), "a finished piece was made again"
    assert commands.run("reconstruct", small / "images", "-o", calm, *PARTS) == 0
    assert pieces(calm).keys() == pieces(out).keys()
    assert len(list(calm.glob("work/priors/chunk-*"))) == 3
    told = [json.loads((folder / "run.json").read_text())["stages"] for folder in (out, calm)]
    assert [stage["name"] for stage in told[0]] == [stage["name"] for stage in told[1]]
    for name in ("trajectory.tum", "points.ply", "colmap/sparse/0/points3D.bin", "transforms.json"):
        assert (out / name).read_bytes() == (calm / name).read_bytes(), name
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
    assert "same command" in said.splitlines()[-1] and str(tmp_path / "run") in said.splitlines()[-1]
    assert not (tmp_path / "run/run.json").exists() and not half_written(tmp_path / "run")

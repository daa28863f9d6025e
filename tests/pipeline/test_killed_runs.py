"""A run killed at any moment goes on by the same command and ends with the same bytes."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from small_sequence import OPTIONS, command, environment, geoweaver

pytestmark = pytest.mark.slow
KILLS = 20


def kill_group_after(seconds: float, arguments: list[str]) -> int:
    """Start a command as its own process group and kill all of it; its exit code if it was faster."""
    process = subprocess.Popen(
        arguments,
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        code = process.wait(seconds)
        assert code == 0, process.stderr and process.stderr.read()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()
    return code


def test_killed_at_twenty_random_moments(small: Path, finished: Path, tmp_path: Path) -> None:
    out, moments = tmp_path / "run", random.Random(5)
    arguments = command("reconstruct", small / "images", "-o", out, *OPTIONS)
    begun = time.monotonic()
    whole = kill_group_after(
        600, command("reconstruct", small / "images", "-o", tmp_path / "other", *OPTIONS)
    )
    took = time.monotonic() - begun
    killed = sum(kill_group_after(moments.uniform(0.05, 1.0) * took, arguments) != 0 for _ in range(KILLS))
    assert whole == 0 and killed >= 2
    assert geoweaver("reconstruct", small / "images", "-o", out, *OPTIONS).returncode == 0
    for name in ("trajectory.tum", "points.ply", "colmap/sparse/0/points3D.bin", "transforms.json"):
        assert (out / name).read_bytes() == (finished / name).read_bytes(), name
    assert not list(out.rglob(".*partial*"))


def test_a_second_process_refuses_politely(small: Path, tmp_path: Path) -> None:
    arguments = command("reconstruct", small / "images", "-o", tmp_path / "run", *OPTIONS)
    first = subprocess.Popen(arguments, env=environment(), start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        lock = tmp_path / "run/work/store.json"
        while not lock.exists():
            assert first.poll() is None
            time.sleep(0.05)
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

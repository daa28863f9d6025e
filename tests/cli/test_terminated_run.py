"""SIGTERM in the middle of a command that uses pycolmap and workers: one line, 143, nobody left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.living import alive, wait_for

PATIENCE = 120
"""Seconds: pycolmap is imported by everybody."""

PROGRAM = """
import sys
from types import SimpleNamespace
import geoweaver.cli.main as cli
sys.path.insert(0, sys.argv[1])

def run(options):
    import pycolmap, mapped_functions
    mapped_functions.sleep_long(sys.argv[2])

cli.import_module = lambda name: SimpleNamespace(Options=None, run=run)
cli.parse = lambda *arguments: None
sys.exit(cli.main(["reconstruct", "film.mp4"]))
"""
FUNCTIONS = Path(__file__).parents[1] / "engine"


@pytest.mark.parametrize("whole_group", [False, True])
def test_sigterm_ends_everybody_with_one_line(tmp_path, whole_group):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, FUNCTIONS, tmp_path],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2, PATIENCE)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert (
        err.startswith("geoweaver: terminated: go on from the last finished piece") and err.count("\n") == 1
    )
    wait_for(lambda: not any(alive(pid) for pid in workers), PATIENCE)

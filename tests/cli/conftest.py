"""`geoweaver evaluate` in this process, and two paths for it to compare."""

import json
import subprocess

import numpy as np
import pytest
from tum_walks import save, walk

from geoweaver.cli.main import main


@pytest.fixture
def evaluate(capfd):
    """The command in this process, which spares most tests the start of an interpreter."""

    def call(*arguments):
        code = main(["evaluate", *map(str, arguments)])
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return call


@pytest.fixture
def scores(evaluate):
    def call(*arguments):
        result = evaluate(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return call


@pytest.fixture
def reference(tmp_path):
    return save(tmp_path / "reference.tum", walk())


@pytest.fixture
def estimate(tmp_path):
    rows = walk()
    rows[:, 1:4] = 2 * rows[:, [3, 1, 2]] + np.random.default_rng(1).normal(size=(20, 3)) * 0.01 + 7
    return save(tmp_path / "estimate.tum", rows)

"""Compiled loops stay within their arrays: numba checks no bounds unless it is told to when it compiles."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_compiled_sums_write_nowhere_else(tmp_path: Path) -> None:
    tests = ("test_residuals.py::test_fused_agrees_with_reference", "test_bending.py")
    told = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / t) for t in tests)],
        env=told, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]

"""What happens to the worker processes: interrupts, killed owners, and scripts as users write them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.living import PATIENCE, alive, wait_for

FUNCTIONS = Path(__file__).with_name("mapped_functions.py")


@pytest.fixture
def sleepers(tmp_path):
    """A script whose two workers are in the middle of a piece, and their process ids."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import mapped_functions as f; f.sleep_long(sys.argv[2])"
    )
    script = subprocess.Popen(
        [sys.executable, "-c", code, FUNCTIONS.parent, tmp_path],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    workers = [int(p.name) for p in tmp_path.iterdir()]
    assert all(alive(pid) for pid in workers)
    yield script, workers
    script.kill()
    script.communicate()


def test_ctrl_c_ends_everybody(sleepers):
    script, workers = sleepers
    os.killpg(script.pid, signal.SIGINT)
    _, told = script.communicate(timeout=PATIENCE)
    assert script.returncode != 0
    assert told.count("KeyboardInterrupt") == 1, told
    wait_for(lambda: not any(alive(pid) for pid in workers))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_their_owner(sleepers, kind):
    script, workers = sleepers
    script.send_signal(kind)
    script.communicate(timeout=PATIENCE)
    wait_for(lambda: not any(alive(pid) for pid in workers))


def run(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=2 * PATIENCE)


def test_a_plain_script_needs_no_guard(tmp_path):
    """The six lines of a readme: workers must not run the script again."""
    done = run(
        tmp_path,
        "from math import sqrt\n"
        "from geoweaver.engine import map_pieces\n"
        "print('begun')\n"
        "print(list(map_pieces(sqrt, [1.0, 4.0, 9.0], 2)))\n",
    )
    assert done.stdout == "begun\n[1.0, 2.0, 3.0]\n", done.stderr


OWN = "from geoweaver.engine import map_pieces\ndef own(x):\n    return -x\n"


@pytest.mark.slow
def test_a_scripts_own_functions_with_a_guard(tmp_path):
    done = run(tmp_path, OWN + "if __name__ == '__main__':\n    print(list(map_pieces(own, [1, 2, 3], 2)))\n")
    assert done.stdout == "[-1, -2, -3]\n", done.stderr


@pytest.mark.slow
def test_a_scripts_own_functions_without_a_guard(tmp_path):
    done = run(tmp_path, OWN + "print(list(map_pieces(own, [1, 2, 3], 2)))\n")
    assert done.returncode != 0
    assert "needs `if __name__ == '__main__':`" in done.stderr

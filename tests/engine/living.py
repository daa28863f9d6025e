"""Waiting for other processes."""

import os
import time

PATIENCE = 60
"""Seconds before a test gives up; a good run needs few."""


def wait_for(condition, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

"""`geoweaver` for every line of stdin, forked from one process that has imported it: a start costs little."""

import json
import os
import sys
from multiprocessing import util

import geoweaver.pipeline  # noqa: F401
from geoweaver.cli.main import main


def forked(path: str, arguments: list[str], passed: list[int]) -> int:
    """The server that workers come from, and its like: forked too instead of importing everything again."""
    child = os.fork()
    if child == 0:
        for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
            if number > 2 and number not in passed:
                try:
                    os.close(number)
                except OSError:  # the one that listed them
                    continue
        exec(arguments[arguments.index("-c") + 1], {})
        os._exit(0)
    return child


if sys.platform == "linux":
    util.spawnv_passfds = forked
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(json.loads(line)))
    os.write(1, f"{child}\n".encode())
    os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())

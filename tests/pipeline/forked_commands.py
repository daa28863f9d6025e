"""`geoweaver` for every line of stdin, forked from one process that has imported it: a start costs little."""

import json
import os
import sys

import geoweaver.pipeline  # noqa: F401
from geoweaver.cli.main import main

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(json.loads(line)))
    os.write(1, f"{child}\n".encode())
    os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())

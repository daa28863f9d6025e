"""Store and engine together: a killed run goes on, repeats nothing finished, and ends with the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

RUN = """
import sys, time
from functools import partial
from pathlib import Path
import torch
from geoweaver.engine import map_pieces
from geoweaver.store import Store, artifact_key

def compute(piece, log):
    time.sleep(0.05)
    with log.open("a") as file:
        file.write(f"{piece}\\n")
    values = torch.randn(200, 300, generator=torch.Generator().manual_seed(piece))
    return {"gram": values @ values.T}, {"piece": piece}

def keep(piece, store, log):
    key = artifact_key("gram", 1, {"piece": piece})
    return store.cached("gram", f"p{piece:03}", key, lambda: compute(piece, log)).digest

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with Store.open(folder / "work") as store:
        digests = list(map_pieces(partial(keep, store=store, log=folder / "log"), range(24), 2))
        key = artifact_key("total", 1, {}, digests)
        total = store.cached("total", "all", key, lambda: ({}, {"of": digests}))
    print(total.digest)
"""


def start(script, folder):
    folder.mkdir(exist_ok=True)
    command = [sys.executable, script, folder]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def artifacts(folder):
    return {p.name: p.read_bytes() for p in (folder / "work").rglob("*.safetensors")}


@pytest.mark.slow
def test_a_killed_run_ends_like_an_undisturbed_one(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    expected, _ = start(script, calm).communicate(timeout=300)
    draw, kills = random.Random(7), 3
    for _ in range(kills):
        before = len(list(stormy.rglob("*.safetensors")))
        run = start(script, stormy)
        while run.poll() is None and len(list(stormy.rglob("*.safetensors"))) < before + 3:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.1))
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    found, _ = start(script, stormy).communicate(timeout=300)
    assert found == expected != ""
    assert artifacts(stormy) == artifacts(calm)
    computed = (stormy / "log").read_text().split()
    # Only what was under way in one of the two workers may have been lost.
    assert 24 <= len(computed) <= 24 + 2 * kills
    assert len((calm / "log").read_text().split()) == 24

"""What a part of a run took: its own seconds, its own memory, that of its workers too."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from geoweaver.clock import MIB, Clock
from geoweaver.engine import LocalEngine

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system has no /proc")
MUCH = 300


def hold(mib: int) -> int:
    """Take memory for a while and give it back."""
    block = np.ones(mib * MIB, np.uint8)
    time.sleep(1.0)
    return int(block[-1])


def peaks(clock: Clock) -> dict[str, float]:
    assert all(lap.peak_rss_mib is not None for lap in clock.laps)
    return {lap.name: lap.peak_rss_mib or 0.0 for lap in clock.laps}


def test_each_part_has_its_own_peak() -> None:
    with Clock() as clock:
        clock.lap("before")
        hold(MUCH)
        clock.lap("much")
        time.sleep(0.01)
        clock.lap("after")
    found = peaks(clock)
    assert found["much"] > found["before"] + 0.9 * MUCH
    assert found["after"] < found["much"] - 0.9 * MUCH
    assert [lap.name for lap in clock.laps] == ["before", "much", "after"]


PEAK = """
import numpy as np
from geoweaver.clock import MIB, Clock, resident
clock = Clock()
before = max(resident(), clock._high)
np.ones({much} * MIB, np.uint8)
clock.lap("short")
print(clock.laps[0].peak_rss_mib * MIB - before)
"""


def test_a_peak_between_two_looks_is_seen_in_the_system_s_own_count() -> None:
    """Without a watcher nobody looks; in a process of its own, whose earlier peak cannot hide it."""
    ran = subprocess.run(
        [sys.executable, "-c", PEAK.format(much=MUCH)], capture_output=True, text=True, check=True
    )
    assert float(ran.stdout) > 0.5 * MUCH * MIB


def test_memory_of_workers_counts() -> None:
    with Clock() as clock:
        list(LocalEngine(2).map(os.path.basename, ["a", "b"]))
        clock.lap("idle")
        list(LocalEngine(2).map(hold, [MUCH, MUCH]))
        clock.lap("busy")
    assert peaks(clock)["busy"] > peaks(clock)["idle"] + 0.8 * MUCH


def test_notes_and_seconds_stay_with_their_part() -> None:
    clock = Clock()
    clock.lap("one", ("a word",))
    assert clock.laps[0].notes == ("a word",) and 0 <= clock.laps[0].seconds <= clock.total()


def test_where_the_system_does_not_tell_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("geoweaver.clock._PROC", tmp_path)
    with Clock() as clock:
        clock.lap("blind")
    assert clock.laps[0].peak_rss_mib is None


def test_a_lap_is_told_in_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "geoweaver.clock"):
        Clock().lap("frames")
    assert caplog.messages[0].startswith("frames: done in 0.") and caplog.messages[0].endswith("of memory")

"""What a part of a run took: its own seconds, its own memory, that of its workers, in all its attempts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from geoweaver import clock as clock_module
from geoweaver.clock import MIB, Clock
from geoweaver.engine import LocalEngine
from geoweaver.store import Costs, forget_costs
from geoweaver.store.costs import COSTS, Cost

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
    clock.lap("one", notes=("a word",))
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


def test_a_part_that_was_done_keeps_what_it_took(tmp_path: Path) -> None:
    first = Costs(tmp_path, "settings")
    assert first.finish("matches", Cost(9.0, 700, 300)) == Cost(9.0, 700, 300)
    second = Costs(tmp_path, "settings")
    assert second.finish("matches", Cost(0.1, 20, 10)) == Cost(9.0, 700, 300), "it was only read"
    assert second.finish("priors", Cost(2.0, 30, 10)) == Cost(2.0, 30, 10)
    other = Costs(tmp_path, "other settings")
    assert other.finish("matches", Cost(0.1, 20, 10)).seconds == 9.0
    assert other.finish("other priors", Cost(4.0, 30, 10)).seconds == 4.0, "computed anew"
    forget_costs(tmp_path)
    assert Costs(tmp_path, "settings").finish("matches", Cost(1.0)).seconds == 1.0


def test_what_killed_sessions_did_of_a_part_counts(tmp_path: Path) -> None:
    for k in range(3):
        killed = Costs(tmp_path, "settings")
        killed.finish("frames", Cost(1.0))
        for seconds in (2.0, 5.0):
            # of the same attempt: the later word holds
            killed.note(Cost(seconds, 100 * (3 - k), 7))
    changed = Costs(tmp_path, "other settings")
    assert changed.finish("frames", Cost(1.0)).seconds == 1.0
    assert changed.finish("matches of others", Cost(1.0)).seconds == 1.0
    last = Costs(tmp_path, "settings")
    assert last.finish("frames", Cost(0.1)).seconds == 1.0
    assert last.finish("matches", Cost(0.5, 50, 70)) == Cost(15.5, 300, 70)
    assert last.finish("priors", Cost(0.5)).seconds == 0.5


@pytest.mark.parametrize("text", ["", "[]", '{"done": {}}', '{"done": {"a": [1]}, "begun": {}}',
                                  '{"done": {"a": [NaN, 0, 0]}, "begun": {}}'])  # fmt: skip
def test_costs_that_cannot_be_read_are_not_known(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / COSTS).write_text(text)
    assert Costs(tmp_path, "").finish("a", Cost(3.0)).seconds == 3.0
    assert str(tmp_path / COSTS) in caplog.text


def test_a_clock_goes_on_where_a_killed_one_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "NOTE_SECONDS", 0.05)
    monkeypatch.setattr(clock_module, "SAMPLE_SECONDS", 0.01)

    def attempt(*parts: tuple[str, float], killed: bool) -> Clock:
        with Clock() as clock, clock.kept_in(Costs(tmp_path, "settings")):
            for name, seconds in parts:
                time.sleep(seconds)
                clock.lap(name, name)
            if killed:
                time.sleep(0.4)
                # what a kill leaves: only what was noted on the way
                clock._costs = None
        return clock

    attempt(("frames", 0.2), killed=True)
    clock = attempt(("frames", 0.0), ("matches", 0.01), killed=False)
    frames, matches = clock.laps
    assert frames.seconds >= 0.2 and matches.seconds > 0.2, "noted at least once in its 0.4 seconds"
    assert clock.total() == frames.seconds + matches.seconds and clock.largest() > MIB
    again = attempt(("frames", 0.0), ("matches", 0.0), killed=False)
    assert again.laps == clock.laps


def test_a_clock_that_is_interrupted_has_noted_all(tmp_path: Path) -> None:
    clock = Clock()
    with pytest.raises(KeyboardInterrupt), clock.kept_in(Costs(tmp_path, "")):
        time.sleep(0.05)
        raise KeyboardInterrupt
    assert Costs(tmp_path, "").finish("frames", Cost()).seconds >= 0.05

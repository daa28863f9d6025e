"""Progress is for people at a terminal."""

import os
import pty
import sys
from contextlib import suppress

import mapped_functions as f
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.engine import map_pieces, stage_progress
from geoweaver.engine.progress import Pace, clock, rate


class Terminal:
    """A pseudo-terminal in the place of stderr, read back as text."""

    def __init__(self):
        self.reader, writer = pty.openpty()
        os.set_blocking(self.reader, False)
        self.stream = os.fdopen(writer, "w")

    def text(self):
        self.stream.flush()
        parts = []
        with suppress(BlockingIOError):
            while True:
                parts.append(os.read(self.reader, 4096))
        return b"".join(parts).decode()


def test_silent_when_piped(capfd):
    assert list(map_pieces(f.square, range(3), 1, title="matching")) == [0, 1, 4]
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.stream.close()
    os.close(terminal.reader)


def sit_down(terminal, monkeypatch):
    """Only inside a test: the test runner puts its own stderr back before each."""
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    monkeypatch.setenv("TERM", "xterm")


def test_a_line_on_a_terminal(terminal, monkeypatch):
    sit_down(terminal, monkeypatch)
    list(map_pieces(f.square, range(7), 1, title="matching"))
    told = terminal.text()
    assert "matching" in told
    assert "7/7" in told


def test_a_map_inside_a_stage_stays_silent(terminal, monkeypatch):
    sit_down(terminal, monkeypatch)
    with stage_progress("outer", 2) as advance:
        list(map_pieces(f.square, range(3), 1, title="inner"))
        advance(2)
    told = terminal.text()
    assert "outer" in told
    assert "inner" not in told
    list(map_pieces(f.square, range(3), 1, title="later"))
    assert "later" in terminal.text()


def test_what_nobody_can_count_shows_that_it_lives(terminal, monkeypatch):
    sit_down(terminal, monkeypatch)
    with stage_progress("weave", None):
        pass
    told = terminal.text()
    assert "weave" in told and "so far" in told and "0/" not in told


def test_nothing_to_do_is_no_line(terminal, monkeypatch):
    sit_down(terminal, monkeypatch)
    with stage_progress("frames", 0):
        pass
    assert terminal.text() == ""


def test_two_pieces_at_the_same_moment_are_not_a_speed():
    pace = Pace(100.0)
    assert pace.per_second(103.0) is None and pace.seconds_left(5, 103.0) is None
    pace.add(1, 103.0)
    pace.add(1, 103.00002)
    assert pace.per_second(103.0001) == pytest.approx(2 / 3, rel=1e-3)
    assert pace.seconds_left(5, 103.0001) == pytest.approx(4.5, rel=1e-3)
    assert pace.seconds_left(None, 103.0001) is None


def test_pieces_that_were_kept_do_not_make_the_others_fast():
    pace = Pace(0.0)
    pace.add(900, 0.1)
    for k in range(1, 7):
        pace.add(1, 10.0 * k)
    assert pace.per_second(61.0) == pytest.approx(0.1, rel=0.1)
    assert pace.seconds_left(1000, 61.0) == pytest.approx(940, rel=0.1)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=40), st.floats(0, 100))
def test_no_more_comes_in_a_second_than_came_at_all(steps, wait):
    pace, now = Pace(0.0), 0.0
    for seconds, pieces in steps:
        now += seconds
        pace.add(pieces, now)
    speed, seen = pace.per_second(now + wait), min(now + wait, 30)
    assert speed is None or speed * seen <= 1.0001 * sum(pieces for _, pieces in steps)


@pytest.mark.parametrize(("speed", "words"), [(None, ""), (0, ""), (12.34, "12.3/s"), (0.25, "4.0 s each")])
def test_rates_as_people_say_them(speed, words):
    assert rate(speed) == words


@pytest.mark.parametrize(
    ("elapsed", "remaining", "words"),
    [
        (None, None, "0:00 so far"),
        (83.9, None, "1:23 so far"),
        (83, 7, "0:07 left"),
        (1, 7325, "2:02:05 left"),
    ],
)
def test_a_bar_without_an_estimate_still_counts(elapsed, remaining, words):
    assert clock(elapsed, remaining) == words

"""Progress is for people at a terminal."""

import os
import pty
import sys
from contextlib import suppress

import mapped_functions as f
import pytest

from geoweaver.engine import map_pieces, stage_progress
from geoweaver.engine.progress import clock, rate


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

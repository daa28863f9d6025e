"""How to add an optional part: a command that works where it is read."""

import sys
from pathlib import Path

import pytest

from geoweaver import errors
from geoweaver.cli.doctor import _feature
from geoweaver.errors import MissingExtraError, how_to_install

CLONE = Path(__file__).resolve().parents[2]


def test_in_a_clone_the_clone_itself_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(CLONE / ".venv/bin/python"))
    monkeypatch.chdir(CLONE)
    assert how_to_install("rerun") == ".venv/bin/python -m pip install -e '.[rerun]'"
    monkeypatch.chdir(tmp_path)
    assert how_to_install("rerun") == f"{CLONE}/.venv/bin/python -m pip install -e '{CLONE}[rerun]'"


def test_without_a_clone_the_package_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(errors, "_CLONE", tmp_path)
    assert how_to_install("rerun").endswith("-m pip install 'geoweaver[rerun]'")


def test_doctor_and_errors_say_the_same() -> None:
    assert _feature("no-such-package", "ray")["mend"] == how_to_install("ray")
    assert how_to_install("ray") in str(MissingExtraError("ray", "ray", "a cluster"))

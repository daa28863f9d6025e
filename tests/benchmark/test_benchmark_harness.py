"""Results of benchmarks: every row keeps what made it, whatever is measured beside it later."""

import sys
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.harness import MADE, print_table, saved_rows, write_results


def test_rows_keep_what_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "fox", "--out", "/somewhere"])
    write_results("sequences", [{"sequence": "fox", "ate": 1.0}], tmp_path)
    monkeypatch.setattr(sys, "argv", ["x", "street"])
    monkeypatch.setattr(harness, "BEGUN", "2027-01-01T00:00:00+00:00")
    old = saved_rows("sequences", tmp_path)
    write_results("sequences", [*old, {"sequence": "street", "ate": 2.0}], tmp_path)
    first, second = saved_rows("sequences", tmp_path)
    assert first[MADE][1] == "python -m benchmarks.sequences fox" and first[MADE][0] < second[MADE][0]
    assert second[MADE] == ["2027-01-01T00:00:00+00:00", "python -m benchmarks.sequences street"]
    print_table([first, second])
    assert MADE not in capsys.readouterr().out

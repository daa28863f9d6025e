"""What every benchmark shares: the machine it ran on, the JSON it leaves, the table it prints."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from geoweaver.benchmark.machine import machine

RESULTS = Path(__file__).parent / "results"
BEGUN = datetime.now(UTC).isoformat(timespec="seconds")
MADE = "made"
"""Key of a row's date and command."""


def write_results(name: str, rows: Sequence[Mapping[str, Any]], folder: Path = RESULTS, **more: Any) -> Path:
    """Write NAME.json: the command, the date, the machine, the rows, and whatever sums them up.

    Every row says what made it and when: rows of an earlier run keep what they said.
    """
    command = shlex.join(["python", "-m", f"benchmarks.{name}", *_told(sys.argv[1:])])
    head = {"command": command, "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    document = {**head, **more, "rows": [{**row, MADE: row.get(MADE, [BEGUN, command])} for row in rows]}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _told(words: Sequence[str]) -> list[str]:
    """The options that a result depends on: not where on one machine the runs were kept."""
    kept = [k for k, word in enumerate(words) if word != "--out" and (k == 0 or words[k - 1] != "--out")]
    return [words[k] for k in kept]


def saved_rows(name: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Rows of an earlier run, so that a stopped benchmark goes on."""
    path = folder / f"{name}.json"
    if not path.exists():
        return []
    document = json.loads(path.read_text())
    return [{MADE: [document["date"], document["command"]], **row} for row in document["rows"]]


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """One line per row under the first row's keys."""
    if not rows:
        return
    heads = [head for head in rows[0] if head != MADE]
    cells = [[_cell(row.get(head, "")) for head in heads] for row in rows]
    widths = [max(len(head), *(len(line[i]) for line in cells)) for i, head in enumerate(heads)]
    for line in [heads, *cells]:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

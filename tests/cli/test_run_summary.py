"""What a finished run tells its user: stages under the names that the progress has, and what to open."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import geoweaver
from geoweaver.cli.reconstruct import _summarise

SOURCE = Path(geoweaver.__file__).parent
FOLDERS = ("frames", "features", "graph", "matching", "priors")


def test_progress_names_the_stage_that_run_json_has() -> None:
    stages = {
        name
        for file in SOURCE.glob("*.py")
        # a later turn's name has its number before it
        for name in re.findall(r'clock\.lap\(f?"(?:\{\w+\})?([^"]+)"', file.read_text())
    }
    files = [*SOURCE.glob("*.py"), *(file for folder in FOLDERS for file in (SOURCE / folder).glob("*.py"))]
    written = r'\b(?:title=|stage_progress\()"([^"]+)"'
    titles = {title for file in files for title in re.findall(written, file.read_text())}
    assert {"frames", "graph", "matches", "priors"} <= stages and len(titles) > 4
    assert {title.partition(":")[0] for title in titles} <= stages
    # the longest stages too, though they have no pieces to count
    assert {"weave", "polish", "exports"} <= titles


def test_the_summary_says_what_to_look_at(tmp_path: Path, capsys) -> None:
    stage = {"name": "frames", "seconds": 1.0, "peak_rss_mib": 3.0, "iterations": 0, "median_px": None}
    summary = {
        "stages": [stage],
        "frames": {"total": 3, "keyframes": 3, "trusted": 2},
        "partial": True,
        "warnings": [],
        "peak_rss_bytes": 1e9,
        "seconds_total": 2.0,
    }
    (tmp_path / "run.json").write_text(json.dumps(summary))
    result = SimpleNamespace(reports=(), reason={1: "blur"}, names=("a", "b", "c"))
    _summarise(tmp_path, result)
    bare = capsys.readouterr().out
    assert bare.split()[0] == "stage" and "1 frames are not trusted" in bare and "b: blur" in bare
    assert "report.html" not in bare, "there is none"
    lost = {"frames": {**summary["frames"], "trusted": 3}, "warnings": ["the last 2 of 5 [frames]"]}
    (tmp_path / "run.json").write_text(json.dumps({**summary, **lost}))
    _summarise(tmp_path, result)
    said = capsys.readouterr().out
    assert "PARTIAL" in said and "WARNING: the last 2 of 5 [frames]" in said
    (tmp_path / "report.html").write_text("")
    _summarise(tmp_path, result)
    assert f"look at it: {tmp_path.resolve()}/report.html" in capsys.readouterr().out

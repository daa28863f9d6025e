"""What a finished run leaves for eyes and other programs: cloud, exports, report; run.json comes last."""

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from geoweaver.engine import Engine, stage_progress
from geoweaver.export.run_exports import write_exports
from geoweaver.export.run_folder import RunRecord, run_json, write_run
from geoweaver.export.run_outputs import expected_outputs, remove_outputs
from geoweaver.finished import SavedRun, open_saved
from geoweaver.formats.files import is_file, is_folder, place
from geoweaver.formats.json_document import read_json
from geoweaver.formats.ply import PlyCloud, write_ply
from geoweaver.formats.run_folder import EXPECTED
from geoweaver.fusion import FusionConfig, fuse_cloud
from geoweaver.results import FinishedRun
from geoweaver.store import Store, artifact_key, cached_noun
from geoweaver.viewer.report import write_report

Outputs = Literal["all", "cameras"]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OutputConfig:
    """What is written beside run.json and trajectory.tum."""

    write: Outputs = "all"
    """all: cloud, COLMAP, nerfstudio, depth and report; cameras: nothing more."""
    fusion: FusionConfig = field(default_factory=FusionConfig)


def write_outputs(
    out: Path, record: RunRecord[SavedRun], config: OutputConfig, store: Store, engine: Engine
) -> None:
    """All files of a run folder, run.json last; what an earlier run left stays if its result is the same."""
    summary = run_json(record)
    run = open_saved(out, record.saved, store, summary)
    if not _belongs(out, summary):
        forget_outputs(out)
    complete = all((out / name).exists() for name in expected_outputs(run))
    if config.write == "all":
        _write_all(out, None if complete else run, record, config.fusion, store, engine)
    write_run(out, record)


def _write_all(
    out: Path, run: FinishedRun | None, record: RunRecord[SavedRun], config: FusionConfig, store: Store,
    engine: Engine,
) -> None:  # fmt: skip
    """Cloud, exports and report; where all are there already, what they once took is told all the same."""
    made = [record.key, config]
    if run is not None:
        cloud = _cloud(run, record.key, config, store, engine)
        write_ply(out / "points.ply", cloud)
    record.clock.lap("cloud", made)
    if run is not None:
        with stage_progress("exports", None):
            write_exports(run, out, cloud)
    record.clock.lap("exports", made)
    if run is not None:
        write_report(replace(run, summary=run_json(record)), out / "report.html", cloud)
    record.clock.lap("report", made)


def _cloud(run: FinishedRun, key: str, config: FusionConfig, store: Store, engine: Engine) -> PlyCloud:
    key = artifact_key("cloud", config.version, config, [key])
    compute = lambda: fuse_cloud(run.frames, run.result, run.depths, config, engine, run.graph)  # noqa: E731
    return cached_noun(store, PlyCloud, "cloud", "points", key, compute)[0]


def _belongs(out: Path, summary: dict[str, Any]) -> bool:
    """Whether what the folder holds was made from this very result: run.json is written after all of it."""
    if not is_file(out / "run.json"):
        return False
    earlier = read_json(out / "run.json", EXPECTED)
    same = all(earlier.get(name) == summary[name] for name in ("version", "result", "names"))
    return same and _fusion(earlier) == _fusion(summary)


def _fusion(summary: dict[str, Any]) -> Any:
    return summary.get("config", {}).get("outputs", {}).get("fusion")


def forget_outputs(out: Path) -> None:
    """Nothing of an earlier result beside the new run.json."""
    gone = remove_outputs(out)
    if gone:
        log.info("removed what an earlier result left: %s", ", ".join(gone))
    if is_folder(out / "exports"):
        log.warning("%s holds exports of an earlier result: export again", place(out / "exports"))

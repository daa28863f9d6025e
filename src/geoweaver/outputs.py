"""What a finished run leaves for eyes and other programs: cloud, exports, report; run.json comes last."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from geoweaver.engine import Engine
from geoweaver.export.run_exports import write_exports
from geoweaver.export.run_folder import RunRecord, run_json, write_run
from geoweaver.finished import SavedRun, open_saved
from geoweaver.formats.files import is_file
from geoweaver.formats.json_document import read_json
from geoweaver.formats.ply import PlyCloud, write_ply
from geoweaver.formats.run_folder import EXPECTED
from geoweaver.fusion import VERSION as FUSION_VERSION
from geoweaver.fusion import FusionConfig, fuse_cloud
from geoweaver.results import FinishedRun
from geoweaver.store import Store, artifact_key, cached_noun
from geoweaver.viewer.report import write_report

Outputs = Literal["all", "cameras"]


@dataclass(frozen=True)
class OutputConfig:
    """What is written beside run.json and trajectory.tum."""

    write: Outputs = "all"
    """all: cloud, COLMAP, nerfstudio, depth and report; cameras: nothing more."""
    fusion: FusionConfig = field(default_factory=FusionConfig)


def write_outputs(
    out: Path, record: RunRecord[SavedRun], config: OutputConfig, store: Store, engine: Engine
) -> None:
    """All files of a run folder, run.json last; what an earlier run with the same result left stays."""
    summary = run_json(record)
    run = open_saved(out, record.saved, store, summary)
    if config.write == "all" and not _written(out, summary, config):
        cloud = _cloud(run, record.key, config.fusion, store, engine)
        write_ply(out / "points.ply", cloud)
        record.clock.lap("cloud")
        write_exports(run, out, cloud)
        record.clock.lap("exports")
        write_report(replace(run, summary=run_json(record)), out / "report.html", cloud)
    write_run(out, record)


def _cloud(run: FinishedRun, key: str, config: FusionConfig, store: Store, engine: Engine) -> PlyCloud:
    key = artifact_key("cloud", FUSION_VERSION, config, [key])
    compute = lambda: fuse_cloud(run.frames, run.result, run.depths, config, engine, run.graph)  # noqa: E731
    return cached_noun(store, PlyCloud, "cloud", "points", key, compute)[0]


def _written(out: Path, summary: dict[str, Any], config: OutputConfig) -> bool:
    """Whether the folder holds these very outputs already: run.json is written after all of them."""
    if not is_file(out / "run.json"):
        return False
    earlier = read_json(out / "run.json", EXPECTED)
    same = all(earlier.get(name) == summary[name] for name in ("version", "result", "names"))
    asked = earlier.get("config", {}).get("outputs") == summary["config"]["outputs"]
    return same and asked and all((out / name).exists() for name in ("points.ply", "report.html", "depth"))

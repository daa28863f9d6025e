"""The loop over scenes: every method's rows, kept after each scene so that nothing is lost at an end."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from geoweaver.benchmark.colmap import colmap_row
from geoweaver.benchmark.machine import machine
from geoweaver.benchmark.plan import OWN, Plan
from geoweaver.benchmark.scene import Found, Scene
from geoweaver.benchmark.scoring import Row, failed_row
from geoweaver.benchmark.tables import as_markdown
from geoweaver.benchmark.weaving import own_rows, scene_config
from geoweaver.errors import ConfigError, GeoWeaverError, MissingExtraError
from geoweaver.formats.files import write_text
from geoweaver.formats.json_document import write_json

RESULTS, TABLE = "results.json", "results.md"
log = logging.getLogger(__name__)


def run_benchmark(scenes: Found, out: Path, plan: Plan) -> list[Row]:
    """Rows of all scenes, each written into OUT as soon as it is known."""
    rows: list[Row] = []
    for count, (name, scene) in enumerate(scenes.items(), 1):
        log.info("scene %d of %d: %s", count, len(scenes), name)
        if isinstance(scene, Scene):
            rows += _scene_rows(scene, out / name, plan)
        else:
            rows.append({"scene": name, "method": None, "status": "not found", "reason": scene})
        write_results(out, rows, plan, tuple(scenes))
    return rows


def _scene_rows(scene: Scene, folder: Path, plan: Plan) -> list[Row]:
    own = tuple(method for method in OWN if method in plan.methods)
    rows: list[Row] = []
    if own:
        rows += _or_reasons(scene, own, lambda: own_rows(scene, folder, plan, own))
    if "colmap" in plan.methods:
        rows += _or_reasons(scene, ("colmap",), lambda: [_colmap(scene, folder, plan)])
    return rows


def _colmap(scene: Scene, folder: Path, plan: Plan) -> Row:
    options = scene_config(plan.config, scene, folder).frames
    return colmap_row(scene, folder / "peers" / "colmap", options, plan.max_time_diff)


def _or_reasons(scene: Scene, methods: tuple[str, ...], compute: Callable[[], list[Row]]) -> list[Row]:
    """Rows, or why there are none; options that no scene can work with end the whole."""
    try:
        return compute()
    except (ConfigError, MissingExtraError):
        raise
    except GeoWeaverError as error:
        rows = [failed_row(scene, method, error) for method in methods]
        log.warning("%s failed: %s", scene.name, rows[0]["reason"])
        return rows


def write_results(out: Path, rows: list[Row], plan: Plan, scenes: tuple[str, ...]) -> None:
    """results.json for programs, results.md for people."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    head = {"command": plan.command, "date": date, "suite": plan.suite, "machine": machine()}
    write_json(out / RESULTS, {**head, "rows": rows})
    write_text(out / TABLE, as_markdown(plan.suite, rows, scenes, plan.methods))

"""The report: one HTML file that shows a finished run, opens from disk and asks the network for nothing."""

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from geoweaver.formats.files import is_file, writing
from geoweaver.formats.ply import PlyCloud, read_ply
from geoweaver.results import FinishedRun
from geoweaver.viewer import report_sections as sections
from geoweaver.viewer import report_tables as tables
from geoweaver.viewer import report_views as views
from geoweaver.viewer.report_charts import Chart, convergence_chart, depth_charts, residual_charts
from geoweaver.viewer.report_cloud import report_cloud
from geoweaver.viewer.report_html import Html, join, json_script, tag
from geoweaver.viewer.report_pictures import chosen_frames, picture_strip
from geoweaver.viewer.report_scene import scene_data

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""The browser itself refuses whatever would leave the file."""


def write_report(
    run: FinishedRun,
    path: Path,
    cloud: PlyCloud | None = None,
    scores: Mapping[str, float | int] | None = None,
    reference: Float[Tensor, "n 3"] | None = None,
) -> None:
    """Write the report of a run; `reference` are true camera centres in the run's world."""
    if cloud is None and is_file(run.folder / "points.ply"):
        cloud = read_ply(run.folder / "points.ply")
    page = report_page(run, cloud, scores, reference)
    with writing(path) as file:
        file.write(page.encode("utf-8", errors="replace"))


def report_page(
    run: FinishedRun,
    cloud: PlyCloud | None = None,
    scores: Mapping[str, float | int] | None = None,
    reference: Float[Tensor, "n 3"] | None = None,
) -> str:
    """The whole file as text."""
    frames = chosen_frames(run)
    strips = [strip for strip in (picture_strip(run, f) for f in frames) if strip is not None]
    thinned = report_cloud(run, cloud, frames)
    converged, residuals, depths = convergence_chart(run), residual_charts(run), depth_charts(run)
    body = [
        sections.header(run),
        views.map_section(len(thinned), thinned.found, cloud is None or not len(cloud)),
        sections.path_section(run, reference is not None),
        sections.trust_section(run),
        *([tables.scores_section(scores)] if scores else []),
        *_chart_sections(converged, residuals, depths),
        sections.graph_section(run),
        views.pictures_section(run, strips),
        tables.timing_section(run),
        tables.settings_section(run),
    ]
    every = [*([converged] if converged else []), *residuals, *depths]
    data = scene_data(run, thinned, [s.frame for s in strips], reference)
    data["charts"] = {chart.name: chart.spec for chart in every}
    there = {"scores": bool(scores), "residuals": bool(residuals), "depth": bool(depths)}
    return _document(run, body, json_script("data", data), there)


def _chart_sections(converged: Chart | None, residuals: list[Chart], depths: list[Chart]) -> list[Html]:
    """Sections of charts that have something to show."""
    parts = []
    if converged:
        intro = (
            "What each stage minimises, from its first to its last iteration; a stage's objective is its own."
        )
        parts.append(sections.section("convergence", "Convergence", intro, sections.charts([converged])))
    if residuals:
        intro = (
            "By how much a sample of the matches misses after each stage: further left and higher is better."
        )
        parts.append(
            sections.section("residuals", "Residuals, before and after", intro, sections.charts(residuals))
        )
    if depths:
        intro = "How each frame's depth was stretched (a) and moved (b) on top of its chunk's scale; "
        intro += "dashed lines are chunk borders."
        parts.append(sections.section("depth", "Depth corrections", intro, sections.charts(depths)))
    return parts


def _document(run: FinishedRun, body: list[Html], data: Html, there: Mapping[str, bool]) -> str:
    """`there` tells of sections that a run may lack."""
    every = ("map", "path", "trust", "scores", "residuals", "depth", "graph", "frames", "time", "settings")
    names = [(name, name.capitalize()) for name in every if there.get(name, True)]
    title = f"{run.folder.resolve().name} · GeoWeaver"
    head = [
        tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"), tag("title", title),
        Html(f"<style>{_asset('report.css')}</style>"),
    ]  # fmt: skip
    scripts = [
        Html(f"<script>{_asset(name)}</script>") for name in ("page.js", "charts.js", "plan.js", "scene.js")
    ]
    skip = tag("a", "Skip to the report", href="#top", class_="skip")
    main = tag("main", *body, id="top")
    foot = tag(
        "footer",
        tag(
            "p",
            "Made by GeoWeaver. This file is complete: it works offline and asks the network for nothing.",
        ),
    )
    return "<!doctype html>\n" + tag(
        "html",
        tag("head", *head),
        tag("body", skip, sections.navigation(names), main, foot, data, join(*scripts)),
        lang="en",
    )


@lru_cache
def _asset(name: str) -> str:
    """A hand-written style sheet or script of the page."""
    return (resources.files("geoweaver.viewer") / "assets" / name).read_text(encoding="utf-8")

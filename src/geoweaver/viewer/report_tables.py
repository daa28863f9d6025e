"""The report's tables as HTML: scores, time and memory, settings."""

from collections.abc import Mapping
from typing import Any

from geoweaver.results import FinishedRun
from geoweaver.viewer.report_html import Html, tag
from geoweaver.viewer.report_sections import section
from geoweaver.viewer.report_words import counted, duration, size

_SCORES = {
    "ate": ("ATE", "RMSE of the camera centres after one similarity, in the reference's units"),
    "rre_deg": ("RRE", "mean rotation error in degrees"),
    "auc3": ("AUC@3", "pairwise pose accuracy within 3 degrees, percent"),
    "auc5": ("AUC@5", "the same within 5 degrees"),
    "auc30": ("AUC@30", "the same within 30 degrees"),
    "scale": ("scale", "reference units per unit of this run"),
    "frames": ("frames", "of the reference"),
    "matched": ("matched", "of them, found in this run"),
}


def scores_section(scores: Mapping[str, float | int]) -> Html:
    """How far from the reference."""
    known = [key for key in _SCORES if key in scores]
    rows = [_score_row(key, scores[key]) for key in [*known, *(k for k in scores if k not in _SCORES)]]
    table = tag("div", tag("table", tag("tbody", *rows)), class_="panel scroll")
    return section("scores", "Scores", "Against the reference that was given, after one similarity.", table)


def _score_row(key: str, value: float | int) -> Html:
    name, words = _SCORES.get(key, (key, ""))
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return tag("tr", tag("th", name, scope="row"), tag("td", shown, class_="number"), tag("td", words))


def timing_section(run: FinishedRun) -> Html:
    """Seconds and memory of every stage."""
    stages: list[dict[str, Any]] = run.summary.get("stages", [])
    longest = max((float(s.get("seconds") or 0) for s in stages), default=0) or 1.0
    memory = any(s.get("peak_rss_mib") for s in stages)
    heads = [
        "Stage",
        "Time",
        "",
        "Iterations",
        "Median error",
        *(["Memory"] if memory else []),
        "Why it stopped",
    ]
    # the weave's own stages are part of its time
    inner = {r.name for r in run.result.reports} if "weave" in {s.get("name") for s in stages} else set()
    rows = [
        tag("tr", *_timing_cells(s, longest, memory), class_="inner" if s.get("name") in inner else None)
        for s in stages
    ]
    head = tag("thead", tag("tr", *(tag("th", h, scope="col") for h in heads)))
    table = tag("table", head, tag("tbody", *rows), class_="timing")
    peak = run.summary.get("peak_rss_bytes")
    intro = f"{duration(float(run.summary.get('seconds_total', 0)))} in all"
    intro += f", {size(peak)} of memory at the peak of the largest process." if peak else "."
    intro += " A stage's memory is what the process and its workers held together." if memory else ""
    return section("time", "Time and memory", intro, tag("div", table, class_="panel scroll"))


def _timing_cells(stage: dict[str, Any], longest: float, with_memory: bool) -> list[Html]:
    seconds = float(stage.get("seconds") or 0)
    error, memory = stage.get("median_px"), stage.get("peak_rss_mib")
    bar = tag("span", class_="bar", style=f"width:{100 * seconds / longest:.1f}%")
    return [
        tag("th", str(stage.get("name", "")), scope="row"),
        tag("td", duration(seconds), class_="number"),
        tag("td", bar, class_="bars", aria_hidden="true"),
        tag("td", f"{stage['iterations']:,}" if stage.get("iterations") else "–", class_="number"),
        tag("td", f"{error:.3g} px" if error is not None else "–", class_="number"),
        *([tag("td", f"{memory:,.0f} MiB" if memory else "–", class_="number")] if with_memory else []),
        tag("td", str(stage.get("why_stopped", ""))),
    ]


def settings_section(run: FinishedRun) -> Html:
    """The resolved settings, one row each."""
    rows = [
        tag("tr", tag("th", key, scope="row"), tag("td", value))
        for key, value in _flattened("", run.summary.get("config", {}))
    ]
    table = tag(
        "details",
        tag("summary", counted(len(rows), "setting")),
        tag("div", tag("table", tag("tbody", *rows), class_="settings"), class_="scroll"),
    )
    version = str(run.summary.get("version", ""))
    return section(
        "settings",
        "Settings",
        f"As resolved for this run by GeoWeaver {version}.",
        tag("div", table, class_="panel pad"),
    )


def _flattened(prefix: str, value: Any) -> list[tuple[str, str]]:
    """weave.sampling.max_per_pair: 2000."""
    if isinstance(value, dict) and value:
        return [
            row
            for key, inner in value.items()
            for row in _flattened(f"{prefix}.{key}" if prefix else str(key), inner)
        ]
    return [(prefix, "–" if value is None else str(value))] if prefix else []

"""The report's sections as HTML; everything that comes from the run is escaped by `tag`."""

import math
from collections.abc import Sequence
from pathlib import PurePath

import torch

from geoweaver.results import FinishedRun
from geoweaver.viewer.figures_data import long_range, median_error
from geoweaver.viewer.report_charts import Chart
from geoweaver.viewer.report_html import Html, check, tag
from geoweaver.viewer.report_words import counted, doubts, duration, number, ranges, story


def section(name: str, title: str, intro: str, *children: Html) -> Html:
    """A titled part of the page that links can point at."""
    head = tag("div", tag("h2", title, id=f"{name}-title"), tag("p", intro), class_="section-head")
    return tag("section", head, *children, id=name, aria_labelledby=f"{name}-title")


def header(run: FinishedRun) -> Html:
    """Name, the run in words, the key numbers."""
    return tag(
        "header",
        tag("p", _source(run), class_="eyebrow"),
        tag("h1", run.folder.resolve().name or str(run.folder)),
        tag("p", " ".join(story(run)), class_="lede"),
        tag(
            "dl",
            *(
                tag("div", tag("dt", label), tag("dd", value), tag("dd", note, class_="note"))
                for label, value, note in _key_numbers(run)
            ),
            class_="tiles",
        ),
    )


def _source(run: FinishedRun) -> str:
    """A run's folder is often just called `out`: what was filmed says more."""
    name = PurePath(str(run.summary.get("input", ""))).name
    return f"GeoWeaver reconstruction of {name}" if name else "GeoWeaver reconstruction"


def _key_numbers(run: FinishedRun) -> list[tuple[str, str, str]]:
    result, far = run.result, long_range(run)
    trusted, total = int(result.trusted.sum()), len(result)
    error = median_error(run.views[-1].pixel_error) if run.views else float("nan")
    first = median_error(run.views[0].pixel_error) if run.views else float("nan")
    believed = int((far & ~run.rejected).sum())
    seconds = float(run.summary.get("seconds_total", 0))
    return [
        ("Frames", f"{total:,}", counted(int(run.frames.keyframe.sum()), "keyframe")),
        ("Trusted", f"{100 * trusted / max(total, 1):.0f} %", f"{trusted:,} of {total:,} cameras"),
        _error_tile(error, first),
        (
            "Chunks",
            f"{len({c for c in run.chunk.tolist() if c >= 0}):,}",
            f"{len(run.graph):,} pairs of frames",
        ),
        ("Loops", f"{believed:,}", f"of {int(far.sum()):,} long-range pairs"),
        ("Time", duration(seconds), f"{duration(seconds / max(total, 1))} a frame, this report not counted"),
    ]


def _error_tile(error: float, first: float) -> tuple[str, str, str]:
    if not math.isfinite(error):
        return "Median error", "–", "no match has depth"
    return "Median error", f"{number(error)} px", f"of all matches; after Stage 1 {number(first)}"


def path_section(run: FinishedRun, reference: bool) -> Html:
    """The way from above."""
    far = long_range(run)
    words = (
        f"The way from above: {counted(int(run.result.trusted.sum()), 'trusted camera')}, "
        f"{counted(int((~run.result.trusted).sum()), 'camera')} not trusted, "
        f"{counted(int((far & ~run.rejected).sum()), 'long-range pair')} "
        f"believed, {int((far & run.rejected).sum())} rejected."
    )
    checks = [
        check("plan-accepted", "Believed pairs"),
        check("plan-rejected", "Rejected pairs"),
        check("plan-borders", "Chunk borders"),
        check("plan-stages", "Earlier stages", False),
    ]
    if reference:
        checks.append(check("plan-reference", "Reference"))
    bar = tag("div", *checks, class_="toolbar", role="group", aria_label="What the plan shows")
    figure = tag(
        "div",
        bar,
        tag("div", id="plan", class_="plan", role="img", aria_label=words),
        tag("div", id="plan-legend", class_="legend"),
        class_="panel",
    )
    return section(
        "path",
        "The path from above",
        "Looking down along the direction that the cameras hold for up. Click to pick a frame.",
        figure,
    )


def trust_section(run: FinishedRun) -> Html:
    """What was not trusted and why, in words."""
    lines = [
        tag(
            "li",
            tag("strong", counted(len(d.frames), "frame")),
            tag("span", d.reason),
            tag(
                "span",
                "Frames " + ranges(d.frames) if len(d.frames) > 1 else f"Frame {d.frames[0]}",
                class_="frames",
            ),
        )
        for d in doubts(run)
    ]
    parts = (
        [tag("ul", *lines, class_="doubts")]
        if lines
        else [tag("p", "Every camera is supported by the data.", class_="good")]
    )
    warnings = run.summary.get("warnings", [])
    parts = [tag("p", tag("strong", "Beware: "), warning, class_="beware") for warning in warnings] + parts
    far = long_range(run)
    for which, words in ((far, "far apart in time looked alike"), (~far, "near in time were matched")):
        pairs = run.graph.edges[run.rejected & which].tolist()
        if pairs:
            shown = ", ".join(f"{i}–{j}" for i, j in pairs[:60]) + (
                f" and {len(pairs) - 60} more" if len(pairs) > 60 else ""
            )
            many = counted(len(pairs), "pair")
            text = f"{many} of frames {words} but did not fit the rest and were left out: {shown}."
            parts.append(tag("p", text))
    notes = [
        *run.frames.notes,
        *(
            f"{stage['name']}: {note}"
            for stage in run.summary.get("stages", [])
            for note in stage.get("notes", [])
        ),
    ]
    if notes:
        parts += [
            tag("h3", "Notes from the run"),
            tag("ul", *(tag("li", note) for note in notes), class_="notes"),
        ]
    intro = (
        "A frame is trusted when enough independent matches agree on where its camera was. "
        "The others keep their best guess, and say so."
    )
    return section("trust", "What was not trusted, and why", intro, tag("div", *parts, class_="panel pad"))


def charts(found: Sequence[Chart]) -> Html:
    """Figures that assets/charts.js fills."""
    figures = [
        tag(
            "figure",
            tag("figcaption", c.title),
            tag("div", class_="chart", data_chart=c.name, role="img", aria_label=f"{c.title}. {c.words}"),
            tag("p", c.words, class_="caption"),
            class_="panel pad",
        )
        for c in found
    ]
    return tag("div", *figures, class_="charts" + (" wide" if len(found) == 1 else ""))


def graph_section(run: FinishedRun) -> Html:
    """The view graph as a matrix."""
    kinds = torch.bincount(run.graph.kind, minlength=3).tolist()
    words = (
        f"{counted(len(run.graph), 'pair')} of frames: {kinds[0]:,} close in time, "
        f"{kinds[1]:,} across a chunk border, "
        f"{kinds[2]:,} far apart; {int(run.rejected.sum()):,} rejected."
    )
    canvas = tag("canvas", id="matrix", role="img", aria_label=f"View graph as a matrix. {words}")
    figure = tag(
        "div",
        tag("div", canvas, class_="matrix"),
        tag("div", id="matrix-legend", class_="legend"),
        class_="panel pad",
    )
    return section(
        "graph",
        "The view graph",
        words + " Row and column are frames; a mark is a pair that was matched.",
        figure,
    )


def navigation(names: Sequence[tuple[str, str]]) -> Html:
    """Jump to a section, change the theme."""
    links = [tag("a", title, href=f"#{name}") for name, title in names]
    theme = tag(
        "button",
        tag("span", "Theme", class_="theme-word"),
        type="button",
        id="theme",
        aria_label="Switch between light and dark",
    )
    return tag(
        "nav",
        tag("a", "GeoWeaver", href="#top", class_="brand"),
        tag("div", *links, class_="links"),
        theme,
        aria_label="Sections",
    )

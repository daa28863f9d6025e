"""Rows as Markdown: the paper's table of the suite, its ablation of the stages, and everything per scene."""

from collections.abc import Sequence

from geoweaver.benchmark.published import PUBLISHED, PUBLISHED_STAGES
from geoweaver.benchmark.scoring import Row
from geoweaver.benchmark.suites import SUITES

LABELS = {
    "geoweaver": "GeoWeaver", "stage-1": "Stage 1", "stage-2": "Stages 1-2", "stage-3": "Stages 1-3",
    "colmap": "COLMAP",
}  # fmt: skip
HEADS = {"auc3": "AUC↑", "ate": "ATE↓", "rre_deg": "RRE↓"}
DIGITS = {"auc3": 1, "auc5": 1, "auc30": 1, "ate": 3, "rre_deg": 3, "absrel": 3, "sqrel": 3}
DETAILS = {
    "auc3": "AUC@3", "auc5": "AUC@5", "auc30": "AUC@30", "ate": "ATE", "rre_deg": "RRE deg",
    "absrel": "AbsRel", "sqrel": "SqRel",
}  # fmt: skip
_WIDEST, _PANEL = 7, 5
"""The paper's tables have up to seven columns of scenes; a longer one is split into panels of five."""
_STEPS = ("stage-1", "stage-2", "stage-3")


def as_markdown(suite: str, rows: Sequence[Row], scenes: Sequence[str], methods: Sequence[str]) -> str:
    """The whole page."""
    title = f"# {SUITES[suite].title}"
    parts = [title, *_panels(suite, rows, scenes, methods), _ablation(suite, rows, scenes, methods)]
    parts += [_details(rows), _remarks(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def mean(rows: Sequence[Row], method: str, score: str) -> tuple[float | None, int]:
    """A method's mean over the scenes that it has, and their number."""
    values = [row[score] for row in rows if row["method"] == method and row["status"] == "done"]
    return (sum(values) / len(values) if values else None), len(values)


def _panels(suite: str, rows: Sequence[Row], scenes: Sequence[str], methods: Sequence[str]) -> list[str]:
    """The suite's table in the paper's form: a line per method, two scores per scene, the average last."""
    columns = [*scenes, "Average"]
    width = len(columns) if len(columns) <= _WIDEST else _PANEL
    panels = [columns[k : k + width] for k in range(0, len(columns), width)]
    return [_panel(suite, rows, panel, methods, len(scenes)) for panel in panels]


def _panel(
    suite: str, rows: Sequence[Row], columns: Sequence[str], methods: Sequence[str], count: int
) -> str:
    scores = SUITES[suite].scores
    lines = [["Method", *(f"{column} {HEADS[score]}" for column in columns for score in scores)]]
    for method in methods:
        cells = [_place(rows, column, method, score, count) for column in columns for score in scores]
        lines.append([LABELS[method], *cells])
    printed = PUBLISHED.get(suite)
    if printed:
        values = [printed.get(column) for column in columns]
        cells = [_cell(scores[k], None if v is None else v[k]) for v in values for k in (0, 1)]
        lines.append(["GeoWeaver, as the paper prints it", *cells])
    return _table(lines)


def _place(rows: Sequence[Row], column: str, method: str, score: str, count: int) -> str:
    """A score, a mean, or why there is none."""
    if column == "Average":
        value, scored = mean(rows, method, score)
        return _cell(score, value) + (f" ({scored} of {count})" if 0 < scored < count else "")
    for row in rows:
        if row["scene"] == column and row["method"] in (method, None):
            return _cell(score, row[score]) if row["status"] == "done" else str(row["status"])
    return "-"


def _ablation(suite: str, rows: Sequence[Row], scenes: Sequence[str], methods: Sequence[str]) -> str:
    """What each stage adds, on average over the scenes."""
    steps = [step for step in _STEPS if step in methods]
    if len(steps) < 2:
        return ""
    printed = PUBLISHED_STAGES.get(suite, {})
    more = ["ATE, paper", "AUC, paper"] if printed else []
    lines = [["Seq. Init.", "Chunk Align.", "Frame Refine", "ATE↓", "AUC↑", *more]]
    for step in steps:
        done = _STEPS.index(step)
        ticks = ["✓" if k <= done else "–" for k in range(3)]
        own = [_place(rows, "Average", step, score, len(scenes)) for score in ("ate", "auc3")]
        paper = [_cell(s, v) for s, v in zip(("ate", "auc3"), printed.get(step, ()), strict=False)]
        lines.append([*ticks, *own, *paper])
    return "## What each stage adds\n\n" + _table(lines, words=3)


def _details(rows: Sequence[Row]) -> str:
    shown = [name for name in DETAILS if any(name in row for row in rows)]
    heads = ["scene", "method", "frames", "trusted", "scored", *(DETAILS[name] for name in shown)]
    lines = [[*heads, "seconds", "MiB"]]
    for row in rows:
        if row["status"] == "done":
            scored = f"{row['matched']}" + (f" of {row['frames']}" if row["matched"] < row["frames"] else "")
            head = [row["scene"], LABELS[row["method"]], row.get("total"), row.get("trusted"), scored]
            cells = [_cell(name, row.get(name)) for name in shown]
            lines.append([*("-" if x is None else str(x) for x in head), *cells, *_cost(row)])
        else:
            method = LABELS.get(row["method"], "-")
            lines.append([row["scene"], method, row["status"], *["-"] * (len(lines[0]) - 3)])
    return "## Scenes\n\n" + _table(lines, words=2)


def _cost(row: Row) -> list[str]:
    """A run that an earlier one had begun took longer than its own seconds."""
    seconds = f"{row['seconds']:.0f}" + ("+" if row.get("resumed") else "") if "seconds" in row else "-"
    return [seconds, f"{row['peak_mib']:.0f}" if "peak_mib" in row else "-"]


def _remarks(rows: Sequence[Row]) -> str:
    """What the figures do not say, one line each."""
    lines = []
    for row in rows:
        who = row["scene"] if row["method"] is None else f"{row['scene']}, {LABELS[row['method']]}"
        said = [f"{row['status']}: {row['reason']}"] if "reason" in row else list(row.get("warnings", []))
        said += [row["depth_note"]] if "depth_note" in row else []
        lines += [f"- {who}: {words}" for words in said]
    if any(row.get("resumed") for row in rows):
        lines.append("- seconds with a + are those of the last part of a run that was ended in between")
    return "\n".join(lines)


def _cell(score: str, value: float | None) -> str:
    return "-" if value is None else f"{value:.{DIGITS[score]}f}"


def _table(lines: Sequence[Sequence[str]], words: int = 1) -> str:
    """Markdown whose columns also stand straight in a terminal; the first so many hold words."""
    head, *body = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    rule = ["-" * w if k < words else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
    shown = [
        [
            cell.ljust(w) if k < words else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        for line in (head, rule, *body)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in shown)

"""The files of a finished run that users and scripts rely on: run.json and trajectory.tum."""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool
from torch import Tensor

from geoweaver import __version__
from geoweaver.datatypes import EdgeKind, Reconstruction, StageReport, Trajectory, ViewGraph
from geoweaver.formats.tum import write_tum
from geoweaver.store import whole_file

_FEWEST_FAR, _MANY_LOST = 20, 1 / 3
"""Long-range pairs from which on their share of rejected ones means something, and the share that warns."""


@runtime_checkable
class Saved(Protocol):
    """What of a kept run goes into its summary."""

    @property
    def keyframe(self) -> Bool[Tensor, "F"]: ...
    @property
    def result(self) -> Reconstruction: ...
    @property
    def graph(self) -> ViewGraph: ...
    @property
    def rejected(self) -> Bool[Tensor, "E"]: ...


@runtime_checkable
class Part(Protocol):
    """One part of a run, the weave's own stages aside."""

    @property
    def name(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def peak_rss_mib(self) -> float | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


@runtime_checkable
class Watch(Protocol):
    """Seconds and memory per part and in all."""

    @property
    def laps(self) -> Sequence[Part]: ...

    def lap(self, name: str, made: Any = None, notes: tuple[str, ...] = ()) -> None: ...

    def total(self) -> float: ...

    def largest(self) -> int: ...


S = TypeVar("S", bound=Saved, covariant=True)


@dataclass(frozen=True)
class RunRecord(Generic[S]):
    """What a run has to tell."""

    input: Path
    config: Any
    key: str
    """Of the kept result in the run's store."""
    saved: S
    clock: Watch
    masked: bool = False
    """Whether some pixels do not count: by the user's masks, by alpha, or as padding."""
    lost: tuple[str, ...] = ()
    """What of the input is missing, one line each."""
    unplaced: tuple[str, ...] = ()
    """Why the prior left frames out that nothing else could place, one line each."""


def write_run(out: Path, record: RunRecord[Saved]) -> None:
    """trajectory.tum first, run.json last: a folder with run.json is a finished run."""
    result = record.saved.result
    index = torch.arange(len(result))
    write_tum(out / "trajectory.tum", Trajectory(result.cam_from_world, index, timestamps=result.timestamps))
    with whole_file(out / "run.json") as file:
        file.write((json.dumps(run_json(record), indent=1, allow_nan=False) + "\n").encode())


def run_json(record: RunRecord[Saved]) -> dict[str, Any]:
    """The summary with the keys that stay stable."""
    saved, result = record.saved, record.saved.result
    return {
        "version": __version__,
        "input": str(record.input.absolute()),
        "config": plain(record.config),
        "frames": {
            "total": len(result),
            "keyframes": int(saved.keyframe.sum()),
            "trusted": int(result.trusted.sum()),
        },
        "partial": bool(record.lost) or not bool(result.trusted.all()),
        "masked": record.masked,
        "names": list(result.names),
        "untrusted": [{"frame": f, "reason": r} for f, r in sorted(result.reason.items())],
        "edges": len(saved.rejected),
        "rejected_edges": int(saved.rejected.sum()),
        "warnings": [
            *record.lost, *record.unplaced, *_doubts(result.reports), *warnings(saved.graph, saved.rejected)
        ],
        "stages": _stages(record.clock.laps, result.reports),
        "seconds_total": record.clock.total(),
        "peak_rss_bytes": record.clock.largest(),
        "result": record.key,
    }  # fmt: skip


def warnings(graph: ViewGraph, rejected: Bool[Tensor, "E"]) -> list[str]:
    """What casts doubt on the whole: look-alikes go one by one, an open loop loses most of its pairs."""
    far = graph.kind == EdgeKind.LONG_RANGE
    count, lost = int(far.sum()), int((far & rejected).sum())
    if count < _FEWEST_FAR or lost <= _MANY_LOST * count:
        return []
    return [
        f"{lost} of {count} pairs of frames far apart in time do not fit the map: the place repeats itself, "
        "or a loop is open or the scale slipped; look at the report's path before you rely on it"
    ]


def _doubts(reports: Sequence[StageReport]) -> list[str]:
    return [doubt for report in reports for doubt in report.doubts]


_PART_OF = {"bundle adjustment": "polish"}
"""The part that a report is of, where that is not the weave."""


def _stages(parts: Sequence[Part], reports: Sequence[StageReport]) -> list[dict[str, Any]]:
    """The parts in the order of the run; reports from inside one stand behind it, being part of its time."""
    listed: list[dict[str, Any]] = []
    left = list(reports)
    # where stages ran in turns (weave, second weave), the reports are the last turn's
    last = {part.name.split()[-1]: part for part in parts}
    for part in parts:
        own = [report for report in left if last.get(_PART_OF.get(report.name, "weave")) is part]
        left = [report for report in left if report not in own]
        listed += [_part(part), *map(_stage, own)]
    return [*listed, *map(_stage, left)]


def _part(part: Part) -> dict[str, Any]:
    report = StageReport(part.name, why_stopped="done", seconds=part.seconds, notes=part.notes)
    return {**_stage(report), "peak_rss_mib": part.peak_rss_mib}


def _stage(report: StageReport) -> dict[str, Any]:
    """The weave's own stages are too short to be asked for memory one by one: their lap has it."""
    trace = report.objective
    return {
        "name": report.name, "seconds": report.seconds, "peak_rss_mib": None, "iterations": report.iterations,
        "objective_start": trace[0] if trace else None, "objective_end": trace[-1] if trace else None,
        "median_px": report.median_px if math.isfinite(report.median_px) else None,
        "why_stopped": report.why_stopped, "notes": list(report.notes),
    }  # fmt: skip


def plain(value: Any) -> Any:
    """A resolved config as JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        # the run may be read from another folder
        return str(value.absolute())
    return value.name if isinstance(value, Enum) else value

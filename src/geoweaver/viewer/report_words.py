"""A run told in words: durations, sizes, ranges of frames, what was not trusted and why."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from geoweaver.results import FinishedRun
from geoweaver.viewer.figures_data import long_range, median_error


@dataclass(frozen=True)
class Doubt:
    """Frames that are not trusted for the same kind of reason."""

    frames: tuple[int, ...]
    reason: str
    """As the first of them has it; other frames' numbers may differ."""


def duration(seconds: float) -> str:
    """1.2 s, 42 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} bytes"


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 frame, 1,200 frames."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def number(value: float) -> str:
    """Three digits that say something; a dash for what is no number."""
    return f"{value:.3g}" if math.isfinite(value) else "–"


def ranges(frames: Iterable[int]) -> str:
    """3, 7 to 12, 40."""
    groups: list[list[int]] = []
    for frame in sorted(frames):
        if groups and frame == groups[-1][-1] + 1:
            groups[-1].append(frame)
        else:
            groups.append([frame])
    parts = [f"{g[0]} to {g[-1]}" if len(g) > 2 else ", ".join(map(str, g)) for g in groups]
    return ", ".join(parts)


def doubts(run: FinishedRun) -> list[Doubt]:
    """Untrusted frames by kind of reason, the most frequent first."""
    kinds: dict[str, list[int]] = {}
    reasons = run.result.reason
    for frame in (~run.result.trusted).nonzero()[:, 0].tolist():
        kinds.setdefault(re.sub(r"[\d.,]+", "#", reasons.get(frame, "")), []).append(frame)
    found = [Doubt(tuple(frames), _reason(run, frames)) for frames in kinds.values()]
    return sorted(found, key=lambda d: (-len(d.frames), d.frames))


def _reason(run: FinishedRun, frames: list[int]) -> str:
    """The first frame's words, marked where the others' numbers differ."""
    words = {run.result.reason.get(frame, "no reason was given") for frame in frames}
    first = run.result.reason.get(frames[0], "no reason was given")
    return first if len(words) == 1 else f"{first} (frame {frames[0]}; the others alike)"


def story(run: FinishedRun) -> list[str]:
    """The run in a few sentences."""
    result, summary = run.result, run.summary
    trusted, total = int(result.trusted.sum()), len(result)
    chunks = len({c for c in run.chunk.tolist() if c >= 0})
    keyframes = int(run.frames.keyframe.sum())
    sentences = [
        f"{counted(total, 'frame')}, {counted(keyframes, 'keyframe')} in {counted(chunks, 'chunk')}. "
        + (
            "Every camera is trusted."
            if trusted == total
            else f"{trusted:,} cameras are trusted; {_short_of_trust(run)}"
        )
    ]
    if run.views:
        before, after = (median_error(v.pixel_error) for v in (run.views[0], run.views[-1]))
        if math.isfinite(before + after):
            sentences.append(
                f"Half of the matches now miss by less than {number(after)} pixels; "
                f"after the first stage it was {number(before)}."
            )
    far = long_range(run)
    if int(far.sum()):
        rejected = int((far & run.rejected).sum())
        verdict = "all were believed" if not rejected else f"{rejected:,} {_was(rejected)} rejected as false"
        sentences.append(
            f"{counted(int(far.sum()), 'pair')} of frames far apart in time were compared: {verdict}."
        )
    else:
        sentences.append("No frames far apart in time looked alike, so nothing closed a loop.")
    sentences += [f"Beware: {warning}." for warning in summary.get("warnings", [])]
    if "seconds_total" in summary:
        peak = summary.get("peak_rss_bytes")
        memory = f"; the largest process held {size(peak)} of memory" if peak else ""
        sentences.append(f"It took {duration(float(summary['seconds_total']))}{memory}.")
    return sentences


def _short_of_trust(run: FinishedRun) -> str:
    """How many frames are not trusted, those merely between keyframes apart."""
    keyframe = run.frames.keyframe
    doubted = int((~run.result.trusted & keyframe).sum())
    between = int((~run.result.trusted & ~keyframe).sum())
    parts = [f"{counted(doubted, 'keyframe')} {_is(doubted)} not"] if doubted else []
    parts += [f"{counted(between, 'frame')} between keyframes {_is(between)} interpolated"] if between else []
    return " and ".join(parts) + "."


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"

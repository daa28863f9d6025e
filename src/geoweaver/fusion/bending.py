"""Depth maps err smoothly, each in its own way: bend each a little until neighbours lie on one another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from geoweaver.engine import Engine
from geoweaver.fusion.agreement import log_ratios
from geoweaver.fusion.survey import BLOCK, GRID, Survey
from geoweaver.fusion.views import ViewReader

_SAMPLES = 6
"""Rows and columns of places per cell that are compared."""
_LEAST = 12
"""Comparisons of places without which a cell knows nothing of its own."""
_STEP = 0.7
"""Share of the way to the neighbours' median that a round goes: all move at once."""
_PULL = 0.1
"""How much the frame's own median counts in every cell, against its neighbouring cells."""
_WITHIN, _CLOSE, _OUTLIER = 0.25, 0.02, 4.0
"""Log ratios beyond these, first and at the least, and beyond so many deviations are other surfaces."""
_SIGMAS, _MAD = 3.5, 1.4826
"""Scatter that still counts as agreement; deviation of normal errors whose median size is 1."""

Grid = Float[np.ndarray, "rows columns"]


def bend_views(
    reader: ViewReader, survey: Survey, neighbours: Sequence[Sequence[int]], engine: Engine
) -> tuple[ViewReader, float]:
    """A reader of bent depth maps, and the relative difference that their scatter then explains."""
    config = reader.config
    frame = survey.frame.tolist()
    jobs = [(frame[k], [frame[n] for n in near]) for k, near in enumerate(neighbours)]
    blocks = [jobs[k : k + BLOCK] for k in range(0, len(jobs), BLOCK)]
    bend = {f: np.zeros(GRID) for f in frame}
    scatter, within = 0.0, _WITHIN
    for _ in range(config.rounds + 1):
        task = _Compare(replace(reader, bend=bend), within)
        rows = [row for rows in engine.map(task, blocks, title="cloud: agreement") for row in rows]
        reader, scatter = task.reader, float(np.median([s for _, s in rows]))
        within = min(max(_OUTLIER * _MAD * scatter, _CLOSE), _WITHIN)
        bend = {f: bend[f] + _STEP * wanted for f, (wanted, _) in zip(frame, rows, strict=True)}
    tolerance = min(max(_SIGMAS * _MAD * scatter, config.least_tolerance), config.most_tolerance)
    return reader, tolerance


@dataclass(frozen=True)
class _Compare:
    """What a worker does with consecutive frames and their neighbours."""

    reader: ViewReader
    within: float

    def __call__(self, block: list[tuple[int, list[int]]]) -> list[tuple[Grid, float]]:
        needed = sorted({f for frame, near in block for f in (frame, *near)})
        views = {frame: self.reader.read(frame) for frame in needed}
        found = []
        for frame, near in block:
            y, x = _places(views[frame].depth.shape)
            ratios = [log_ratios(views[frame], views[f], y, x, self.within) for f in near]
            found.append(_wanted(np.array(ratios).reshape(-1, len(y), len(x))))
        return found


def _places(shape: tuple[int, ...]) -> tuple[Int[np.ndarray, "r"], Int[np.ndarray, "c"]]:
    """Rows and columns of a depth map that are compared, so many per cell."""
    rows, columns = (n * _SAMPLES for n in GRID)
    y = ((np.arange(rows) + 0.5) * shape[0] / rows).astype(np.int64)
    return y, ((np.arange(columns) + 0.5) * shape[1] / columns).astype(np.int64)


def _wanted(ratios: Float[np.ndarray, "n r c"]) -> tuple[Grid, float]:
    """By how much each cell should move, smoothed, and the typical size of a difference."""
    rows, columns = GRID
    cells = ratios.reshape(len(ratios), rows, _SAMPLES, columns, _SAMPLES).transpose(1, 3, 0, 2, 4)
    cells = cells.reshape(rows, columns, -1)
    known = np.isfinite(cells).sum(-1)
    if not known.any():
        return np.zeros(GRID), 0.0
    # sorting puts nan last: the median of what is known stands in the middle of it
    ordered = np.sort(cells, -1)
    middle = np.take_along_axis(ordered, np.minimum(known // 2, cells.shape[-1] - 1)[..., None], -1)[..., 0]
    weight = np.where(known >= _LEAST, known / cells.shape[-1], 0.0)
    flat = ratios[np.isfinite(ratios)]
    whole = float(np.median(flat))
    value = np.where(weight > 0, middle, 0.0)
    smooth = (_around(value * weight) + _PULL * whole) / (_around(weight) + _PULL)
    return smooth, float(np.median(np.abs(flat)))


def _around(grid: Grid) -> Grid:
    """Sums over the cells around each, the cell itself counting most."""
    padded = np.pad(grid, 1)
    across = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    return np.asarray((across[:-2] + 2 * across[1:-1] + across[2:]) / 4)

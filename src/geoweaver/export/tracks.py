"""Multi-view tracks from the graph's matches: each is one frame's point, carried by every edge of that frame.

No point is carried on from where it was carried to: errors do not add up, and no two points of one frame can
meet in one track. Frames take turns, and a point is begun only where no track passes yet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from geoweaver.datatypes import Matches
from geoweaver.engine import one_thread
from geoweaver.export.carry import carry_points
from geoweaver.export.triangulation import TriangulationConfig, triangulate
from geoweaver.results import FinishedRun


@dataclass(frozen=True)
class TrackConfig:
    """How dense tracks are, and which matches they may use; lengths are shares of the image."""

    per_frame: int = 1200
    """Cells of an image, each of which needs one track at the most."""
    min_score: float = 0.5
    """Matches that are more likely wrong than right are left out."""
    reach: float = 0.01
    """Share of the diagonal within which a match speaks for a point."""
    agreement: float = 1.0
    """Pixels by which the matches around a point may contradict each other."""
    least_views: int = 3
    """Views of a point; two where a frame has no more than one edge."""
    triangulation: TriangulationConfig = field(default_factory=TriangulationConfig)


@dataclass(frozen=True)
class Tracks:
    """Points, and as one flat table where frames see them, in pixels of the working images."""

    position: Float[Tensor, "P 3"]
    colour: UInt8[Tensor, "P 3"]
    point: Int[Tensor, "T"]
    frame: Int[Tensor, "T"]
    pixel: Float[Tensor, "T 2"]
    error: Float[Tensor, "T"]

    def __len__(self) -> int:
        return len(self.position)


DEFAULTS = TrackConfig()


def build_tracks(run: FinishedRun, rows: Sequence[int], config: TrackConfig = DEFAULTS) -> Tracks:
    """Verified tracks of these frames, frame by frame: memory holds one frame's matches at a time."""
    edges_of = _edges_of(run, rows)
    taken = _Taken(run.result.size, config.per_frame)
    turns = [frame for frame in _taking_turns(sorted(rows)) if edges_of[frame]]
    # the tensors are small: threads that wait for each other made this four times slower
    with one_thread():
        parts = [_frame_tracks(run, frame, edges_of[frame], taken, config) for frame in turns]
    return _joined([part for part in parts if len(part)])


def _edges_of(run: FinishedRun, rows: Sequence[int]) -> dict[int, list[tuple[int, int, bool]]]:
    """Each frame's believed edges to other chosen frames: (edge, other frame, whether the frame is first)."""
    chosen: dict[int, list[tuple[int, int, bool]]] = {frame: [] for frame in rows}
    for edge, (i, j) in enumerate(run.graph.edges.tolist()):
        if i in chosen and j in chosen and not bool(run.rejected[edge]):
            chosen[i].append((edge, j, True))
            chosen[j].append((edge, i, False))
    return chosen


def _taking_turns(frames: list[int]) -> Iterator[int]:
    """Every 16th frame first, then those between: tracks that reach both ways are begun before others."""
    places = range(len(frames))
    return (frames[k] for k in sorted(places, key=lambda k: (-min(k & -k, 16) if k else -16, k)))


class _Taken:
    """Which cells of which frame a track already passes."""

    def __init__(self, size: tuple[int, int], cells: int) -> None:
        self.side = max(2.0, (size[0] * size[1] / cells) ** 0.5)
        self.shape = (int(size[1] / self.side) + 1, int(size[0] / self.side) + 1)
        self.grids: dict[int, np.ndarray] = {}

    def cell(self, pixel: Float[Tensor, "n 2"]) -> Int[np.ndarray, "n"]:
        """Number of the cell that a pixel lies in."""
        at = np.floor(pixel.numpy() / self.side).astype(np.int64)
        column, row = at[:, 0].clip(0, self.shape[1] - 1), at[:, 1].clip(0, self.shape[0] - 1)
        return np.asarray(row * self.shape[1] + column)

    def grid(self, frame: int) -> Bool[np.ndarray, "cells"]:
        """A frame's cells, to read and to mark."""
        return self.grids.setdefault(frame, np.zeros(self.shape[0] * self.shape[1], bool))


def _frame_tracks(
    run: FinishedRun, frame: int, edges: list[tuple[int, int, bool]], taken: _Taken, config: TrackConfig
) -> Tracks:
    """Tracks that begin in one frame."""
    pairs = [_pair(run.matches.read(edge), first, config.min_score) for edge, _, first in edges]
    start = _starts(pairs, [first for _, _, first in edges], taken, frame)
    reach = config.reach * float(np.hypot(*run.result.size))
    carried = [carry_points(start, *pair, reach, config.agreement) for pair in pairs]
    everyone = torch.ones(len(start), dtype=torch.bool)
    pixel = torch.stack([start, *(c.pixel for c in carried)], 1)
    seen = torch.stack([everyone, *(c.seen for c in carried)], 1)
    frames = torch.tensor([frame, *(other for _, other, _ in edges)])
    least = min(config.least_views, 1 + len(edges))
    found = triangulate(
        pixel, seen, run.result.cam_from_world[frames], run.result.intrinsics[frames], least,
        config.triangulation,
    )  # fmt: skip
    rows = found.used[:, 0].nonzero().squeeze(1)
    used, pixel = found.used[rows], pixel[rows]
    for v, number in enumerate(frames.tolist()):
        taken.grid(number)[taken.cell(pixel[used[:, v], v])] = True
    point, view = used.nonzero().unbind(1)
    error = found.error[rows][point, view]
    colour = _colours(run, frame, pixel[:, 0])
    return Tracks(found.position[rows], colour, point, frames[view], pixel[point, view], error)


def _pair(matches: Matches, first: bool, least: float) -> tuple[Float[Tensor, "m 2"], Float[Tensor, "m 2"]]:
    """Matched pixels, this frame's first; doubtful matches left out."""
    sure = matches.score >= least
    here, there = matches.pixel_i[sure].double(), matches.pixel_j[sure].double()
    return (here, there) if first else (there, here)


def _starts(
    pairs: list[tuple[Tensor, Tensor]], first: list[bool], taken: _Taken, frame: int
) -> Float[Tensor, "n 2"]:
    """In each free cell the place that most edges have measured, before all where the frame came first."""
    own = [pair[0] for pair, is_first in zip(pairs, first, strict=True) if is_first]
    places = torch.cat(own if sum(map(len, own)) else [pair[0] for pair in pairs])
    _, index, count = np.unique((places * 16).round().numpy(), axis=0, return_index=True, return_counts=True)
    cell = taken.cell(places[torch.from_numpy(index)])
    order = np.lexsort((index, -count, cell))
    best = order[np.unique(cell[order], return_index=True)[1]]
    free = best[~taken.grid(frame)[cell[best]]]
    return places[torch.from_numpy(index[free])]


def _colours(run: FinishedRun, frame: int, pixel: Float[Tensor, "n 2"]) -> UInt8[Tensor, "n 3"]:
    """Of the frame that a track begins in."""
    if not len(pixel) or run.frames.pixels is None:
        return torch.full((len(pixel), 3), 128, dtype=torch.uint8)
    image = run.frames.pixels.read(frame)
    column, row = np.floor(pixel.numpy()).astype(np.int64).T
    row, column = row.clip(0, image.shape[0] - 1), column.clip(0, image.shape[1] - 1)
    return torch.from_numpy(np.ascontiguousarray(image[row, column]))


def _joined(parts: list[Tracks]) -> Tracks:
    """One table; points are numbered through."""
    if not parts:
        nothing, nowhere = torch.zeros(0, dtype=torch.long), torch.zeros(0, 3, dtype=torch.float64)
        return Tracks(nowhere, nowhere.to(torch.uint8), nothing, nothing, nowhere[:, :2], nowhere[:, 0])
    before = np.cumsum([0, *map(len, parts)])
    return Tracks(
        torch.cat([part.position for part in parts]),
        torch.cat([part.colour for part in parts]),
        torch.cat([part.point + int(offset) for part, offset in zip(parts, before, strict=False)]),
        torch.cat([part.frame for part in parts]),
        torch.cat([part.pixel for part in parts]),
        torch.cat([part.error for part in parts]),
    )

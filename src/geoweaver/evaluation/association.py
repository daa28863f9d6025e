"""Which frame of the estimate is which frame of the reference: by image name, else by time, else by index."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.datatypes import Trajectory
from geoweaver.errors import DegenerateError

MAX_TIME_DIFF = 0.01
"""Seconds that two time stamps of one frame may differ by unless the caller says otherwise."""

Rows = tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"]]


@dataclass(frozen=True)
class Association:
    """Rows of both trajectories that show the same frame, in the reference's order."""

    estimate: Int[Tensor, "m"]
    reference: Int[Tensor, "m"]
    by: str
    """What told the frames apart: name, time or index."""

    def __len__(self) -> int:
        return len(self.reference)


def associate(
    estimate: Trajectory, reference: Trajectory, max_time_diff: float = MAX_TIME_DIFF
) -> Association:
    """Pair the frames one to one: by name if both sides have names, else by time, else by index."""
    if estimate.names is not None and reference.names is not None:
        rows, by = _by_name(estimate.names, reference.names), "name"
    elif estimate.timestamps is not None and reference.timestamps is not None:
        rows, by = _by_time(estimate.timestamps, reference.timestamps, max_time_diff), "time"
    else:
        rows, by = _by_index(estimate.index, reference.index), "index"
    if not len(rows[0]):
        raise DegenerateError(_nothing_in_common(estimate, reference, by, max_time_diff))
    order = np.argsort(rows[1])
    return Association(torch.from_numpy(rows[0][order]), torch.from_numpy(rows[1][order]), by)


def _name_keys() -> tuple[Callable[[str], str], ...]:
    """What of a name may count, strictest first: files of one image differ in folder and ending."""
    return (
        lambda name: str(PurePosixPath(name)),
        lambda name: str(PurePosixPath(name).with_suffix("")) if PurePosixPath(name).name else name,
        lambda name: PurePosixPath(name).name,
        lambda name: PurePosixPath(name).stem,
    )


def _by_name(estimate: tuple[str, ...], reference: tuple[str, ...]) -> Rows:
    """Equal names under the strictest key that is unique on both sides and pairs the most frames."""
    best: Rows = (np.empty(0, np.int64), np.empty(0, np.int64))
    for key in _name_keys():
        row = {key(name): i for i, name in enumerate(estimate)}
        column = {key(name): i for i, name in enumerate(reference)}
        if len(row) < len(estimate) or len(column) < len(reference):
            continue
        common = [(row[name], i) for name, i in column.items() if name in row]
        if len(common) > len(best[0]):
            pairs = np.array(common, np.int64)
            best = (pairs[:, 0], pairs[:, 1])
    return best


def _by_time(estimate: Float[Tensor, "n"], reference: Float[Tensor, "k"], tolerance: float) -> Rows:
    """Closest first, each frame once: rounds of mutually nearest stamps among those still free."""
    times = estimate.double().numpy(), reference.double().numpy()
    free = tuple(np.argsort(t, kind="stable") for t in times)
    found: list[Rows] = []
    while len(free[0]) and len(free[1]):
        a, b = times[0][free[0]], times[1][free[1]]
        there, back = _nearest(a, b), _nearest(b, a)
        mutual = (back[there] == np.arange(len(a))) & (np.abs(b[there] - a) <= tolerance)
        if not mutual.any():
            break
        found.append((free[0][mutual], free[1][there[mutual]]))
        free = (free[0][~mutual], np.delete(free[1], there[mutual]))
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *(f[0] for f in found)]), np.concatenate([empty, *(f[1] for f in found)])


def _nearest(a: Float[np.ndarray, "n"], b: Float[np.ndarray, "k"]) -> Int[np.ndarray, "n"]:
    """For every entry of sorted a the first of the nearest entries of sorted b."""
    right = np.searchsorted(b, a).clip(max=len(b) - 1)
    # the first of several equal stamps, so that equal stamps pair up in their files' order
    left = np.searchsorted(b, b[(right - 1).clip(min=0)])
    return np.where(np.abs(b[left] - a) <= np.abs(b[right] - a), left, right)


def _by_index(estimate: Int[Tensor, "n"], reference: Int[Tensor, "k"]) -> Rows:
    _, rows, columns = np.intersect1d(estimate.numpy(), reference.numpy(), return_indices=True)
    return rows, columns


def _nothing_in_common(estimate: Trajectory, reference: Trajectory, by: str, tolerance: float) -> str:
    if not len(estimate) or not len(reference):
        return "no common frames: one of the trajectories is empty"
    if by == "time":
        times = [t for t in (estimate.timestamps, reference.timestamps) if t is not None]
        spans = [f"{t[0]:.9g} to {t[-1]:.9g}" for t in times]
        return (
            f"no common frames: no time stamps within {tolerance:g} s of each other (estimate {spans[0]}, "
            f"reference {spans[1]}); check that both use one clock and unit, or raise --max-time-diff"
        )
    if by == "name":
        first = [names[0] for names in (estimate.names, reference.names) if names is not None]
        return (
            f"no common frames: no image name occurs in both (the first are {first[0]!r} and {first[1]!r}); "
            "rename them alike, or compare files without names"
        )
    return "no common frames: no index occurs in both; give both sides time stamps or image names"

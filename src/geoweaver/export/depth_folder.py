"""Depth and confidence of every frame that has them: floats, 16-bit PNG beside them, and an index."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.export.pictures import image_box
from geoweaver.export.whole_folder import sign_folder, whole_folder
from geoweaver.formats.depth import MILLIMETRE, write_depth
from geoweaver.geometry.camera import crop_intrinsics
from geoweaver.results import DepthMap, FinishedRun

_FARTHEST = 100.0
"""Median depths beyond which a 16-bit map says unknown: its steps must serve what is near."""
_STEPS = 500.0
"""Steps of a 16-bit map that the median depth should have at least."""


@dataclass(frozen=True)
class DepthExport:
    """Where each frame's maps are, below the folder, and what a step of the PNGs is worth."""

    float_files: dict[int, str]
    png_files: dict[int, str]
    unit: float


def write_depth_folder(run: FinishedRun, folder: Path, frames: Sequence[int] | None = None) -> DepthExport:
    """Write NAME.npz (depth, confidence), png/NAME.png and geoweaver.json; all frames unless told."""
    with whole_folder(folder) as temporary:
        return fill_depth_folder(run, temporary, frames)


def fill_depth_folder(run: FinishedRun, folder: Path, frames: Sequence[int] | None) -> DepthExport:
    """Write the maps into a folder that is being made, one at a time."""
    rows = sorted(set(run.depths.frames) & set(run.depths.frames if frames is None else frames))
    if not rows:
        raise DegenerateError("the run has no depth for these frames: nothing to export")
    stems = _stems([run.frames.names[row] for row in rows])
    unit, limit = _unit(run, rows)
    entries = []
    for row, stem in zip(rows, stems, strict=True):
        shown = _without_padding(run, row)
        write_depth(folder / f"{stem}.npz", shown.depth, confidence=shown.confidence)
        near = torch.where(shown.depth <= limit, shown.depth, 0)
        write_depth(folder / "png" / f"{stem}.png", near, unit)
        entries.append(_entry(run, row, stem, shown))
    sign_folder(
        folder,
        "depth",
        {
            "depth": "z along the optical axis in world units, 0 = unknown; .npz holds depth and confidence",
            "png_unit": unit,
            "png_meaning": f"16-bit value times {unit:g} = depth in world units; 0 = unknown or beyond 65535",
            "frames": entries,
        },
    )
    floats = {row: f"{stem}.npz" for row, stem in zip(rows, stems, strict=True)}
    return DepthExport(floats, {row: f"png/{name[:-4]}.png" for row, name in floats.items()}, unit)


def _entry(run: FinishedRun, row: int, stem: str, shown: DepthMap) -> dict[str, Any]:
    height, width = shown.depth.shape
    return {
        "frame": row, "name": run.frames.names[row], "file": f"{stem}.npz", "png": f"png/{stem}.png",
        "width": width, "height": height, "intrinsics": shown.intrinsics.tolist(),
        "trusted": bool(run.result.trusted[row]),
    }  # fmt: skip


def _without_padding(run: FinishedRun, row: int) -> DepthMap:
    """The part of the map that shows the camera's own image."""
    shown = run.depths.read(row)
    height, width = shown.depth.shape
    sx, sy = width / run.result.size[0], height / run.result.size[1]
    left, top, right, bottom = image_box(run.frames.cameras[int(run.frames.camera[row])])
    x, y = max(0, round(left * sx)), max(0, round(top * sy))
    columns, rows = slice(x, min(width, round(right * sx))), slice(y, min(height, round(bottom * sy)))
    return DepthMap(
        shown.depth[rows, columns], shown.confidence[rows, columns], crop_intrinsics(shown.intrinsics, x, y)
    )


def _unit(run: FinishedRun, rows: Sequence[int]) -> tuple[float, float]:
    """What a step of the PNGs is worth, the same for all, and the farthest depth that they state."""
    facts = [_range(run.depths.read(row).depth) for row in rows]
    medians = [median for median, _ in facts if median > 0]
    if not medians:
        return MILLIMETRE, math.inf
    middle = float(torch.tensor(medians).median())
    farthest = min(max(far for _, far in facts), _FARTHEST * middle)
    least = farthest / 65535
    # a thousandth is what most readers assume: it is kept where it serves
    if least <= MILLIMETRE <= middle / _STEPS:
        return MILLIMETRE, farthest
    digits = 10.0 ** math.floor(math.log10(least))
    return math.ceil(least / digits) * digits, farthest


def _range(depth: Float[Tensor, "H W"]) -> tuple[float, float]:
    """Median and farthest known depth; 0 without any."""
    known = depth[depth > 0]
    return (float(known.median()), float(known.max())) if len(known) else (0.0, 0.0)


def _stems(names: Sequence[str]) -> list[str]:
    """File names without ending, unique in one folder."""
    paths = [PurePosixPath(name) for name in names]
    bare = [str(path.with_suffix("")) for path in paths]
    for stems in ([path.stem for path in paths], [b.replace("/", "__") for b in bare]):
        if len(set(stems)) == len(stems):
            return stems
    return [name.replace("/", "__") for name in names]

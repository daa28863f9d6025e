"""Which camera took which exported image: one per physical camera and image size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import Camera
from geoweaver.export.pictures import Picture
from geoweaver.geometry.distortion import refine_lens
from geoweaver.results import FinishedRun

_ALIKE = 0.1
"""Pixels at the image's corner by which focal lengths may differ and still be one camera's."""


@dataclass(frozen=True)
class ExportCameras:
    """Pinhole cameras of exported images, and what they were before."""

    cameras: tuple[Camera, ...]
    camera: Int[Tensor, "n"]
    """Which of `cameras` took each picture."""
    group: tuple[int, ...]
    """The run's camera behind each of `cameras`."""
    kind: tuple[str, ...]
    """original, undistorted or working: how the images of each came about."""


def export_cameras(run: FinishedRun, pictures: Sequence[Picture]) -> ExportCameras:
    """One pinhole per physical camera, size and kind of image; one per image where the focal changes."""
    groups: dict[tuple[int, tuple[int, int], str], list[int]] = {}
    for row, picture in enumerate(pictures):
        key = (int(run.frames.camera[picture.frame]), picture.size, picture.kind)
        groups.setdefault(key, []).append(row)
    camera = torch.zeros(len(pictures), dtype=torch.long)
    made: list[tuple[Camera, int, str]] = []
    for (group, size, kind), rows in sorted(groups.items()):
        calibrated = run.frames.cameras[group].calibrated
        for values, members in _alike([pictures[row] for row in rows], rows, run):
            camera[members] = len(made)
            made.append((Camera("PINHOLE", values, *size, calibrated=calibrated), group, kind))
    cameras, group_of, kinds = zip(*made, strict=True) if made else ((), (), ())
    return ExportCameras(cameras, camera, group_of, kinds)


def _alike(
    pictures: list[Picture], rows: list[int], run: FinishedRun
) -> list[tuple[tuple[float, float, float, float], list[int]]]:
    """The pictures' shared intrinsics, or each its own where they differ visibly."""
    own = [picture.intrinsics(run.result.intrinsics[picture.frame]) for picture in pictures]
    table = torch.tensor(own, dtype=torch.float64)
    middle = table.median(0).values
    size = torch.tensor(pictures[0].size, dtype=torch.float64)
    # a focal's relative change moves the corner by half a side
    moved = (table / middle - 1)[:, :2].abs() * size / 2 + (table - middle)[:, 2:].abs()
    if float(moved.max()) < _ALIKE:
        fx, fy, cx, cy = middle.tolist()
        return [((fx, fy, cx, cy), rows)]
    return [(values, [row]) for values, row in zip(own, rows, strict=True)]


def camera_notes(run: FinishedRun, made: ExportCameras, pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """What a reader may want to know of each camera: how it sees the images as they were recorded."""
    frame = torch.tensor([picture.frame for picture in pictures], dtype=torch.long)
    return [
        {
            "camera_id": i + 1,
            "images": made.kind[i],
            "original": _original(run, run.frames.cameras[group], frame[made.camera == i]),
        }
        for i, group in enumerate(made.group)
    ]


def _original(run: FinishedRun, camera: Camera, frames: Int[Tensor, "k"]) -> dict[str, Any]:
    """The recording camera with what the run found of its lens."""
    lens = camera.lens
    if camera.rectified is not None:
        view = torch.tensor(camera.rectified, dtype=torch.float64)
        lens = refine_lens(lens, view, run.result.intrinsics[frames].double().median(0).values)
    return {
        "model": lens.model, "params": list(lens.params), "width": camera.width, "height": camera.height,
        "calibrated": camera.calibrated,
    }  # fmt: skip

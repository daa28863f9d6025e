"""Cameras, edges and cloud as the page's scripts read them, turned so that up is up."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.results import FinishedRun
from geoweaver.viewer.figures_data import page_axes, stage_centres
from geoweaver.viewer.report_cloud import ReportCloud
from geoweaver.viewer.report_html import packed

_FAR = 50.0
"""Cameras further out than this many times the usual distance from the middle are drawn at the border."""

_ABOVE = 0.1
"""Share of the cameras that may lie above a ceiling."""


def scene_data(
    run: FinishedRun, cloud: ReportCloud, pictures: Sequence[int], reference: Float[Tensor, "n 3"] | None
) -> dict[str, Any]:
    """All that is drawn from geometry, in axes across, up the page and up, around the path's middle."""
    axes = page_axes(run.result.cam_from_world, run.result.trusted)
    middle = run.result.cam_from_world.centre.median(0).values

    def turn(points: Tensor) -> Tensor:
        return (points.double() - middle) @ axes.mT

    stages = [{"name": name, "xy": _flat(turn(centres))} for name, centres in stage_centres(run)[:-1]]
    return {
        "frames": _frames(run, axes, turn(run.result.cam_from_world.centre)),
        "edges": {
            "pair": packed(run.graph.edges.numpy(), "u4"), "kind": packed(run.graph.kind.numpy(), "u1"),
            "rejected": packed(run.rejected.numpy(), "u1"),
        },
        "stages": stages,
        "reference": None if reference is None else _flat(turn(reference)),
        "pictures": list(pictures),
        "cloud": _cloud(cloud, turn, turn(run.result.cam_from_world.centre)),
    }  # fmt: skip


def _frames(run: FinishedRun, axes: Float[Tensor, "3 3"], centres: Float[Tensor, "F 3"]) -> dict[str, Any]:
    result = run.result
    half = torch.tensor(result.size) / 2 / result.intrinsics[:, :2]
    sigma = torch.where(result.sigma.isfinite(), result.sigma, -1.0)
    sigma[:, 1] = torch.where(sigma[:, 1] >= 0, sigma[:, 1].rad2deg(), -1.0)
    return {
        "count": len(result),
        "names": list(result.names),
        "times": packed(result.timestamps.numpy(), "f8"),
        "chunk": packed(run.chunk.numpy(), "i4"),
        "trusted": packed(result.trusted.numpy(), "u1"),
        "keyframe": packed(run.frames.keyframe.numpy(), "u1"),
        "reasons": {str(f): r for f, r in result.reason.items()},
        "centre": packed(_within(centres).numpy(), "f4"),
        # rows: the camera's right, down and forward in the page's axes
        "axes": packed((result.cam_from_world.rotation @ axes.mT).numpy(), "f4"),
        "half": packed(half.numpy(), "f4"),
        "sigma": packed(sigma.numpy(), "f4"),
    }


def _within(centres: Float[Tensor, "F 3"]) -> Float[Tensor, "F 3"]:
    """A camera that flew away must not shrink everything else to a dot."""
    distance = centres.norm(dim=-1)
    usual = distance.median()
    limit = _FAR * usual if usual > 0 else distance.max().clamp(min=1.0)
    nearer: Tensor = centres * (limit / distance.clamp(min=1e-300)).clamp(max=1.0)[:, None]
    return nearer


def _flat(points: Float[Tensor, "n 3"]) -> str:
    return packed(points[:, :2].numpy(), "f4")


def _cloud(cloud: ReportCloud, turn: Any, centres: Float[Tensor, "F 3"]) -> dict[str, Any] | None:
    """Positions in 16 bits between the cloud's corners."""
    if not len(cloud):
        return None
    points = turn(cloud.points).numpy()
    low, high = points.min(0), points.max(0)
    step = np.maximum(high - low, 1e-30) / 65535
    frame = cloud.frame.numpy()
    return {
        "count": len(cloud), "found": cloud.found, "low": low.tolist(), "step": step.tolist(),
        "xyz": packed(((points - low) / step).round(), "u2"), "rgb": packed(cloud.colours.numpy(), "u1"),
        "confidence": packed(_byte(cloud.confidence), "u1"), "frame": packed(frame, "i4"),
        "ceiling": ceiling(torch.from_numpy(points), centres),
    }  # fmt: skip


def _byte(confidence: Float[Tensor, "P"]) -> np.ndarray:
    top = confidence.max().clamp(min=1.0)  # clouds of other programs may count otherwise
    return (confidence.clamp(min=0) / top * 255).round().to(torch.uint8).numpy()


def ceiling(points: Float[Tensor, "P 3"], centres: Float[Tensor, "F 3"]) -> float | None:
    """Below which height the view opens a room from above; None where most of the path is under the sky."""
    extent = float((points.amax(0) - points.amin(0)).max())
    some = centres[torch.linspace(0, len(centres) - 1, min(len(centres), 100)).round().long()]
    heights = []
    for centre in some:
        near = ((points - centre)[:, :2].abs() < 0.02 * extent).all(-1)
        above = points[near & (points[:, 2] > centre[2] + 0.01 * extent), 2]
        if len(above) > 4:
            heights.append(float(above.median()))
    if len(heights) < 0.6 * len(some):
        return None
    lowest = sorted(heights)[len(heights) // 5]
    cut = max(lowest - 0.02 * extent, float(some[:, 2].median()))
    # on a slope, or over several floors, no one height is a ceiling
    return cut if float((some[:, 2] > cut).double().mean()) < _ABOVE else None

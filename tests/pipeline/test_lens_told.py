"""What images tell of a lens is asked in stretches: memory stays bounded, verdicts are the same."""

from typing import Any

import numpy as np
import pytest
import torch

import geoweaver.track_adjustment as adjustment
from geoweaver.datatypes import Camera
from geoweaver.formats.colmap import ColmapModel, ColmapPoints, as_pycolmap
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import project_with_depth
from geoweaver.track_adjustment import PolishConfig, _options, _told_of_lenses, _unsure_lenses
from geoweaver.track_model import part_of_model

FRAMES, POINTS = 24, 60


def walk(turn: float) -> tuple[Any, dict[int, int]]:
    """Cameras on a line, turned to and fro by so many radians, before points that all of them see."""
    generator = torch.Generator().manual_seed(0)
    step = torch.zeros(FRAMES, 6, dtype=torch.float64)
    step[:, 0] = torch.linspace(-0.5, 0.5, FRAMES)
    step[:, 3:] = turn * torch.randn(FRAMES, 3, generator=generator, dtype=torch.float64)
    cameras = SE3.exp(step)
    cloud = torch.rand(POINTS, 3, generator=generator, dtype=torch.float64) - 0.5
    cloud = cloud * torch.tensor([2.0, 2, 2]) + torch.tensor([0.0, 0, 4])
    lens = torch.tensor([300.0, 300, 160, 120], dtype=torch.float64)
    pixel = project_with_depth(cameras[:, None].act(cloud), lens)[0].flatten(0, 1)
    frame, point = torch.arange(FRAMES).repeat_interleave(POINTS), torch.arange(POINTS).repeat(FRAMES)
    points = ColmapPoints(
        cloud, torch.zeros(POINTS, 3, dtype=torch.uint8), torch.ones(POINTS).double(), point, frame, pixel
    )
    camera = Camera("SIMPLE_PINHOLE", (300.0, 160.0, 120.0), 320, 240)
    names = tuple(f"{k:03}" for k in range(FRAMES))
    model = ColmapModel(names, cameras, (camera,), torch.zeros(FRAMES, dtype=torch.long), points)
    return as_pycolmap(model), {k + 1: k for k in range(FRAMES)}


@pytest.mark.parametrize(("turn", "told"), [(0.2, True), (0.002, False)])
def test_stretches_tell_what_the_whole_tells(
    monkeypatch: pytest.MonkeyPatch, turn: float, told: bool
) -> None:
    model, frame_of = walk(turn)
    options = _options(PolishConfig(), 0.3)
    together = _unsure_lenses(model, frame_of, options)
    monkeypatch.setattr(adjustment, "_ASKED_TOGETHER", 8)
    assert _unsure_lenses(model, frame_of, options) == together == (set() if told else {1})
    assert model.num_reg_images() == FRAMES


def test_stretches_never_tell_more_than_the_whole() -> None:
    model, frame_of = walk(0.2)
    options = _options(PolishConfig(), 0.3)
    whole = _told_of_lenses(model, list(frame_of), {1}, options)[1]
    parts = []
    for images in np.array_split(list(frame_of), 3):
        chosen = {int(i) for i in images}
        parts.append(_told_of_lenses(part_of_model(model, chosen), sorted(chosen), {1}, options)[1])
    assert np.diag(np.linalg.inv(sum(parts))).max() > np.diag(np.linalg.inv(whole)).max()
    assert np.diag(np.linalg.inv(sum(parts))).max() < 100 * np.diag(np.linalg.inv(whole)).max()

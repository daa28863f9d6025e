"""Bundle adjustment after the weave: cameras that were knocked about come back, bad ones are undone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_sequence import OPTIONS, geoweaver

from geoweaver.datatypes import Frames
from geoweaver.export.tracks import Tracks
from geoweaver.finished import SavedRun
from geoweaver.geometry import SE3
from geoweaver.polishing import NAME, apply, doubted, polish_run
from geoweaver.results import FinishedRun
from geoweaver.slight_motion import slight_motion
from geoweaver.store import Store, restore
from geoweaver.track_adjustment import PolishConfig, Polished
from geoweaver.track_adjustment import adjust as really_adjust

pytestmark = pytest.mark.slow


def opened(folder: Path) -> tuple[Frames, SavedRun, Store]:
    store = Store.reader(folder / "work")
    artifact = store.load("result", "run", json.loads((folder / "run.json").read_text())["result"])
    saved = restore(SavedRun, artifact.tensors, artifact.meta)
    frames = Frames(
        saved.names, saved.timestamps, saved.camera, saved.keyframe, saved.cameras, saved.size,
        None, None, saved.broken, saved.digests,
    )  # fmt: skip
    return frames, saved, store


def knocked(saved: SavedRun, size: float) -> SavedRun:
    """Every camera moved and turned a little, the first not."""
    generator = torch.Generator().manual_seed(0)
    by = size * torch.randn(len(saved.result), 6, generator=generator, dtype=torch.float64)
    by[0] = 0
    cameras = SE3.exp(by) @ saved.result.cam_from_world
    # as unsure as they are wrong
    sigma = torch.full_like(saved.result.sigma, size)
    return replace(saved, result=replace(saved.result, cam_from_world=cameras, sigma=sigma))


def turns(a: SavedRun, b: SavedRun) -> float:
    """Median angle between neighbouring cameras' relative rotations in two runs."""
    one, two = (s.result.cam_from_world.rotation for s in (a, b))
    step = (one[1:] @ one[:-1].mT) @ (two[1:] @ two[:-1].mT).mT
    return float(torch.arccos(((step.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2).clamp(-1, 1)).median())


def points_before(cameras: SE3, depth: float) -> Tracks:
    """Fifty points at one depth before the cameras, seen by all of them."""
    count = len(cameras.translation)
    grid = torch.linspace(-1, 1, 50, dtype=torch.float64)
    position = cameras.centre.mean(0) + torch.stack([grid, grid.flip(0), torch.full_like(grid, depth)], 1)
    point, frame = torch.arange(50).repeat_interleave(count), torch.arange(count).repeat(50)
    pixel, error = torch.zeros(len(point), 2).double(), torch.zeros(len(point)).double()
    return Tracks(position, torch.zeros(50, 3, dtype=torch.uint8), point, frame, pixel, error)


@pytest.mark.parametrize(("times", "doubted"), [(1.0, False), (100.0, True)])
def test_a_run_whose_camera_hardly_moved_is_doubted(finished: Path, times: float, doubted: bool) -> None:
    _, saved, _ = opened(finished)
    cameras = saved.result.cam_from_world
    extent = float((cameras.centre - cameras.centre[0]).norm(dim=1).max())
    said = slight_motion(saved.result, points_before(cameras, times * extent), calibrated=False)
    assert bool(said) is doubted
    assert not said or ("moved so little" in said[0] and "--intrinsics" in said[0])


def test_knocked_cameras_come_back(finished: Path) -> None:
    frames, saved, store = opened(finished)
    wrong = knocked(saved, 0.002)
    right = polish_run(frames, wrong, PolishConfig(), store)
    assert turns(right, saved) < 0.4 * turns(wrong, saved)
    assert right.result.reports[-1].name == NAME and "held back" in right.result.reports[-1].notes[0]
    # so short a walk does not tell the lens
    assert torch.equal(right.result.intrinsics, wrong.result.intrinsics)
    assert "do not tell its lens" in right.result.reports[-1].notes[1]
    # lengths stay what they were
    depth = torch.log(right.depth_scale / wrong.depth_scale)[saved.chunk >= 0]
    assert depth.quantile(0.5).abs() < 1e-3


def test_it_is_undone_where_held_back_tracks_object(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, saved, store = opened(finished)

    def spoilt(run: FinishedRun, tracks: Tracks, used: torch.Tensor, config: PolishConfig) -> Polished:
        found = really_adjust(run, tracks, used, config)
        return replace(found, cam_from_world=knocked(saved, 0.02).result.cam_from_world[found.frame])

    monkeypatch.setattr("geoweaver.polishing.adjust", spoilt)
    kept = polish_run(frames, saved, PolishConfig(), store)
    assert torch.equal(kept.result.cam_from_world.translation, saved.result.cam_from_world.translation)
    assert kept.result.reports[-1].notes[0].startswith("undone")


def test_frames_without_tracks_follow_their_neighbour(finished: Path) -> None:
    _, saved, _ = opened(finished)
    frame = torch.tensor([0, 6])
    moved = SE3.exp(torch.tensor([[0.1, 0, 0, 0, 0.2, 0], [0, 0.3, 0, 0, 0, 0]], dtype=torch.float64))
    lens = saved.result.intrinsics[frame]
    found = Polished(frame, moved @ saved.result.cam_from_world[frame], lens, torch.ones(2).double())
    after, before = apply(saved, found).result.cam_from_world, saved.result.cam_from_world
    # relative to the frame it follows nothing changed
    for follower, leader in ((1, 0), (7, 6), (13, 6)):
        now, then = (c[follower] @ c[leader].inverse() for c in (after, before))
        assert torch.allclose(now.matrix(), then.matrix(), atol=1e-9)


def test_cameras_that_move_far_are_doubted(finished: Path) -> None:
    """Half of the way, but nothing for a similarity that moves all of them."""
    _, saved, _ = opened(finished)
    saved = replace(saved, result=replace(saved.result, sigma=torch.full_like(saved.result.sigma, 1e-4)))
    frame = torch.arange(len(saved.result))
    cameras = saved.result.cam_from_world
    turn = SE3.exp(torch.tensor([0.3, 0.1, 0.2, 0.5, 0.4, 0.3], dtype=torch.float64))
    same = SE3(cameras.rotation @ turn.rotation.mT, 2 * (cameras @ turn.inverse()).translation)
    whole = replace(saved, result=replace(saved.result, cam_from_world=same))
    assert torch.equal(doubted(saved, whole, frame), saved.result.sigma)
    step = torch.zeros(len(frame), 6, dtype=torch.float64)
    step[5, 0], step[9, 4] = 0.02, 0.03
    knocked_two = replace(saved, result=replace(saved.result, cam_from_world=SE3.exp(step) @ cameras))
    sigma = doubted(saved, knocked_two, frame)
    assert sigma[5, 0] == pytest.approx(0.01, rel=0.2) and sigma[9, 1] == pytest.approx(0.015, rel=0.2)
    # what the two shift the middle by is all that the others lose
    assert (sigma[[0, 3, 12]] < 0.0025).all()


def test_it_can_be_left_out(small: Path, finished: Path, tmp_path: Path) -> None:
    options = (*OPTIONS, "--outputs", "cameras", "--no-polish")
    assert geoweaver("reconstruct", small / "images", "-o", tmp_path / "plain", *options).returncode == 0
    assert (tmp_path / "plain/trajectory.tum").read_bytes() != (finished / "trajectory.tum").read_bytes()

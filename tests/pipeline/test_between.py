"""Frames that the weave left out, and what is said of those that nothing can place."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from geoweaver import between
from geoweaver.between import STAGE, Gap, Located, find_gaps, locate_rest, of_guessed_focal, with_located
from geoweaver.datatypes import Camera, EdgeKind, Frames, Reconstruction, ViewGraph
from geoweaver.engine import LocalEngine
from geoweaver.geometry import SE3
from geoweaver.store import Store, flatten

CAMERA = Camera("PINHOLE", (300.0, 300.0, 160.0, 120.0), 320, 240)


def two_cameras() -> Frames:
    """Three frames of one camera, two of another."""
    return Frames(
        tuple("abcde"), torch.arange(5.0), torch.tensor([0, 0, 0, 1, 1]), torch.ones(5, dtype=torch.bool),
        (CAMERA, CAMERA), (320, 240),
    )  # fmt: skip


def placed_but_the_last(frames: Frames) -> Reconstruction:
    trusted = torch.tensor([True, True, True, False, False])
    sigma = torch.where(trusted[:, None], 0.01, torch.inf).double().expand(5, 2)
    cameras = SE3(torch.eye(3, dtype=torch.float64).repeat(5, 1, 1), torch.zeros(5, 3, dtype=torch.float64))
    intrinsics = torch.tensor(CAMERA.params, dtype=torch.float64).repeat(5, 1)
    reason = {3: "the prior could not place it", 4: "between keyframes"}
    return Reconstruction(
        frames.names, frames.timestamps.double(), cameras, intrinsics, frames.size, trusted, sigma, reason
    )


def found_for(frame: int, firm: bool = True) -> Located:
    """A place that points believe in, those of trusted keyframes or not."""
    return Located(
        torch.tensor([frame]), SE3(torch.eye(3, dtype=torch.float64)[None], torch.ones(1, 3).double()),
        torch.full((1, 2), 0.01, dtype=torch.float64), torch.tensor([90]), torch.tensor([100]),
        torch.tensor([True]), torch.tensor([firm]),
    )  # fmt: skip


def test_a_camera_without_any_placed_frame_is_left_untrusted_with_a_reason() -> None:
    frames = two_cameras()
    result = placed_but_the_last(frames)
    gaps = list(find_gaps(frames, [0, 1, 2]))
    assert gaps == [Gap(None, (3, 4), None)]
    told = with_located(result, gaps[0], found_for(3))
    assert told.trusted.tolist() == [True, True, True, False, False]
    assert set(told.reason) == {3, 4} and "no frame of its camera" in told.reason[3]
    assert torch.equal(told.cam_from_world.translation, result.cam_from_world.translation)


def test_a_frame_beside_a_trusted_one_is_trusted() -> None:
    told = with_located(placed_but_the_last(two_cameras()), Gap(2, (3,), None), found_for(3))
    assert told.trusted.tolist() == [True, True, True, True, False] and set(told.reason) == {4}


def test_a_frame_that_only_untrusted_keyframes_place_is_not_trusted() -> None:
    told = with_located(placed_but_the_last(two_cameras()), Gap(2, (3,), 4), found_for(3, firm=False))
    assert not told.trusted[3] and "not trusted" in told.reason[3]
    assert told.sigma[3].isinf().all()


def test_frames_beside_another_camera_in_the_same_folder_lie_in_a_gap_with_ends() -> None:
    turned = replace(two_cameras(), folder=torch.zeros(5, dtype=torch.int64))
    assert list(find_gaps(turned, [0, 1, 4])) == [Gap(1, (2, 3), 4)]


def test_a_good_place_among_other_cameras_frames_is_kept_where_the_focal_is_known() -> None:
    result = placed_but_the_last(two_cameras())
    told = with_located(result, Gap(None, (3, 4), None), found_for(3), matched=[1, 2])
    assert told.trusted.tolist() == [True, True, True, True, False] and set(told.reason) == {4}
    assert told.cam_from_world.translation[3].tolist() == [1.0, 1.0, 1.0]
    assert 0.01 < float(told.sigma[3, 0]) < 0.05


def test_a_focal_that_is_a_mere_guess_is_known_once_a_frame_is_placed() -> None:
    frames = two_cameras()
    assert of_guessed_focal(frames, [0, 1]).tolist() == [False, False, False, True, True]
    assert not of_guessed_focal(frames, [0, 4]).any()
    hinted = replace(frames, cameras=(CAMERA, replace(CAMERA, focal_hint=True)))
    assert not of_guessed_focal(hinted, [0]).any()


@pytest.mark.parametrize("hint", [True, False])
def test_frames_matched_with_other_cameras_are_placed_by_their_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hint: bool
) -> None:
    """Nothing of the second camera was placed; its matches with the first one's frames say where it is."""
    frames = replace(two_cameras(), cameras=(CAMERA, replace(CAMERA, focal_hint=hint)))
    result = placed_but_the_last(frames)
    graph = ViewGraph(torch.tensor([[2, 3]]), torch.tensor([int(EdgeKind.LONG_RANGE)]))
    unread = SimpleNamespace(frames=(0, 1, 2), read=lambda at: pytest.fail("read"))
    with Store.open(tmp_path) as store:
        store.save(STAGE, "gap", "found", *flatten(found_for(3)))
        monkeypatch.setattr(between._LocateGap, "__call__", lambda task, gap: ("gap", "found"))
        told = locate_rest(frames, result, graph, unread, unread, "key", store, LocalEngine(1))
    assert told.trusted.tolist() == [True, True, True, hint, False]
    assert ("no frame of its camera" in told.reason.get(3, "")) == (not hint)

"""From pixels to cameras and depth, alone: exact scenes, degenerate ones, the same bytes every time."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from painted_wall import FOCAL, ReadFeatures, Walk, sideways, walk

from geoweaver.datatypes import Chunk, Frames
from geoweaver.geometry import SE3
from geoweaver.geometry.registration import umeyama
from geoweaver.geometry.so3 import rotation_angle
from geoweaver.priors import SfmConfig, SfmEstimate, SfmPrior
from geoweaver.priors.plane_sweep import SweepConfig
from geoweaver.priors.sfm import _slight_motion
from geoweaver.priors.sfm_mapping import MappingCamera, SparseModel

CONFIG = SfmConfig(sweep=SweepConfig(pixels=12_000, share=0.0, planes=48))


def estimate(taken: Walk, calibrated: bool = True) -> SfmEstimate:
    prior = SfmPrior(CONFIG)
    chunk = Chunk(0, tuple(range(len(taken.images))))
    context = prior.prepare(taken.frames(calibrated), [chunk], ReadFeatures(taken))
    return prior.estimate(chunk, context)


@pytest.fixture(scope="module")
def taken() -> Walk:
    return sideways(12)


@pytest.fixture(scope="module")
def found(taken: Walk) -> SfmEstimate:
    return estimate(taken)


def test_all_frames_are_in_one_piece_with_true_cameras(taken: Walk, found: SfmEstimate) -> None:
    assert len(found.priors) == 1 and not found.reason
    prior = found.priors[0]
    assert prior.frame.tolist() == list(range(12))
    truth = taken.cam_from_world.centre
    aligned = umeyama(prior.cam_from_chunk.centre, truth)
    error = (aligned.act(prior.cam_from_chunk.centre) - truth).norm(dim=1)
    assert error.max() < 0.02


def test_depth_is_true_up_to_the_pieces_one_scale(taken: Walk, found: SfmEstimate) -> None:
    prior = found.priors[0]
    scale = umeyama(prior.cam_from_chunk.centre, taken.cam_from_world.centre).scale
    height, width = prior.depth.shape[1:]
    y = ((np.arange(height) + 0.5) * 160 / height).astype(int)
    x = ((np.arange(width) + 0.5) * 240 / width).astype(int)
    truth = torch.from_numpy(taken.depth[:, y][:, :, x])
    valid = prior.depth > 0
    error = (prior.depth * scale - truth).abs() / truth
    sure = valid & (prior.confidence >= prior.confidence[valid].median())
    assert valid.float().mean() > 0.85
    assert error[valid].mean() < 0.1 and error[sure].mean() < 0.03


def test_intrinsics_are_those_of_the_depth_maps(found: SfmEstimate) -> None:
    prior = found.priors[0]
    width = prior.depth.shape[2]
    torch.testing.assert_close(prior.intrinsics[0, 0], torch.tensor(FOCAL * width / 240).double())
    assert prior.depth.dtype == torch.float32


def test_the_same_pixels_give_the_same_bytes(taken: Walk, found: SfmEstimate) -> None:
    again = estimate(taken)
    for one, other in zip(found.priors, again.priors, strict=True):
        assert torch.equal(one.depth, other.depth) and torch.equal(one.confidence, other.confidence)
        assert torch.equal(one.cam_from_chunk.translation, other.cam_from_chunk.translation)


def test_model_and_context_travel_to_workers(taken: Walk) -> None:
    prior = SfmPrior(CONFIG)
    context = prior.prepare(taken.frames(), [Chunk(0, (0, 1))], ReadFeatures(taken))
    other, sent = pickle.loads(pickle.dumps((prior, context)))
    assert other == prior and sent.cameras == context.cameras


def test_a_turn_on_the_spot_is_said() -> None:
    k = np.arange(8)
    turning = walk(np.zeros((8, 3)), np.stack([0 * k, 0.03 * k, 0 * k], 1).astype(float))
    found = estimate(turning)
    assert not found.priors and set(found.reason) == set(range(8))
    assert all("turned" in words for words in found.reason.values())


def test_a_still_camera_is_said() -> None:
    assert all("hardly moved" in words for words in estimate(walk(np.zeros((6, 3)))).reason.values())


def test_blank_images_are_said(taken: Walk) -> None:
    blank = Walk(np.full_like(taken.images, 128), taken.depth, taken.cam_from_world)
    found = estimate(blank)
    assert not found.priors and all("texture" in words for words in found.reason.values())


def test_an_unknown_focal_is_found_by_the_chunks_together() -> None:
    k = np.arange(24)
    angle = 0.05 * (k - 12)
    # around the board: a walk straight along a wall would not determine the focal
    centres = np.stack([0.3 - 2.4 * np.sin(angle), 0.15 * np.sin(0.7 * k), 2.6 - 2.4 * np.cos(angle)], 1)
    around = walk(centres, np.stack([0 * k, -angle, 0 * k], 1))
    frames = around.frames(calibrated=False)
    wrong = tuple(1.25 * v if i < 2 else v for i, v in enumerate(frames.cameras[0].rectified or ()))
    frames = replace(frames, cameras=(replace(frames.cameras[0], rectified=wrong),))
    chunks = [Chunk(0, tuple(range(13))), Chunk(1, tuple(range(12, 24)))]
    context = SfmPrior(CONFIG).prepare(frames, chunks, ReadFeatures(around))
    camera = context.cameras[0]
    assert camera.fixed and camera.intrinsics[0] == pytest.approx(FOCAL, rel=0.05)
    assert "focal" in context.notes[0]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_handful_of_images_is_placed(count: int) -> None:
    few = sideways(count, step=0.3)
    found = estimate(few)
    assert [prior.frame.tolist() for prior in found.priors] == [list(range(count))] and not found.reason
    cameras = found.priors[0].cam_from_chunk
    turned = (cameras[0] @ cameras[-1].inverse()).rotation.T
    true = (few.cam_from_world[0] @ few.cam_from_world[-1].inverse()).rotation
    assert rotation_angle(turned @ true) < 0.02


def test_two_alike_images_are_said_to_be_so() -> None:
    assert all("hardly moved" in words for words in estimate(walk(np.zeros((2, 3)))).reason.values())


def test_a_guessed_focal_is_told(taken: Walk) -> None:
    def notes(frames: Frames) -> tuple[str, ...]:
        return SfmPrior(CONFIG).learn(frames, [Chunk(0, (0, 1))], ReadFeatures(taken)).notes

    (note,) = notes(taken.frames(calibrated=False))
    assert "neither the files nor an option tell the focal" in note and "220.0 px, 0.92 times" in note
    assert notes(taken.frames()) == ()
    frames = taken.frames(calibrated=False)
    hinted = replace(frames, cameras=(replace(frames.cameras[0], focal_hint=True),))
    assert notes(hinted) == ()


def test_little_motion_is_a_note_of_its_chunk() -> None:
    chunk, camera = Chunk(3, (0, 1)), MappingCamera((220.0, 220.0, 120.0, 80.0), (240, 160), fixed=True)
    far = np.array([[0.0, 0.0, 1000.0]])
    centre = torch.tensor([[0.0, 0, 0], [1.0, 0, 0]], dtype=torch.float64)
    cameras = SE3(torch.eye(3, dtype=torch.float64).expand(2, 3, 3), -centre)
    model = SparseModel(np.array([0, 1]), cameras, camera.intrinsics, far, np.zeros((2, 1), np.int64))
    (note,) = _slight_motion(chunk, [model], camera)
    assert note.startswith("chunk 3: the camera moved so little")
    near = replace(model, points=far / 500)
    assert _slight_motion(chunk, [near], camera) == ()

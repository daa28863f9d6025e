"""Sound models stay whole; bent ones and those without a common scale are cut where they should be."""

from dataclasses import replace

import numpy as np
import torch

from geoweaver.geometry import SE3
from geoweaver.priors.sfm_check import (
    is_sound,
    pair_verdicts,
    soundness,
    split_model,
    sub_model,
    weakest_cut,
    without_strays,
)
from geoweaver.priors.sfm_mapping import SparseModel
from geoweaver.priors.sfm_pairs import VerifiedPair, chunk_pairs

CAMERA = (300.0, 300.0, 200.0, 150.0)


def scene(frames: int = 24, reach: int = 12) -> tuple[SparseModel, list[VerifiedPair], list[np.ndarray]]:
    """A camera passing points; each point is seen by the `reach` frames nearest to it."""
    rng = np.random.default_rng(0)
    points = rng.uniform([-1.5, -1, 3], [frames * 0.15 + 1.5, 1, 6], (1500, 3))
    centres = np.stack([0.15 * np.arange(frames), np.zeros(frames), np.zeros(frames)], 1)
    cameras = SE3(torch.eye(3).double().expand(frames, 3, 3), torch.from_numpy(-centres))
    keypoints = [(points - c)[:, :2] / points[:, 2:] * 300 + [200, 150] for c in centres]
    middle = np.clip(points[:, 0] / 0.15, 0, frames)
    point_of = np.where(np.abs(np.arange(frames)[:, None] - middle) < reach / 2, np.arange(1500), -1)
    model = SparseModel(np.arange(frames), cameras, CAMERA, points, point_of)
    pairs = []
    for a, b in chunk_pairs(frames):
        both = np.flatnonzero((point_of[a] >= 0) & (point_of[b] >= 0))
        if len(both) >= 15:
            pairs.append(VerifiedPair(a, b, np.stack([both, both], 1)))
    return model, pairs, keypoints


def bent(model: SparseModel, at: int, angle: float = 0.15) -> SparseModel:
    """The cameras from a row on turned about a wrong axis, as a wrong registration leaves them."""
    turn = SE3.exp(torch.tensor([0.2, 0.0, 0.0, 0.0, angle, 0.0], dtype=torch.float64))
    rotation, translation = model.cam_from_chunk.rotation.clone(), model.cam_from_chunk.translation.clone()
    wrong = turn @ model.cam_from_chunk[at:]
    rotation[at:], translation[at:] = wrong.rotation, wrong.translation
    return replace(model, cam_from_chunk=SE3(rotation, translation))


def test_a_true_model_is_sound_and_stays_whole() -> None:
    model, pairs, keypoints = scene()
    verdicts = pair_verdicts(model, pairs, keypoints)
    assert is_sound(verdicts) and soundness(verdicts) > 0.99
    pieces = list(split_model(model, pairs, keypoints, 5))
    assert len(pieces) == 1 and pieces[0].member.tolist() == model.member.tolist()


def test_a_bent_model_is_unsound_and_cut_at_the_bend() -> None:
    model, pairs, keypoints = scene()
    # cameras from row 14 on are turned together with the points that belong to them, as after a wrong step
    later = model.points[:, 0] / 0.15 >= 14
    wrong = bent(model, 14)
    turned = wrong.cam_from_chunk[14].inverse() @ model.cam_from_chunk[14]
    points = np.where(later[:, None], turned.act(torch.from_numpy(model.points)).numpy(), model.points)
    wrong = replace(wrong, points=points)
    assert not is_sound(pair_verdicts(wrong, pairs, keypoints))
    own = model.point_of.copy()
    own[14:, ~later] = -1
    own[:14, later] = -1
    pieces = list(split_model(replace(wrong, point_of=own), pairs, keypoints, 5))
    assert sum(len(piece) for piece in pieces) >= 18
    assert all(piece.member.max() < 14 or piece.member.min() >= 14 for piece in pieces)


def test_repeated_objects_do_not_condemn_a_model() -> None:
    model, pairs, keypoints = scene()
    far = [replace_some(pair, keypoints) for pair in pairs]
    assert is_sound(pair_verdicts(model, far, keypoints))


def replace_some(pair: VerifiedPair, keypoints: list[np.ndarray]) -> VerifiedPair:
    """Half of the matches lead to another place on the other side of the image."""
    matches = pair.matches.copy()
    for row in range(0, len(matches), 2):
        gap = np.linalg.norm(keypoints[pair.b] - keypoints[pair.b][matches[row, 1]], axis=1)
        matches[row, 1] = int(gap.argmax())
    return VerifiedPair(pair.a, pair.b, matches)


def test_a_single_frame_put_elsewhere_is_dropped_and_no_other() -> None:
    model, pairs, keypoints = scene()
    assert len(without_strays(model, pairs, keypoints)) == len(model)
    cameras = model.cam_from_chunk
    away = cameras.translation.clone()
    away[9] += torch.tensor([40.0, 0.0, 0.0])
    wrong = replace(model, cam_from_chunk=SE3(cameras.rotation, away))
    # gross misses are what repeated objects look like, so no pair alone condemns the frame
    assert is_sound(pair_verdicts(wrong, pairs, keypoints))
    assert without_strays(wrong, pairs, keypoints).member.tolist() == [k for k in range(24) if k != 9]


def test_repeated_objects_make_no_strays() -> None:
    model, pairs, keypoints = scene()
    far = [replace_some(pair, keypoints) for pair in pairs]
    assert len(without_strays(model, far, keypoints)) == len(model)


def test_halves_without_common_points_have_no_common_scale() -> None:
    model, _, keypoints = scene(reach=10)
    assert weakest_cut(model, keypoints) == 0
    middle = np.clip(model.points[:, 0] / 0.15, 0, 24)
    own = model.point_of.copy()
    own[12:, middle < 12] = -1
    own[:12, middle >= 12] = -1
    assert weakest_cut(replace(model, point_of=own), keypoints) == 12


def test_a_model_without_points_is_cut_nowhere() -> None:
    model, _, keypoints = scene()
    bare = replace(model, points=model.points[:0], point_of=np.full_like(model.point_of, -1))
    assert weakest_cut(bare, keypoints) == 0


def test_a_sub_model_keeps_points_that_two_of_its_cameras_see() -> None:
    model, _, _ = scene()
    part = sub_model(model, np.arange(24) < 6)
    seen = part.point_of[part.point_of >= 0]
    assert np.bincount(seen).min() >= 2 and len(part.points) == seen.max() + 1
    row, feature = np.nonzero(part.point_of >= 0)
    expected = model.points[model.point_of[row, feature]]
    np.testing.assert_array_equal(part.points[part.point_of[row, feature]], expected)

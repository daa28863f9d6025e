"""Cameras that no point ties to the rest still have matches with it: what these contradict is cut."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_sfm_check import scene
from test_sfm_pieces import GIVEN, runs

from geoweaver.geometry import SE3
from geoweaver.geometry.epipolar import calibrated_inliers, epipolar_inliers
from geoweaver.priors.sfm_check import NEAR, is_sound, pair_verdicts, split_model, sub_model
from geoweaver.priors.sfm_mapping import SparseModel
from geoweaver.priors.sfm_pairs import VerifiedPair
from geoweaver.priors.sfm_pieces import sound_pieces
from geoweaver.priors.sfm_tears import cut_evidence, torn_cut


def adrift(at: int = 14) -> SparseModel:
    """The frames from a row on stand elsewhere as one; of what both sides see no point is left."""
    model, _, _ = scene()
    away = SE3.exp(torch.tensor([0.3, 0.2, 0.0, 0.1, 0.4, 0.2], dtype=torch.float64))
    rotation, translation = model.cam_from_chunk.rotation.clone(), model.cam_from_chunk.translation.clone()
    moved = model.cam_from_chunk[at:] @ away
    rotation[at:], translation[at:] = moved.rotation, moved.translation
    before, after = ((rows >= 0).any(0) for rows in (model.point_of[:at], model.point_of[at:]))
    there = away.inverse().act(torch.from_numpy(model.points)).numpy()
    return replace(
        model,
        cam_from_chunk=SE3(rotation, translation),
        points=np.where(after[:, None], there, model.points),
        point_of=np.where(before & after, -1, model.point_of),
    )


def test_a_true_model_is_torn_nowhere() -> None:
    model, pairs, keypoints = scene()
    every, agreeing = cut_evidence(model, pairs, keypoints, NEAR)
    assert every.min() > 25 and (agreeing == every).all()
    assert torn_cut(model, pairs, keypoints, NEAR) == 0


def test_a_tear_without_common_points_is_found_and_cut() -> None:
    _, pairs, keypoints = scene()
    wrong = adrift()
    # nothing that points say speaks against it
    assert is_sound(pair_verdicts(wrong, pairs, keypoints))
    assert torn_cut(wrong, pairs, keypoints, NEAR) == 14
    pieces = list(split_model(wrong, pairs, keypoints, 5))
    assert [p.member.tolist() for p in pieces] == [list(range(14)), list(range(14, 24))]


def test_a_torn_model_is_not_believed_where_another_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs, keypoints = scene()
    runs(monkeypatch, [[adrift()], [model]])
    found = sound_pieces(keypoints, pairs, GIVEN, 5)
    assert found.attempts == 2 and [p.member.tolist() for p in found.models] == [list(range(24))]


def test_repeated_objects_tear_nothing() -> None:
    model, pairs, keypoints = scene()
    rng = np.random.default_rng(0)
    far = [mistaken(pair, rng) for pair in pairs]
    assert torn_cut(model, far, keypoints, NEAR) == 0


def mistaken(pair: VerifiedPair, rng: np.random.Generator) -> VerifiedPair:
    """Two in five of the matches exchanged at random."""
    matches = pair.matches.copy()
    some = rng.permutation(len(matches))[: 2 * len(matches) // 5]
    matches[some, 1] = matches[rng.permutation(some), 1]
    return replace(pair, matches=matches)


def test_a_few_matches_say_nothing() -> None:
    _, pairs, keypoints = scene()
    few = [replace(pair, matches=pair.matches[:2]) for pair in pairs if pair.b - pair.a == 1]
    assert torn_cut(adrift(), few, keypoints, NEAR) == 0
    assert torn_cut(sub_model(adrift(), np.arange(24) == 0), pairs, keypoints, NEAR) == 0


def test_what_is_matched_a_shelf_higher_accuses_no_camera() -> None:
    """A free geometry fits wrong matches of repeated objects too; a motion of known lenses does not."""
    rng = np.random.default_rng(0)
    lens = np.array([400.0, 400.0, 256.0, 144.0])
    turn = np.array([[1, 0, -0.05], [0, 1, 0], [0.05, 0, 1]])
    point = np.stack([rng.uniform(-2, 2, 400), rng.uniform(-1, 1, 400), rng.uniform(3, 6, 400)], 1)
    wrong = point[:, 0] > 1.3
    point[wrong, 2] = 3 + 0.2 * point[wrong, 0]
    shelf = wrong[:, None] * np.array([0.0, 0.5, 0.0])
    p, q = (x[:, :2] / x[:, 2:] * 400 + lens[2:] for x in (point, (point + shelf) @ turn.T + [0.1, 0, 0]))
    right = int((~wrong).sum())
    assert int(epipolar_inliers(p, q, 2.0).sum()) > 1.1 * right
    assert right <= int(calibrated_inliers(p, q, lens, lens, 2.0).sum()) <= 1.02 * right

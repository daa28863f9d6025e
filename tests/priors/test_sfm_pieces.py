"""Which of several mapping runs is believed, and what becomes of the frames that it leaves out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from test_sfm_check import CAMERA, bent, scene

from geoweaver.priors import sfm_pieces
from geoweaver.priors.sfm_check import sub_model
from geoweaver.priors.sfm_mapping import MappingCamera, SparseModel
from geoweaver.priors.sfm_pieces import sound_pieces

GIVEN = MappingCamera(CAMERA, (400, 300), fixed=True)


def runs(monkeypatch: pytest.MonkeyPatch, answers: Sequence[list[SparseModel]]) -> list[set[int]]:
    """Let the mapper give these answers in turn, then none; the frames it was asked about are recorded."""
    asked: list[set[int]] = []
    left = list(answers)

    def answer(keypoints: Any, pairs: Any, *rest: Any) -> list[SparseModel]:
        asked.append({p.a for p in pairs} | {p.b for p in pairs})
        return left.pop(0) if left else []

    monkeypatch.setattr(sfm_pieces, "map_chunk", answer)
    monkeypatch.setattr(sfm_pieces, "map_globally", answer)
    return asked


def test_a_smaller_sound_model_is_believed_before_a_larger_bent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs, keypoints = scene()
    sound = sub_model(model, np.arange(24) >= 8)
    asked = runs(monkeypatch, [[bent(model, 14, 0.03)], [sound]])
    found = sound_pieces(keypoints, pairs, GIVEN, 5)
    assert found.attempts == 2 and [p.member.tolist() for p in found.models] == [list(range(8, 24))]
    # the frames that it lacks are mapped by themselves, with the two next to them
    assert asked[2] == set(range(10))


def test_frames_left_over_become_a_piece_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs, keypoints = scene()
    first, second = sub_model(model, np.arange(24) >= 8), sub_model(model, np.arange(24) < 10)
    runs(monkeypatch, [[first], [second]])
    found = sound_pieces(keypoints, pairs, GIVEN, 5)
    assert [p.member.tolist() for p in found.models] == [list(range(8, 24)), list(range(10))]


def test_a_bent_model_leaves_the_part_that_its_own_matches_agree_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, pairs, keypoints = scene()
    wrong = bent(model, 14, 0.03)
    runs(monkeypatch, [[wrong]] * 4)
    found = sound_pieces(keypoints, pairs, GIVEN, 5).models
    assert found and all({int(m) for m in piece.member} <= set(range(14)) for piece in found)


def test_a_focal_that_ran_away_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs, keypoints = scene()
    runs(monkeypatch, [[model]] * 4)
    other = MappingCamera((400.0, 400.0, 200.0, 150.0), (400, 300), fixed=True)
    assert sound_pieces(keypoints, pairs, other, 5).models == ()


def test_where_no_focal_is_found_the_lens_is_believed_that_matches_agree_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, pairs, keypoints = scene()
    tried: list[float] = []

    def all_at_once(keypoints: Any, pairs: Any, camera: MappingCamera, seed: int) -> list[SparseModel]:
        tried.append(camera.intrinsics[0])
        assert camera.fixed, "a free focal would run away again"
        return [model if np.isclose(camera.intrinsics[0], CAMERA[0]) else bent(model, 12, 0.03)]

    monkeypatch.setattr(sfm_pieces, "map_chunk", lambda *told: [])
    monkeypatch.setattr(sfm_pieces, "map_globally", all_at_once)
    normal = CAMERA[0] / 0.7
    unknown = MappingCamera((normal, normal, *CAMERA[2:]), (400, 300), fixed=False)
    found = sound_pieces(keypoints, pairs, unknown, 5).models
    assert [len(piece) for piece in found] == [len(model)] and found[0].intrinsics[0] == CAMERA[0]
    np.testing.assert_allclose(tried, [normal, CAMERA[0], normal / 2])
    # votes on a focal are not given by a lens that was only tried
    assert sound_pieces(keypoints, pairs, unknown, 5, retries=0).models == () and len(tried) == 3

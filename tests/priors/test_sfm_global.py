"""All cameras of a chunk at once: a known scene comes out, the same every time."""

import numpy as np
import pytest
import torch
from test_sfm_check import CAMERA, bent, scene
from test_sfm_pieces import runs

from geoweaver.priors.sfm_global import map_globally
from geoweaver.priors.sfm_mapping import MappingCamera
from geoweaver.priors.sfm_pieces import sound_pieces

GIVEN = MappingCamera(CAMERA, (400, 300), fixed=True)


def test_a_known_scene_comes_out() -> None:
    _, pairs, keypoints = scene()
    rng = np.random.default_rng(1)
    noisy = [k + rng.normal(0, 0.3, k.shape) for k in keypoints]
    found = map_globally(noisy, pairs, GIVEN)
    assert [len(m) for m in found] == [24] and found[0].intrinsics == CAMERA
    # on a straight way with even steps every frame lies at its share of the way
    way = found[0].cam_from_chunk.centre - found[0].cam_from_chunk.centre[0]
    share = torch.arange(24).double()[:, None] / 23
    assert (way - share * way[-1]).norm(dim=1).max() < 0.01 * way[-1].norm()
    again = map_globally(noisy, pairs, GIVEN)[0]
    assert torch.equal(again.cam_from_chunk.translation, found[0].cam_from_chunk.translation)


def test_it_is_tried_where_the_model_made_frame_by_frame_is_bent(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs, keypoints = scene()
    monkeypatch.setattr("geoweaver.priors.sfm_pieces.map_chunk", lambda *_: [bent(model, 14, 0.03)])
    found = sound_pieces(keypoints, pairs, GIVEN, 5)
    assert found.attempts == 2 and [len(m) for m in found.models] == [24]
    # a focal that is known roughly would bend what is averaged, and no other lens is tried
    runs(monkeypatch, [])
    monkeypatch.setattr("geoweaver.priors.sfm_pieces.map_globally", _not_expected)
    sound_pieces(keypoints, pairs, MappingCamera(CAMERA, (400, 300), fixed=False, told=True), 5)


def _not_expected(*_: object) -> None:
    raise AssertionError("global mapping with a rough focal")

"""No motion, a mere turn and a lack of texture are told from a walk."""

import numpy as np
import pytest
import torch

from geoweaver.geometry.so3 import so3_exp
from geoweaver.priors.sfm_mapping import MappingCamera
from geoweaver.priors.sfm_motion import Motion, chunk_motion, first_pairs, pair_motion
from geoweaver.priors.sfm_pairs import VerifiedPair, chunk_pairs

N = 12


def seen(step: float, turn: float, seed: int = 0) -> list[np.ndarray]:
    """Keypoints of points at 3 to 6 m, from a camera that steps to the side and turns."""
    rng = np.random.default_rng(seed)
    points = rng.uniform([-2, -1.5, 3], [2, 1.5, 6], (200, 3))
    shown = []
    for k in range(N):
        rotation = so3_exp(torch.tensor([0.0, turn * k, 0.0], dtype=torch.float64)).numpy()
        local = (points - [step * k, 0, 0]) @ rotation.T
        shown.append(local[:, :2] / local[:, 2:] * 400 + [320, 240] + rng.normal(0, 0.2, (200, 2)))
    return shown


def verdict(keypoints: list[np.ndarray], focal: float, fixed: bool) -> Motion:
    camera = MappingCamera((focal, focal, 320.0, 240.0), (640, 480), fixed)
    pairs = [VerifiedPair(a, b, np.stack([np.arange(200)] * 2, 1)) for a, b in chunk_pairs(N)]
    return chunk_motion(pairs, [pair_motion(p, keypoints, camera) for p in pairs], keypoints)


@pytest.mark.parametrize(("focal", "fixed"), [(400.0, True), (400.0, False), (540.0, False)])
def test_walks_and_turns(focal: float, fixed: bool) -> None:
    assert verdict(seen(0.1, 0.01), focal, fixed) is Motion.MOVES
    assert verdict(seen(0.0, 0.02), focal, fixed) is Motion.TURNS
    assert verdict(seen(0.0, 0.0), focal, fixed) is Motion.STILL


def test_blank_frames_and_frames_without_overlap() -> None:
    assert chunk_motion([], [], [np.zeros((3, 2))] * N) is Motion.NO_TEXTURE
    assert chunk_motion([], [], [np.zeros((300, 2))] * N) is Motion.NO_OVERLAP


def test_two_frames_that_are_alike_stand_still() -> None:
    keypoints = seen(0.0, 0.0)[:2]
    camera = MappingCamera((400.0, 400.0, 320.0, 240.0), (640, 480), False)
    pairs = [VerifiedPair(0, 1, np.stack([np.arange(200)] * 2, 1))]
    assert chunk_motion(pairs, [pair_motion(pairs[0], keypoints, camera)], keypoints) is Motion.STILL


def test_of_a_handful_of_images_two_that_overlap_are_enough() -> None:
    keypoints = seen(0.1, 0.01)
    camera = MappingCamera((400.0, 400.0, 320.0, 240.0), (640, 480), True)
    pair = VerifiedPair(0, 1, np.stack([np.arange(200)] * 2, 1))
    motions = [pair_motion(pair, keypoints, camera)]
    assert [chunk_motion([pair], motions, keypoints[:n]) for n in (2, 3, 4)] == [Motion.MOVES] * 3
    assert chunk_motion([pair], motions, keypoints[:5]) is Motion.NO_OVERLAP


def test_first_pairs_have_parallax_and_lie_apart() -> None:
    keypoints = seen(0.1, 0.01)
    camera = MappingCamera((400.0, 400.0, 320.0, 240.0), (640, 480), True)
    pairs = [VerifiedPair(a, b, np.stack([np.arange(200)] * 2, 1)) for a, b in chunk_pairs(N)]
    motions = [pair_motion(p, keypoints, camera) for p in pairs]
    assert first_pairs(pairs, motions, N, 0) == []
    chosen = first_pairs(pairs, motions, N, 3)
    middles = sorted((a + b) / 2 for a, b in chosen)
    assert len(chosen) >= 2 and min(np.diff(middles)) >= N / 4

"""A camera that rolls a little towards a flat scene is placed; one that only turns is not."""

import numpy as np
import pytest
import torch

from geoweaver.geometry.so3 import so3_exp
from geoweaver.priors.sfm_mapping import MappingCamera, map_chunk
from geoweaver.priors.sfm_motion import Motion, moves_slightly, pair_motion
from geoweaver.priors.sfm_pairs import VerifiedPair, chunk_pairs
from geoweaver.priors.sfm_pieces import sound_pieces

FRAMES, SIZE = 16, (640, 360)
GUESS = MappingCamera((768.0, 768.0, 320.0, 180.0), SIZE, fixed=False)
NOWHERE, AHEAD, ASIDE = (0.0, 0.0, 0.0), (0.0, 0.0, 0.02), (0.1, 0.0, 0.0)


def filmed(
    focal: float,
    step: tuple[float, float, float],
    turn: float = 0.001,
    bend: float = 0.0,
    relief: float = 0.2,
) -> tuple[list[np.ndarray], list[VerifiedPair]]:
    """Keypoints, 0.3 px off, and matches of points on a slanted wall 4 m away."""
    rng = np.random.default_rng(0)
    points = rng.uniform([-3, -2, 0], [3, 2, 0], (400, 3))
    points[:, 2] = 4 + 0.3 * points[:, 0] + rng.uniform(-relief, relief, 400)
    keypoints = []
    for k in range(FRAMES):
        turned = torch.tensor([0.2 * turn * np.sin(k), turn * k, 0], dtype=torch.float64)
        local = (points - np.array(step) * k) @ so3_exp(turned).numpy().T
        ray = local[:, :2] / local[:, 2:]
        ray *= 1 + bend * (ray**2).sum(1, keepdims=True)
        keypoints.append(focal * SIZE[0] * ray + [320, 180] + rng.normal(0, 0.3, ray.shape))
    inside = [((k > 0) & (k < SIZE)).all(1) for k in keypoints]
    rows = [(a, b, np.flatnonzero(inside[a] & inside[b])) for a, b in chunk_pairs(FRAMES)]
    return keypoints, [VerifiedPair(a, b, np.stack([r, r], 1)) for a, b, r in rows if len(r) >= 15]


def slight(keypoints: list[np.ndarray], pairs: list[VerifiedPair]) -> bool:
    return moves_slightly(pairs, [pair_motion(p, keypoints, GUESS) for p in pairs], keypoints, GUESS)


@pytest.mark.parametrize("focal", [0.9, 1.2, 1.6])
def test_rolling_ahead_is_little_motion_but_motion(focal: float) -> None:
    assert slight(*filmed(focal, AHEAD))


@pytest.mark.parametrize(("focal", "bend"), [(1.0, 0.0), (2.5, 0.0), (0.7, -0.15), (1.2, -0.3), (0.6, 0.2)])
def test_no_turn_passes_for_motion_whatever_the_lens(focal: float, bend: float) -> None:
    assert not slight(*filmed(focal, NOWHERE, 0.02, bend))


def test_a_walk_needs_no_special_care() -> None:
    assert not slight(*filmed(1.2, ASIDE, 0.01, relief=1.5))


def test_all_frames_are_placed_where_mapping_as_usual_places_none() -> None:
    keypoints, pairs = filmed(1.0, AHEAD)
    assert max((len(m) for m in map_chunk(keypoints, pairs, GUESS)), default=0) < FRAMES / 2
    found = sound_pieces(keypoints, pairs, GUESS, smallest=5)
    assert found.motion is Motion.MOVES and [len(model) for model in found.models] == [FRAMES]
    centre = found.models[0].cam_from_chunk.centre
    truth = torch.tensor(AHEAD, dtype=torch.float64) * torch.arange(FRAMES)[:, None]
    # a camera on a line fixes no turn about it, which the points do; here its own axis tells
    forward = found.models[0].cam_from_chunk.rotation[0, 2]
    along = (centre - centre[0]) @ forward
    aside = (centre - centre[0] - along[:, None] * forward).norm(dim=1)
    assert along.diff().min() > 0 and aside.max() < 0.15 * along.max()
    scale = (along @ truth[:, 2]) / (along @ along)
    assert (scale * along - truth[:, 2]).abs().max() < 0.1 * truth[-1, 2]

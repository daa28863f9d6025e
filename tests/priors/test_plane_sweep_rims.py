"""Which pixels got the depth of an edge that lies beside them."""

import numpy as np
import pytest

from geoweaver.priors.plane_sweep_planes import fit_planes
from geoweaver.priors.plane_sweep_rims import rims

EDGE, CARRIED = 20, 4
"""Column at which the image changes, and how far beyond it depth in front was carried."""


def step_scene(jump_at: int) -> tuple[np.ndarray, np.ndarray]:
    """Something bright and near on the left, a dark wall behind it on the right."""
    column = np.broadcast_to(np.arange(48), (32, 48))
    image = np.where(column < EDGE, 180.0, 60.0) + np.random.default_rng(0).normal(0, 1, (32, 48))
    return np.where(column < jump_at, 1.0, 0.5), image


def test_pixels_between_the_edge_and_the_drop_are_marked() -> None:
    marked = rims(*step_scene(EDGE + CARRIED), 1e-9)
    assert marked[8:-8, EDGE : EDGE + CARRIED].all()
    assert not marked[:, :EDGE].any()
    assert not marked[:, EDGE + CARRIED :].any()


def test_depth_that_drops_at_the_edge_is_left_alone() -> None:
    assert not rims(*step_scene(EDGE), 1e-9).any()


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_every_direction_counts(turn: int) -> None:
    inverse, image = (np.rot90(a, turn) for a in step_scene(EDGE + CARRIED))
    assert int(rims(inverse, image, 1e-9).sum()) >= 16 * CARRIED


def test_a_floor_that_runs_away_has_no_rims() -> None:
    row = np.arange(60.0)[:, None] + np.zeros(40)
    tiles = 60 + 100 * ((row // 7 + np.arange(40) // 9) % 2)
    assert not rims((row + 2) / 60, tiles, 1e-9).any()


def test_the_surface_behind_gets_its_pixels_back() -> None:
    inverse, image = step_scene(EDGE + CARRIED)
    planes = fit_planes(inverse, np.ones_like(inverse), image, 12.0, 0.03)
    rim = planes.inverse[8:-8, EDGE : EDGE + CARRIED]
    assert np.abs(rim - 0.5).max() < 0.05
    assert np.abs(planes.inverse[8:-8, EDGE - CARRIED : EDGE] - 1.0).max() < 0.05

"""Pictures of clouds: the nearest point is in front, sides are where they should be, bytes repeat."""

import numpy as np
import pytest
import torch

from geoweaver.formats.ply import PlyCloud
from geoweaver.fusion import SIDES, CloudView, camera_view, render_cloud, side_view
from geoweaver.geometry import SE3

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
UP = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)


def cloud(points: list[list[float]], colours: list[tuple[int, int, int]]) -> PlyCloud:
    return PlyCloud(torch.tensor(points, dtype=torch.float32), torch.tensor(colours, dtype=torch.uint8))


def has(picture: np.ndarray, colour: tuple[int, int, int]) -> bool:
    return bool((picture == colour).all(-1).any())


@pytest.mark.parametrize("perspective", [False, True])
def test_the_nearest_hides_the_rest(perspective: bool) -> None:
    points = cloud([[0, 0, 3], [0, 0, 2], [0, 0, 4], [0, 0, -1]], [RED, GREEN, BLUE, RED])
    view = CloudView(SE3.identity(), 10.0, (21, 21), perspective, nearest=0.5)
    picture = render_cloud(points, view)
    assert tuple(picture[10, 10]) == GREEN
    assert not has(picture, RED) and not has(picture, BLUE)


def test_from_above_the_top_is_seen_and_a_cut_removes_it() -> None:
    layers = [[x, y, z] for z in (0.0, 1.0) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)]
    both = cloud(layers, [RED] * 9 + [BLUE] * 9)
    whole = render_cloud(both, side_view(both, "above", UP, (60, 40)))
    assert has(whole, BLUE) and not has(whole, RED)
    cut = render_cloud(both, side_view(both, "above", UP, (60, 40), cut=0.6))
    assert has(cut, RED) and not has(cut, BLUE)


@pytest.mark.parametrize("side", ["front", "side"])
def test_up_is_up_in_the_picture(side: str) -> None:
    points = cloud([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], [RED, BLUE, RED, BLUE])
    picture = render_cloud(points, side_view(points, side, UP, (60, 40)))
    red, blue = ((picture == colour).all(-1).nonzero()[0].mean() for colour in (RED, BLUE))
    assert blue < red


def test_a_camera_sees_its_points_where_it_saw_them() -> None:
    picture = render_cloud(cloud([[1.0, -0.5, 2.0]], [RED]), camera_view(SE3.identity(), 0.5, (100, 80), 0))
    assert tuple(picture[int(40 - 0.25 * 50), int(50 + 0.5 * 50)]) == RED


def test_an_empty_cloud_is_a_white_picture() -> None:
    empty = PlyCloud(torch.zeros(0, 3))
    for side in SIDES:
        assert (render_cloud(empty, side_view(empty, side, UP, (8, 6))) == 255).all()


def test_the_same_cloud_gives_the_same_bytes() -> None:
    torch.manual_seed(0)
    points = PlyCloud(torch.rand(2000, 3), torch.randint(0, 255, (2000, 3), dtype=torch.uint8))
    view = side_view(points, "front", UP, (64, 48))
    assert np.array_equal(render_cloud(points, view), render_cloud(points, view))

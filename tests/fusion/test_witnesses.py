"""What all views together say of a point."""

from dataclasses import replace

import numpy as np
import pytest
from fused_room import off_walls, room

from geoweaver.engine import LocalEngine
from geoweaver.fusion import FusionConfig, fuse_cloud
from geoweaver.fusion.views import ViewReader
from geoweaver.fusion.witnesses import Surfels, contradicted


def reader() -> ViewReader:
    frames, result, depths = room().parts()
    return ViewReader(frames, result, depths, FusionConfig())


@pytest.mark.parametrize(
    ("share", "facing", "wrong"),
    [
        (1.0, True, False),
        (0.9, True, True),  # seen through
        (1.06, True, True),  # a shell behind the surface
        (1.06, False, False),  # the back of something thin
        (1.5, True, False),  # hidden
    ],
)
def test_a_view_tells_of_points_that_face_it(share: float, facing: bool, wrong: bool) -> None:
    read = reader()
    view = read.read(5)
    height, width = view.depth.shape
    y, x = height // 2, width // 2
    z = share * float(view.depth[y, x])
    fx, fy, cx, cy = view.intrinsics
    local = z * np.array([(x + 0.5 - cx) / fx, (y + 0.5 - cy) / fy, 1])
    point = ((local - view.translation) @ view.rotation)[None]
    towards = view.centre - point
    normal = towards / np.linalg.norm(towards) * (1 if facing else -1)
    assert contradicted(Surfels(point, normal, 0.01), read, [5], 0.01, LocalEngine())[0] == wrong


def test_views_that_confirm_each_others_error_are_outvoted() -> None:
    """A third of the frames sees a part of the walls nearer, all alike: as neighbours they agree."""
    spoilt = room(36, arc=0.1)
    for k in range(12):
        spoilt.depth[k][10:30, 15:35] *= 0.9
        spoilt.confidence[k] *= 0.7
    off = [
        float((off_walls(fuse_cloud(*spoilt.parts(), config).points) > 0.02).double().mean())
        for config in (FusionConfig(neighbours=4, second_look=False), FusionConfig(neighbours=4))
    ]
    assert off[0] > 0.1 and off[1] < 0.1 * off[0]


def test_nothing_is_said_of_nothing() -> None:
    none = np.zeros((0, 3))
    assert len(contradicted(Surfels(none, none, 0.1), reader(), [1, 2], 0.01, LocalEngine())) == 0


def test_the_second_look_only_takes_away() -> None:
    parts = room().parts()
    with_it, without = (fuse_cloud(*parts, replace(FusionConfig(), second_look=on)) for on in (True, False))
    assert 0.9 * len(without) < len(with_it) <= len(without)

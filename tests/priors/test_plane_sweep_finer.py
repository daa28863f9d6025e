import numpy as np
import pytest

from geoweaver.priors.plane_sweep_finer import finer
from geoweaver.priors.plane_sweep_planes import Planes


def shrunk(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    import cv2

    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))


@pytest.mark.parametrize("small", [(60, 40), (71, 44), (90, 60)])
def test_a_slanted_wall_is_the_same_wall_at_any_size(small: tuple[int, int]) -> None:
    large = np.random.default_rng(0).uniform(0, 255, (60, 90)).astype(np.float32)

    def wall(width: int, height: int) -> np.ndarray:
        x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
        return np.asarray(0.2 + 0.18 * x + 0.06 * y[:, None])

    width, height = small
    flat = np.ones((height, width))
    planes = Planes(wall(width, height), 0.18 / width * flat, 0.06 / height * flat, flat)
    followed = finer(shrunk(large, small), large).planes(planes)
    np.testing.assert_allclose(followed.inverse, wall(90, 60), rtol=1e-12)
    np.testing.assert_allclose(followed.across, 0.18 / 90)
    np.testing.assert_allclose(followed.down, 0.06 / 60)


def test_every_pixel_takes_the_depth_of_its_own_side_of_an_edge() -> None:
    """A small picture's pixels on an edge are a mixture; its neighbours on both sides are not."""
    large = np.where(np.arange(90) < 41, 40.0, 200.0).astype(np.float32)[None].repeat(60, 0)
    small = shrunk(large, (60, 40))
    depth = np.where(small < 120, 1.0, 3.0)
    np.testing.assert_array_equal(finer(small, large)(depth), np.where(large < 120, 1.0, 3.0))


def test_a_picture_of_the_same_size_stays_as_it_is() -> None:
    picture = np.random.default_rng(1).uniform(0, 255, (20, 30)).astype(np.float32)
    np.testing.assert_array_equal(finer(picture, picture)(picture), picture)


def test_a_steep_plane_is_not_followed_behind_the_camera() -> None:
    small, large = np.zeros((10, 10), np.float32), np.zeros((20, 20), np.float32)
    steep = Planes(np.full((10, 10), 0.1), np.full((10, 10), -3.0), np.zeros((10, 10)), np.ones((10, 10)))
    assert finer(small, large).planes(steep).inverse.min() >= 0.05

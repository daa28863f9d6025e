"""Where matches settle below a pixel, on pictures whose motion is known exactly."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from geoweaver.matching.classical_subpixel import settle

Array = NDArray[np.float64]
SIZE = (160, 120)
SHAPE = np.array([[1.04, 0.03], [-0.02, 0.97]])
SHIFT = np.array([3.37, -2.61])


def waves(seed: int, count: int = 60) -> tuple[Array, Array, Array]:
    """Frequencies, phases and strengths of a texture that is known between its pixels."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.9, 0.9, (count, 2)), rng.uniform(0, 6.3, count), rng.uniform(0.3, 1, count)


def picture(at: Array, seed: int = 0, contrast: float = 9.0, level: float = 120.0) -> NDArray[np.uint8]:
    frequency, phase, strength = waves(seed)
    value = (strength * np.sin(at @ frequency.T + phase)).sum(-1)
    return np.asarray((level + contrast * value).round().clip(0, 255), np.uint8)


def grid() -> Array:
    return np.stack(np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1])), -1).astype(np.float64)


def moved(pixel: Array) -> Array:
    """Where j shows what i shows at a pixel."""
    return pixel @ SHAPE.T + SHIFT


def second(seed: int = 0, **light: float) -> NDArray[np.uint8]:
    return picture((grid() - SHIFT) @ np.linalg.inv(SHAPE).T, seed, **light)


def places(count: int = 300) -> Array:
    rng = np.random.default_rng(3)
    return rng.integers([16, 16], [SIZE[0] - 20, SIZE[1] - 20], (count, 2)).astype(np.float64)


def shapes(count: int) -> Array:
    return np.repeat(SHAPE[None], count, 0)


def settled(i: NDArray[np.uint8], j: NDArray[np.uint8], start: Array, pixel: Array) -> Array:
    return settle(i, j, pixel, start, shapes(len(pixel)))


def test_matches_settle_to_a_few_hundredths_of_a_pixel() -> None:
    pixel = places()
    off = np.random.default_rng(1).normal(0, 0.4, pixel.shape)
    found = settled(picture(grid()), second(), moved(pixel) + off, pixel)
    error = np.linalg.norm(found - moved(pixel), axis=1)
    assert np.median(error) < 0.03 < np.median(np.linalg.norm(off, axis=1))
    assert (error < 0.1).mean() > 0.95


def test_what_all_matches_lean_by_is_taken_away() -> None:
    pixel = places()
    found = settled(picture(grid()), second(), moved(pixel) - 0.15, pixel)
    assert np.abs((found - moved(pixel)).mean(0)).max() < 0.01


def test_exposure_does_not_matter() -> None:
    pixel = places()
    found = settled(picture(grid()), second(contrast=6.0, level=90.0), moved(pixel) + 0.3, pixel)
    assert np.median(np.linalg.norm(found - moved(pixel), axis=1)) < 0.05


def test_without_texture_flow_is_believed() -> None:
    blank = np.full(SIZE[::-1], 100, np.uint8)
    noisy = [np.uint8(blank + np.random.default_rng(k).integers(0, 2, blank.shape)) for k in (0, 1)]
    pixel = places()
    for i, j in ((blank, blank), noisy):
        moved_by = np.linalg.norm(settled(i, j, moved(pixel), pixel) - moved(pixel), axis=1)
        assert np.median(moved_by) < 0.3


def test_along_an_edge_flow_is_believed() -> None:
    stripes = np.uint8(
        gaussian_filter(np.repeat((np.arange(SIZE[0]) // 40 % 2 * 200.0)[None], SIZE[1], 0), 1)
    )
    pixel = np.stack([np.full(20, 80.0), np.arange(30.0, 50.0)], 1)
    found = settle(stripes, stripes, pixel, pixel + np.array([0.4, 0.3]), np.repeat(np.eye(2)[None], 20, 0))
    assert np.abs(found[:, 0] - 80).max() < 0.05
    assert np.abs(found[:, 1] - pixel[:, 1] - 0.3).max() < 0.01


@pytest.mark.parametrize("start", [[0.5, 40.0], [SIZE[0] - 2.0, 40.0], [-30.0, 500.0], [np.nan, 40.0]])
def test_places_out_of_view_stay(start: list[float]) -> None:
    begun = np.array([start])
    found = settled(picture(grid()), second(), begun, np.array([[80.0, 60.0]]))
    assert np.array_equal(found, begun, equal_nan=True)


def test_pixels_at_the_border_of_the_first_image_stay() -> None:
    pixel = np.array([[1.0, 60.0], [80.0, SIZE[1] - 1.0]])
    begun = moved(pixel) + 0.4
    assert np.array_equal(settled(picture(grid()), second(), begun, pixel), begun)


def test_a_match_that_runs_away_stays_where_flow_put_it() -> None:
    pixel = places()
    begun = moved(pixel) + 3.0
    found = settled(picture(grid()), second(), begun, pixel)
    assert np.linalg.norm(found - begun, axis=1).max() < 1.5


def test_a_mirrored_shape_is_no_motion() -> None:
    pixel, begun = np.array([[80.0, 60.0]]), np.array([[80.3, 60.2]])
    found = settle(picture(grid()), picture(grid()), pixel, begun, np.array([[[-1.0, 0.0], [0.0, 1.0]]]))
    assert np.array_equal(found, begun)


def test_the_images_are_not_changed() -> None:
    i, j, pixel = picture(grid()), second(), places(5)
    begun = moved(pixel)
    kept = [a.copy() for a in (i, j, pixel, begun)]
    settled(i, j, begun, pixel)
    assert all(np.array_equal(a, b) for a, b in zip(kept, (i, j, pixel, begun), strict=True))

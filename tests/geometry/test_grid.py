"""Fields on a coarse grid of nodes over an image."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.geometry.grid import bilinear_nodes, field_over_image


@given(st.integers(2, 7), st.integers(2, 7), st.integers(1, 40), st.integers(1, 40))
def test_a_constant_field_stays_constant(rows: int, columns: int, height: int, width: int) -> None:
    field = field_over_image(torch.full((rows, columns), 0.7, dtype=torch.float64), height, width)
    assert torch.allclose(field, torch.full((height, width), 0.7, dtype=torch.float64))


def test_a_linear_field_is_exact_at_pixel_centres() -> None:
    grid = torch.linspace(0, 1, 5, dtype=torch.float64).expand(3, 5)
    field = field_over_image(grid, 4, 10)
    expected = (torch.arange(10, dtype=torch.float64) + 0.5) / 10
    assert torch.allclose(field, expected.expand(4, 10))


def test_pixels_read_the_same_field_as_whole_images() -> None:
    g = torch.Generator().manual_seed(0)
    grid = torch.randn(4, 6, generator=g, dtype=torch.float64)
    width, height = 30, 20
    field = field_over_image(grid, height, width)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    pixel = torch.stack([x, y], -1).reshape(-1, 2) + 0.5
    index, share = bilinear_nodes(pixel, (width, height), (4, 6))
    assert torch.allclose((grid.flatten()[index] * share).sum(1).reshape(height, width), field)


def test_pixels_beyond_the_image_read_its_border() -> None:
    index, share = bilinear_nodes(torch.tensor([[-5.0, -5], [99, 99]]), (30, 20), (3, 4))
    corner = torch.zeros(12, dtype=torch.float64)
    corner[0], corner[11] = 1, 2
    assert torch.allclose((corner[index] * share).sum(1), torch.tensor([1.0, 2], dtype=torch.float64))

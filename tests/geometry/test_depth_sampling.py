"""Depth between pixels: exact on planes, absent at holes, edges and borders."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from geoweaver.geometry.camera import bearing, pixel_centres, sample_bilinear, sample_nearest

WIDTH, HEIGHT = 24, 18
INTRINSICS = torch.tensor([20.0, 21.0, 11.7, 9.2], dtype=torch.float64)


def plane_depth(normal: Tensor, pixel: Tensor) -> Tensor:
    """Depth of the plane normal . x = 1."""
    return 1 / (bearing(pixel, INTRINSICS) @ normal)


@given(st.floats(-0.4, 0.4), st.floats(-0.4, 0.4), st.integers(0, 10**6))
def test_bilinear_is_exact_on_planes(a: float, b: float, seed: int) -> None:
    normal = torch.tensor([a, b, 1.0], dtype=torch.float64)
    depth = plane_depth(normal, pixel_centres(WIDTH, HEIGHT))
    limits = torch.tensor([WIDTH - 1, HEIGHT - 1], dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    pixel = 0.5 + limits * torch.rand(50, 2, dtype=torch.float64, generator=generator)
    value, valid = sample_bilinear(depth, pixel, max_jump=10.0)
    assert bool(valid.all())
    torch.testing.assert_close(value, plane_depth(normal, pixel), rtol=1e-12, atol=0)


def test_centres_and_the_last_centre_return_the_pixel() -> None:
    depth = 1 + 0.01 * torch.rand(HEIGHT, WIDTH, dtype=torch.float64)
    pixel = pixel_centres(WIDTH, HEIGHT).reshape(-1, 2)
    for value, valid in (sample_bilinear(depth, pixel, 0.1), sample_nearest(depth, pixel)):
        assert bool(valid.all())
        torch.testing.assert_close(value, depth.flatten(), rtol=1e-15, atol=0)


@pytest.mark.parametrize("hole", [0.0, -1.0, math.nan, math.inf])
def test_holes_are_absent(hole: float) -> None:
    depth = torch.ones(HEIGHT, WIDTH, dtype=torch.float64)
    depth[5, 7] = hole
    around = torch.tensor([[7.1, 5.1], [7.9, 5.9], [8.2, 6.2], [6.6, 4.7]], dtype=torch.float64)
    value, valid = sample_bilinear(depth, around, 0.1)
    assert not bool(valid.any()) and bool((value == 0).all())
    value, valid = sample_nearest(depth, around)
    assert valid.tolist() == [False, False, True, True] and value.tolist() == [0, 0, 1, 1]
    away = torch.tensor([[9.0, 5.5], [7.5, 7.6], [5.9, 5.5]], dtype=torch.float64)
    assert bool(sample_bilinear(depth, away, 0.1)[1].all())


@given(st.floats(1e-3, 1e3), st.floats(0.01, 0.5))
def test_an_edge_is_relative(scale: float, jump: float) -> None:
    depth = torch.full((4, 6), scale, dtype=torch.float64)
    depth[:, 3:] *= 1 + jump
    pixel = torch.tensor([[3.0, 2.0], [1.5, 2.0], [4.9, 2.0]], dtype=torch.float64)
    assert sample_bilinear(depth, pixel, max_jump=1.01 * jump)[1].tolist() == [True, True, True]
    assert sample_bilinear(depth, pixel, max_jump=0.99 * jump)[1].tolist() == [False, True, True]


def test_outside_is_absent_even_far_or_not_a_number() -> None:
    depth = torch.ones(HEIGHT, WIDTH, dtype=torch.float64)
    out = [[-0.1, 3], [3, -0.1], [WIDTH, 3], [3, HEIGHT + 0.1], [1e30, 3], [math.nan, 3], [-math.inf, 3]]
    pixel = torch.tensor(out, dtype=torch.float64)
    assert not bool(sample_nearest(depth, pixel)[1].any())
    assert not bool(sample_bilinear(depth, pixel)[1].any())
    # between the corner and the first centre there is a pixel, but no four neighbours
    rim = torch.tensor([[0.4, 3.0], [WIDTH - 0.4, 3.0]], dtype=torch.float64)
    assert bool(sample_nearest(depth, rim)[1].all()) and not bool(sample_bilinear(depth, rim)[1].any())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_batches_and_half_precision(dtype: torch.dtype) -> None:
    depth = torch.tensor([1.0, 2.0, 4.0]).to(dtype)[:, None, None].expand(3, HEIGHT, WIDTH)
    pixel = torch.rand(3, 5, 2, dtype=torch.float64) * 10 + 1
    for value, valid in (sample_bilinear(depth, pixel), sample_nearest(depth, pixel)):
        assert value.shape == valid.shape == (3, 5) and bool(valid.all())
        torch.testing.assert_close(value.double(), torch.tensor([1.0, 2, 4]).double()[:, None].expand(3, 5))


def test_a_map_of_one_pixel() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    pixel = torch.tensor([[0.5, 0.5], [0.7, 0.5]], dtype=torch.float64)
    assert sample_bilinear(one, pixel)[1].tolist() == [True, False]
    assert sample_nearest(one, pixel)[1].tolist() == [True, True]

"""Weighted Umeyama: exact on exact data at any scale and place, optimal on noisy, loud on degenerate data."""

import math

import pytest
import roma
import torch
from geometry_strategies import sim3_tangents
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.geometry import Sim3
from geoweaver.geometry.registration import umeyama

F64 = torch.float64


def cloud(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, 3, dtype=F64, generator=torch.Generator().manual_seed(seed))


def cost(fit: Sim3, source: Tensor, target: Tensor, weight: Tensor) -> float:
    return float((weight * (fit.act(source) - target).square().sum(-1)).sum())


@given(sim3_tangents(), st.integers(0, 10**6), st.integers(3, 12), st.integers(-3, 3))
def test_exact_data_give_the_exact_answer(tangent: Tensor, seed: int, count: int, size: int) -> None:
    truth = Sim3.exp(tangent)
    source = 10.0**size * (cloud(seed, count) + 3)
    target = truth.act(source)
    spread = float((target - target.mean(0)).norm())
    found = umeyama(source, target, torch.rand(count, dtype=F64) + 0.1)
    # far from the origin the coordinates themselves carry fewer digits
    digits = 1e-11 + 1e-13 * float(target.abs().max()) / spread
    assert float((found.scale / truth.scale - 1).abs()) < digits * 100
    assert float((found.rotation - truth.rotation).abs().max()) < digits * 100
    assert float((found.act(source) - target).norm()) < digits * 100 * spread


@given(st.integers(0, 10**6))
def test_nothing_nearby_is_better(seed: int) -> None:
    source, weight = cloud(seed, 9), torch.rand(9, dtype=F64) + 0.01
    target = Sim3.exp(cloud(seed + 1, 3)[:, :3].flatten()[:7]).act(source) + 0.3 * cloud(seed + 2, 9)
    for with_scale in (True, False):
        fit = umeyama(source, target, weight, with_scale)
        best = cost(fit, source, target, weight)
        for axis in range(7 if with_scale else 6):
            for step in (-1e-4, 1e-4):
                delta = torch.zeros(7, dtype=F64)
                delta[axis] = step
                if axis == 6:
                    moved = Sim3(fit.scale * math.exp(step), fit.rotation, fit.translation)
                else:
                    moved = Sim3.exp(delta) @ fit
                assert cost(moved, source, target, weight) >= best


@given(st.integers(0, 10**6), sim3_tangents(), sim3_tangents())
def test_moving_both_clouds_moves_the_answer(seed: int, a: Tensor, b: Tensor) -> None:
    source, noise = cloud(seed, 12), 0.1 * cloud(seed + 1, 12)
    plain = umeyama(source, source + noise)
    a[:3], b[:3] = a[:3] / (1 + a[:3].norm()), b[:3] / (1 + b[:3].norm())
    A, B = Sim3.exp(a), Sim3.exp(b)
    moved = umeyama(A.act(source), B.act(source + noise))
    expected = B @ plain @ A.inverse()
    torch.testing.assert_close(moved.rotation, expected.rotation, rtol=0, atol=1e-10)
    torch.testing.assert_close(moved.scale, expected.scale, rtol=1e-10, atol=0)


def test_agreement_with_roma() -> None:
    source, weight = cloud(0, 50, 20), torch.rand(50, 20, dtype=F64) + 0.01
    target = Sim3.exp(torch.randn(50, 7, dtype=F64))[:, None].act(source) + 0.2 * cloud(1, 50, 20)
    ours = umeyama(source, target, weight)
    R, t, s = roma.rigid_points_registration(source, target, weight, compute_scaling=True)
    torch.testing.assert_close(ours.rotation, R, rtol=0, atol=1e-10)
    torch.testing.assert_close(ours.translation, t, rtol=0, atol=1e-10)
    torch.testing.assert_close(ours.scale, s, rtol=1e-10, atol=0)
    rigid = umeyama(source, target, weight, with_scale=False)
    R, t = roma.rigid_points_registration(source, target, weight)
    assert bool((rigid.scale == 1).all())
    torch.testing.assert_close(rigid.translation, t, rtol=0, atol=1e-10)


def test_batches_are_the_single_answers() -> None:
    source, target = cloud(0, 2, 3, 8), cloud(1, 2, 3, 8)
    weight = torch.rand(2, 3, 8, dtype=F64)
    together = umeyama(source, target, weight)
    for index in [(0, 0), (1, 2)]:
        alone = umeyama(source[index], target[index], weight[index])
        torch.testing.assert_close(together[index].matrix(), alone.matrix(), rtol=1e-12, atol=1e-12)


def test_a_weight_of_zero_is_absence() -> None:
    source, target = cloud(0, 10), cloud(1, 10)
    weight = torch.ones(10, dtype=F64)
    weight[6:] = 0
    target[6:] = 1e6
    some = umeyama(source, target, weight)
    torch.testing.assert_close(some.matrix(), umeyama(source[:6], target[:6]).matrix(), rtol=1e-9, atol=1e-9)


def test_a_mirror_image_gives_a_rotation() -> None:
    source = cloud(0, 30)
    fit = umeyama(source, source * torch.tensor([1.0, 1.0, -1.0], dtype=F64))
    assert abs(float(torch.linalg.det(fit.rotation)) - 1) < 1e-12


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_lines_and_points_are_degenerate(size: float, offset: float) -> None:
    direction = torch.tensor([1.0, -2.0, 0.5], dtype=F64)
    line = size * (torch.linspace(0, 1, 9, dtype=F64)[:, None] * direction) + offset * size
    spot = torch.full((9, 3), size, dtype=F64)
    rich = cloud(0, 9)
    for source, target in [(line, line), (line, rich), (rich, line), (spot, rich), (rich, spot)]:
        with pytest.raises(DegenerateError, match="one line"):
            umeyama(source, target)


def test_a_plane_is_enough() -> None:
    flat = cloud(0, 9) * torch.tensor([1.0, 1.0, 0.0], dtype=F64)
    truth = Sim3.exp(torch.tensor([1.0, 2, 3, 0.3, -0.2, 2.0, 0.5], dtype=F64))
    torch.testing.assert_close(umeyama(flat, truth.act(flat)).matrix(), truth.matrix(), rtol=0, atol=1e-12)


def test_too_little_is_said_in_one_line() -> None:
    points = cloud(0, 5)
    zero = torch.zeros(5, dtype=F64)
    for source, weight, word in [
        (points[:2], None, "not 2"),
        (points[:0], None, "not 0"),
        (points, zero, "not 0"),
        (points, torch.tensor([1.0, 1.0, 0, 0, 0], dtype=F64), "not 2"),
        (points, -1 - zero, "negative"),
        (points * math.nan, None, "not finite"),
    ]:
        with pytest.raises(DegenerateError, match=word) as error:
            umeyama(source, source, weight)
        assert "\n" not in str(error.value)

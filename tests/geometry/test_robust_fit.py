"""The robust similarity: as good as if the outliers were known, at any scale, the same for the same seed."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.geometry import Sim3
from geoweaver.geometry.registration import RobustFit, robust_scale, robust_sim3, umeyama, weighted_quantile

F64 = torch.float64


@dataclass(frozen=True)
class Case:
    truth: Sim3
    source: Tensor
    target: Tensor
    outlier: Tensor
    sigma: Tensor
    """Noise of each row's target, per axis."""


def view_pair(
    seed: int, count: int, outliers: float, kind: str, noise: float = 0.01, by_depth: bool = False
) -> Case:
    """Points a camera sees between 1 and 10 units away, moved, disturbed, some of them replaced."""
    g = torch.Generator().manual_seed(seed)
    z = 1 + 9 * torch.rand(count, dtype=F64, generator=g)
    slope = torch.rand(count, 2, dtype=F64, generator=g) - 0.5
    source = torch.cat([z[:, None] * slope, z[:, None]], -1)
    spread = torch.tensor([3.0, 3, 3, 1, 1, 1, 0.5], dtype=F64)
    truth = Sim3.exp(spread * torch.randn(7, dtype=F64, generator=g))
    exact = truth.act(source)
    extent = (exact - exact.mean(0)).norm(dim=-1).median()
    sigma = noise * extent * (z / z.median() if by_depth else torch.ones_like(z))
    target = exact + sigma[:, None] * torch.randn(count, 3, dtype=F64, generator=g)
    outlier = torch.zeros(count, dtype=torch.bool)
    rows = torch.randperm(count, generator=g)[: int(outliers * count)]
    outlier[rows] = True
    if kind == "scattered":
        target[rows] = exact.mean(0) + 1.5 * extent * torch.randn(len(rows), 3, dtype=F64, generator=g)
    elif kind == "swapped":
        target[rows] = target[rows.roll(1)]
    elif kind == "wrong depth":
        factor = torch.exp(0.5 * torch.randn(len(rows), 1, dtype=F64, generator=g))
        target[rows] = truth.act(factor * source[rows])
    elif kind == "second motion":
        second = Sim3.exp(0.3 * torch.randn(7, dtype=F64, generator=g)) @ truth
        target[rows] += second.act(source[rows]) - exact[rows]
    return Case(truth, source, target, outlier, sigma)


def fit(case: Case, seed: int = 0) -> RobustFit:
    return robust_sim3(case.source, case.target, None, torch.Generator().manual_seed(seed))


def error(transform: Sim3, case: Case) -> float:
    return float((transform.act(case.source) - case.truth.act(case.source)).norm(dim=-1).mean())


@pytest.mark.parametrize("count", [40, 3000])
@pytest.mark.parametrize(
    ("kind", "outliers"),
    [
        ("scattered", 0.0),
        ("scattered", 0.5),
        ("scattered", 0.6),
        ("swapped", 0.6),
        ("wrong depth", 0.6),
        ("second motion", 0.4),
    ],
)
def test_nearly_as_good_as_knowing_the_outliers(kind: str, outliers: float, count: int) -> None:
    for seed in range(5):
        case = view_pair(seed, count, outliers, kind)
        known = umeyama(case.source[~case.outlier], case.target[~case.outlier])
        found = fit(case, seed)
        assert error(found.transform, case) < 3 * error(known, case) + 1e-12
        assert not bool((found.inlier & case.outlier).sum() > 0.15 * len(case.outlier))
        assert bool(found.inlier[~case.outlier].double().mean() > 0.9)
        assert 0.5 < found.scale_of_residuals / float(case.sigma[0]) < 1.5
        assert found.log_false_alarms < 0


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1e-3, 1e3, 1e6]), st.sampled_from([1e-3, 1e3]))
def test_units_do_not_matter(seed: int, source_unit: float, target_unit: float) -> None:
    case = view_pair(seed, 60, 0.5, "scattered")
    plain = fit(case)
    scaled = robust_sim3(
        source_unit * case.source, target_unit * case.target, None, torch.Generator().manual_seed(0)
    )
    assert torch.equal(plain.inlier, scaled.inlier)
    torch.testing.assert_close(scaled.transform.rotation, plain.transform.rotation, rtol=0, atol=1e-9)
    torch.testing.assert_close(
        scaled.transform.scale, plain.transform.scale * target_unit / source_unit, rtol=1e-9, atol=0
    )
    assert math.isclose(scaled.scale_of_residuals, target_unit * plain.scale_of_residuals, rel_tol=1e-6)
    assert math.isclose(scaled.log_false_alarms, plain.log_false_alarms, rel_tol=1e-6)


def test_the_same_seed_gives_the_same_bytes() -> None:
    case = view_pair(3, 2000, 0.5, "swapped")
    first, second = fit(case, 7), fit(case, 7)
    assert torch.equal(first.transform.matrix(), second.transform.matrix())
    assert torch.equal(first.inlier, second.inlier)
    other = fit(case, 8)
    torch.testing.assert_close(other.transform.matrix(), first.transform.matrix(), rtol=1e-4, atol=1e-4)


def test_exact_data_give_the_exact_answer_even_far_away() -> None:
    for far in (0.0, 1e5):
        case = view_pair(0, 50, 0.5, "scattered", noise=0.0)
        shift = torch.full((3,), far, dtype=F64)
        found = robust_sim3(case.source + shift, case.target, None, torch.Generator().manual_seed(0))
        assert torch.equal(found.inlier, ~case.outlier)
        moved = found.transform.act(case.source + shift)
        assert float((moved - case.target)[~case.outlier].abs().max()) < 1e-12 * (1 + far)


def test_noise_by_depth_weighs_near_points_more() -> None:
    better = 0
    for seed in range(10):
        case = view_pair(seed, 400, 0.3, "scattered", noise=0.03, by_depth=True)
        told = robust_sim3(
            case.source, case.target, None, torch.Generator().manual_seed(0), noise=case.source[:, 2]
        )
        better += error(told.transform, case) < error(fit(case).transform, case)
        unit = float((case.sigma / case.source[:, 2])[0])
        assert 0.85 < told.scale_of_residuals / unit < 1.15
    assert better >= 7


def test_weights_decide_between_two_motions() -> None:
    case = view_pair(1, 300, 0.5, "second motion")
    for favoured in (case.outlier, ~case.outlier):
        weight = torch.where(favoured, 1.0, 0.3).to(F64)
        found = robust_sim3(case.source, case.target, weight, torch.Generator().manual_seed(0))
        assert bool((found.inlier == favoured).double().mean() > 0.95)
        share = float(weight[found.inlier].sum() / weight.sum())
        assert math.isclose(found.inlier_ratio, share, rel_tol=1e-12)


def test_rows_that_are_no_numbers_are_outliers() -> None:
    case = view_pair(2, 100, 0.3, "scattered")
    source, target = case.source.clone(), case.target.clone()
    weight, noise = torch.ones(100, dtype=F64), torch.ones(100, dtype=F64)
    source[0], target[1, 2], weight[2], noise[3], weight[4] = math.nan, math.inf, 0.0, 0.0, math.nan
    found = robust_sim3(source, target, weight, torch.Generator().manual_seed(0), noise=noise)
    assert not bool(found.inlier[:5].any())
    keep = torch.arange(100) >= 5
    assert bool(found.inlier[keep & ~case.outlier].double().mean() > 0.95)


def test_a_rigid_fit_keeps_the_scale() -> None:
    case = view_pair(4, 200, 0.5, "scattered")
    unscaled = (case.target - case.truth.translation) / case.truth.scale + case.truth.translation
    found = robust_sim3(case.source, unscaled, None, torch.Generator().manual_seed(0), with_scale=False)
    assert float(found.transform.scale) == 1
    torch.testing.assert_close(found.transform.rotation, case.truth.rotation, rtol=0, atol=0.01)


def test_chance_is_told_from_consensus() -> None:
    alarms = []
    for seed in range(10):
        case = view_pair(seed, 200, 0.0, "scattered")
        mixed = case.target[torch.randperm(200, generator=torch.Generator().manual_seed(seed))]
        alarms.append(
            robust_sim3(case.source, mixed, None, torch.Generator().manual_seed(0)).log_false_alarms
        )
    assert sum(a > 0 for a in alarms) >= 8
    assert fit(view_pair(0, 200, 0.6, "scattered")).log_false_alarms < -100


def test_degenerate_rows_are_said_in_one_line() -> None:
    g = torch.Generator().manual_seed(0)
    line = torch.linspace(0, 1, 30, dtype=F64)[:, None] * torch.ones(3, dtype=F64)
    rich = torch.randn(30, 3, dtype=F64, generator=g)
    nan = torch.full((30, 3), math.nan, dtype=F64)
    cases = [
        (line, line),
        (rich[:2], rich[:2]),
        (rich, nan),
        (rich[:0], rich[:0]),
        (rich, torch.ones_like(rich)),
    ]
    for source, target in cases:
        with pytest.raises(DegenerateError) as caught:
            robust_sim3(source, target, None, g)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_handful_of_points(count: int) -> None:
    case = view_pair(0, count, 0.0, "scattered")
    found = fit(case)
    assert int(found.inlier.sum()) >= 3
    assert error(found.transform, case) < 20 * float(case.sigma[0])


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(1e-6, 1e6))
def test_scale_between_depth_maps(seed: int, scale: float, unit: float) -> None:
    g = torch.Generator().manual_seed(seed)
    depth = unit * (1 + torch.rand(20, 30, dtype=F64, generator=g))
    other = scale * depth * torch.exp(0.02 * torch.randn(20, 30, dtype=F64, generator=g))
    other[:8] *= 3
    other[8, :5], other[8, 5], depth[9, 0], depth[9, 1] = 0, math.nan, math.inf, -1
    found = robust_scale(other, depth)
    assert abs(math.log(found.scale / scale)) < 0.05
    assert 0.015 < found.spread < 0.1
    assert found.count == 600 - 8
    swapped = robust_scale(depth, other)
    assert math.isclose(swapped.scale, 1 / found.scale, rel_tol=1e-9)


def test_scale_of_exact_depths_is_exact_and_weights_count() -> None:
    depth = torch.tensor([1.0, 2.0, 4.0, 8.0, 5.0], dtype=F64)
    other = depth * torch.tensor([2.0, 2.0, 7.0, 7.0, 7.0], dtype=F64)
    assert robust_scale(other, depth).scale == pytest.approx(7, rel=1e-12)
    weighted = robust_scale(other, depth, torch.tensor([2.0, 2.0, 1.0, 1.0, 1.0], dtype=F64))
    assert weighted.scale == pytest.approx(2, rel=1e-12) and weighted.spread == 0
    with pytest.raises(DegenerateError, match="scale"):
        robust_scale(depth, torch.zeros_like(depth))


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.floats(0.001, 10))
def test_weighted_median_is_the_median(values: list[float], weight: float) -> None:
    x = torch.tensor(values, dtype=F64)
    found = weighted_quantile(x, torch.full_like(x, weight), 0.5)
    torch.testing.assert_close(found, x.quantile(0.5), rtol=1e-12, atol=1e-12)
    # a row repeated counts like a row of twice the weight
    doubled = torch.full_like(x, weight)
    doubled[0] *= 2
    repeated = torch.cat([x, x[:1]])
    torch.testing.assert_close(
        weighted_quantile(x, doubled, 0.5), repeated.quantile(0.5), rtol=1e-12, atol=1e-12
    )

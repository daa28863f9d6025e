"""The kernel, the analytic Jacobians against autograd, and the fused pass against the reference."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.assembly import fused, residuals
from geoweaver.assembly.kernel import Kernel, cdf_loss, cdf_slope, curvature, threshold_loss, weighted_cdf
from geoweaver.assembly.pairs import (
    Objective,
    PairGeometry,
    PairMatches,
    global_normalisation,
    thin_pairs,
    view_centred_normalisation,
)
from geoweaver.geometry import Sim3
from geoweaver.matching.sampling import sampling_order

KERNELS = [Kernel(15, 250, 2, "log1p"), Kernel(30, 600, 3), Kernel(0.8), Kernel(0.1), Kernel(15, 250, 2)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_closed_form_equals_threshold_sum(kernel: Kernel) -> None:
    top = kernel.limit * 2 if kernel.mapping == "identity" else 1e5
    r = torch.linspace(0, top, 3001, dtype=torch.float64)
    assert (cdf_loss(r, kernel) - threshold_loss(r, kernel)).abs().max() < 3e-5


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_is_the_derivative(kernel: Kernel) -> None:
    r = torch.linspace(1e-3, kernel.limit * 1.2, 500, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(cdf_loss(r, kernel).sum(), r)
    assert torch.allclose(grad, cdf_slope(r, kernel), atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
@given(st.floats(1e-4, 0.999), st.floats(1e-4, 0.999))
def test_quadratic_lies_above_the_loss(kernel: Kernel, at: float, other: float) -> None:
    """Majorise-minimise: the re-weighted parabola touches the loss at r and never lies below it."""
    top = kernel.limit * 1.5 if kernel.mapping == "identity" else 500.0
    r, s = (torch.tensor([x * top], dtype=torch.float64) for x in (at, other))
    if min(r.item(), s.item()) < kernel.beta / 2:
        return
    parabola = cdf_loss(r, kernel) + curvature(r, kernel) / 2 * (s**2 - r**2)
    assert (parabola - cdf_loss(s, kernel)).item() > -1e-9


def test_weighted_cdf_sums_to_the_loss() -> None:
    kernel = Kernel(15, 250, 2, "log1p")
    generator = torch.Generator().manual_seed(0)
    r = torch.rand(5000, generator=generator, dtype=torch.float64) * 40
    w = torch.rand(5000, generator=generator, dtype=torch.float64)
    by_cdf = 1 - weighted_cdf(r, w, kernel).mean()
    assert abs(by_cdf - (w * cdf_loss(r, kernel)).sum() / w.sum()) < 3e-5


def problem(seed: int = 0, pairs: int = 5, per_pair: int = 40) -> tuple[PairMatches, PairGeometry]:
    """Random matches: good, noisy, wrong, some without depth, some behind the camera."""
    g = torch.Generator().manual_seed(seed)
    d = torch.float64
    count = torch.randint(1, per_pair + 1, (pairs,), generator=g)
    start = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)])
    M = int(start[-1])
    pair = torch.repeat_interleave(torch.arange(pairs), count)
    K = torch.tensor([300.0, 310, 160, 120], dtype=d) + 5 * torch.rand(pairs, 4, generator=g, dtype=d)
    z = Sim3.exp(0.2 * torch.randn(pairs, 7, generator=g, dtype=d))
    ui = torch.rand(M, 2, generator=g, dtype=d) * torch.tensor([320.0, 240])
    di = 1 + 3 * torch.rand(M, generator=g, dtype=d)
    X = di[:, None] * torch.cat([(ui - K[pair, 2:]) / K[pair, :2], torch.ones(M, 1, dtype=d)], 1)
    p = z[pair].act(X)
    uj = p[:, :2] / p[:, 2:] * K[pair, :2] + K[pair, 2:] + torch.randn(M, 2, generator=g, dtype=d) * 3
    dj = p[:, 2] * (1 + 0.05 * torch.randn(M, generator=g, dtype=d))
    di[::11], dj[3::7] = 0, 0
    dj[5::13] *= -1
    affine = torch.tensor([1.0, 0, 1, 0], dtype=d) + 0.03 * torch.randn(pairs, 4, generator=g, dtype=d)
    ids = torch.arange(pairs)
    columns = [c.float() for c in (ui, uj, di, dj, torch.rand(M, generator=g, dtype=d))]
    return PairMatches(start, ids, ids + 1, ids, *columns), PairGeometry(z, K, K + 1, affine)


OBJECTIVES = [
    Objective(Kernel(15, 250, 2, "log1p"), Kernel(0.8), 2.0),
    Objective(Kernel(30, 600, 3), Kernel(0.1), 1.0, both_directions=False),
]


def moved(geometry: PairGeometry, x: torch.Tensor) -> PairGeometry:
    step = Sim3.exp(x[:, :7])
    return PairGeometry(
        step @ geometry.z,
        geometry.intrinsics_i + torch.cat([x[:, 11:13], torch.zeros_like(x[:, :2])], 1),
        geometry.intrinsics_j + torch.cat([x[:, 13:15], torch.zeros_like(x[:, :2])], 1),
        geometry.affine + x[:, 7:11],
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradient_against_autograd(objective: Objective) -> None:
    matches, geometry = problem()
    norm = global_normalisation(matches, objective)
    x = torch.zeros(len(matches), 15, dtype=torch.float64, requires_grad=True)
    sums = residuals.accumulate(matches, moved(geometry, x), objective, norm, 0)
    (grad,) = torch.autograd.grad((sums.pixels + sums.points).sum(), x)
    analytic = residuals.accumulate(matches, geometry, objective, norm, 15).gradient
    assert analytic is not None
    assert torch.allclose(grad, analytic, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_jacobians_against_autograd(objective: Objective) -> None:
    matches, geometry = problem(3)
    rows = slice(0, matches.rows)
    flat, solid = residuals.block_residuals(matches, geometry, objective, rows, True)
    x = torch.zeros(len(matches), 15, dtype=torch.float64)

    def values(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pixels, points = residuals.block_residuals(matches, moved(geometry, x), objective, rows, False)
        return (*(r.value for r in pixels), points.value)

    numeric = torch.autograd.functional.jacobian(values, x)
    pair = matches.pair_of_row
    for residual, full in zip([*flat, solid], numeric, strict=True):
        own = full[torch.arange(len(pair)), :, pair]
        assert residual.jacobian is not None
        good = residual.usable
        assert good.any()
        assert torch.allclose(own[good], residual.jacobian[good], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("parameters", [0, 7, 11, 15])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_fused_agrees_with_reference(objective: Objective, parameters: int) -> None:
    for seed in range(5):
        matches, geometry = problem(seed, pairs=7, per_pair=60)
        norm = global_normalisation(matches, objective)
        slow = residuals.accumulate(matches, geometry, objective, norm, parameters)
        fast = fused.accumulate(matches, geometry, objective, norm, parameters)
        assert torch.allclose(slow.pixels, fast.pixels, rtol=1e-10, atol=1e-14)
        assert torch.allclose(slow.points, fast.points, rtol=1e-10, atol=1e-14)
        if parameters:
            assert torch.allclose(slow.gradient, fast.gradient, rtol=1e-8, atol=1e-12)
            assert torch.allclose(slow.normal, fast.normal, rtol=1e-8, atol=1e-10)
        errors = fused.pixel_errors(matches, geometry, objective).double().sort().values
        expected = residuals.pixel_errors(matches, geometry, objective).sort().values
        assert torch.allclose(errors, expected, rtol=1e-4, atol=1e-3)


def test_spread_errors_are_of_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    matches, geometry = problem(4, pairs=7, per_pair=60)
    monkeypatch.setattr(residuals, "BLOCK", 17)
    told = (matches, geometry, OBJECTIVES[0], 40)
    errors, expected = (way.pixel_errors(*told).double().sort().values for way in (fused, residuals))
    assert len(expected) == len(errors) < matches.rows
    assert torch.allclose(errors, expected, rtol=1e-4, atol=1e-3)


def test_blocks_of_rows_know_their_pairs() -> None:
    matches, _ = problem(5)
    gap = torch.cat([matches.start[:2], matches.start[1:2], matches.start[1:]])  # two pairs without a match
    heads = torch.arange(len(gap) - 1)
    gappy = replace(matches, start=gap, observation_i=heads, observation_j=heads, edge=heads)
    whole = gappy.pair_of_row
    for rows in (slice(0, 7), slice(5, 30), slice(matches.rows - 3, matches.rows + 9)):
        assert torch.equal(gappy.pairs_of(rows), whole[rows])


def test_view_centred_votes_are_equal() -> None:
    matches, _ = problem(1)
    norm = view_centred_normalisation(matches, OBJECTIVES[0], matches.observation_i, matches.observation_j)
    weights = torch.zeros(len(matches), dtype=torch.float64)
    has = (matches.depth_i > 0).double() + (matches.depth_j > 0).double()
    weights.index_add_(0, matches.pair_of_row, matches.weight.double() * has)
    assert torch.isclose((weights * norm.pixels).sum(), torch.tensor(1.0, dtype=torch.float64))
    frames = len(matches) + 1
    touching = torch.zeros(frames, dtype=torch.float64)
    touching.index_add_(0, matches.observation_i, weights).index_add_(0, matches.observation_j, weights)
    expected = (1 / touching[matches.observation_i] + 1 / touching[matches.observation_j]) / frames
    assert torch.allclose(norm.pixels, expected)


def test_thinning_keeps_every_pair() -> None:
    matches, _ = problem(2, pairs=9, per_pair=100)
    thin = thin_pairs(matches, 10)
    assert (thin.start.diff() == matches.start.diff().clamp(max=10)).all()
    assert thin.rows == int(thin.start[-1])


def test_thinned_rows_stand_for_all_of_their_pair() -> None:
    """Rows come in sampling order, the surest first: a prefix would count their weights twice."""
    weight = torch.rand(4000, generator=torch.Generator().manual_seed(0)) + 0.05
    order = sampling_order(weight.double().numpy(), np.random.default_rng(0).random(4000), 0.0, True)
    weight, ids, zeros = weight[torch.from_numpy(order)], torch.zeros(1, dtype=torch.long), torch.zeros(4000)
    matches = PairMatches(
        torch.tensor([0, 4000]), ids, ids, ids, zeros[:, None].expand(-1, 2), zeros[:, None].expand(-1, 2),
        zeros, zeros, weight,
    )  # fmt: skip
    thin = thin_pairs(matches, 500)
    assert thin.weight[0] == weight[0]
    assert float(thin.weight.mean() / weight.mean()) == pytest.approx(1, abs=0.03)
    assert float(weight[:500].mean() / weight.mean()) > 1.1

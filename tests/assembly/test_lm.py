"""The damped descent where the linear system has no solution, and its bytes on any number of threads."""

from dataclasses import dataclass, replace

import pytest
import torch
from numpy.linalg import LinAlgError
from threadpoolctl import threadpool_limits
from torch import Tensor

from geoweaver.assembly import blocks, lm
from geoweaver.assembly.blocks import BlockSystem, Coarse
from geoweaver.assembly.hidden import Coupling, hide
from geoweaver.assembly.stopping import StopRule

EYE = torch.eye(2, dtype=torch.float64)
INDEFINITE = torch.tensor([[1.0, 1.01], [1.01, 1.0]], dtype=torch.float64)


@dataclass(frozen=True)
class Bowl:
    """Half the square of a point (2), whose normal matrix a caller spoils."""

    normal: Tensor
    tried: list[float]
    coarse: bool = False

    def loss(self, state: Tensor) -> float:
        return float(state.square().sum() / 2)

    def linearise(self, state: Tensor) -> tuple[float, BlockSystem]:
        none, nothing = torch.zeros(0, dtype=torch.float64), torch.zeros(1, 2, 0, dtype=torch.float64)
        return self.loss(state), BlockSystem(
            self.normal[None], torch.zeros(0, 2, dtype=torch.long), nothing.reshape(0, 2, 2), state[None],
            nothing, none.reshape(0, 0), none, torch.ones(1, 2, dtype=torch.bool),
            Coarse(torch.zeros(1, dtype=torch.long), EYE[None]) if self.coarse else None,
        )  # fmt: skip

    def step(self, state: Tensor, system: BlockSystem, damping: float) -> Tensor:
        self.tried.append(damping)
        return state + system.solve(damping)[0][0]

    def median_px(self, state: Tensor) -> float:
        return float(state.abs().max())


START = torch.tensor([3.0, -1.0], dtype=torch.float64)


def test_a_failed_factorisation_is_damped_more_until_it_succeeds() -> None:
    bowl = Bowl(INDEFINITE, [])
    with pytest.raises(LinAlgError):
        bowl.linearise(START)[1].solve(lm.FIRST_DAMPING)
    state, progress, why = lm.minimise(bowl, START, StopRule(most=4))
    assert bowl.tried[:4] == pytest.approx([lm.FIRST_DAMPING * 8**k for k in range(4)])
    assert len(progress.losses) == 5
    assert (state.isfinite().all(), why) == (True, "iteration limit")
    assert bowl.loss(state) < bowl.loss(START)


@pytest.mark.parametrize("direct_below", [0, 1600])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("normal", [-EYE, EYE * torch.nan, torch.full((2, 2), torch.inf).double()])
def test_where_no_damping_helps_it_stops_where_it_is(
    normal: Tensor, coarse: bool, direct_below: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "DIRECT_BELOW", direct_below)
    bowl = Bowl(normal, [], coarse)
    state, progress, why = lm.minimise(bowl, START, StopRule())
    assert torch.equal(state, START)
    assert (len(progress.losses), len(bowl.tried)) == (1, 12)
    indefinite_but_solved = direct_below == 0 and not coarse and bool(normal.isfinite().all())
    assert why == ("no descent left" if indefinite_but_solved else "normal equations have no solution")


def test_hidden_unknowns_that_nothing_holds_are_damped_too() -> None:
    """Two hidden unknowns, of which the data know the sum alone, are left out as if they were one."""
    _, system = Bowl(2 * EYE, []).linearise(START)
    first = torch.zeros(1, dtype=torch.long)
    link, border = torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 2, 0, dtype=torch.float64)
    mixed, gradient = torch.full((1, 2, 2), 0.5).double(), torch.ones(1, 2, dtype=torch.float64)
    sum_alone = torch.ones(1, 2, 2, dtype=torch.float64)
    sum_alone[0, 1, 1] -= 1e-15
    reduced = hide(system, [Coupling(first, sum_alone, gradient, link, mixed, border)])
    one = Coupling(first, sum_alone[:, :1, :1], gradient[:, :1], link, mixed[:, :1], border[:, :1])
    expected = hide(system, [one])
    assert torch.allclose(reduced.diagonal, expected.diagonal, atol=1e-3)
    assert torch.allclose(reduced.gradient, expected.gradient, atol=1e-3)
    nothing = replace(one, normal=0 * one.normal, mixed=0 * one.mixed, gradient=0 * one.gradient)
    assert torch.equal(hide(system, [nothing]).gradient, system.gradient)


@pytest.mark.parametrize("direct_below", [0, 1600])
def test_the_same_step_however_many_threads_the_libraries_have(
    direct_below: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "DIRECT_BELOW", direct_below)
    system, steps = dense_chain(60), []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            steps.append(system.solve(1e-4)[0].numpy().tobytes())
    assert steps[0] == steps[1]


def dense_chain(count: int) -> BlockSystem:
    """All blocks of 8 hang together, in one part."""
    g = torch.Generator().manual_seed(0)
    half = torch.randn(8 * count, 8 * count, generator=g, dtype=torch.float64)
    whole = (half @ half.T + torch.eye(8 * count)).reshape(count, 8, count, 8).transpose(1, 2)
    i, j = torch.triu_indices(count, count, 1)
    frames = torch.arange(count)
    none, basis = torch.zeros(0, dtype=torch.float64), torch.eye(8, 7, dtype=torch.float64)
    return BlockSystem(
        whole[frames, frames], torch.stack([i, j], 1), whole[i, j],
        torch.randn(count, 8, generator=g, dtype=torch.float64),
        torch.zeros(count, 8, 0, dtype=torch.float64), none.reshape(0, 0), none,
        torch.ones(count, 8, dtype=torch.bool), Coarse(0 * frames, basis.expand(count, 8, 7)),
    )  # fmt: skip

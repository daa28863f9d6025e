"""SE3 and Sim3 say what pypose says: tangent order (upsilon, omega, sigma), left increments, adjoints."""

from typing import Any

import pypose
import pytest
import torch
from torch import Tensor

from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.so3 import quaternion_from_matrix

GROUPS = {6: (SE3, pypose.se3, pypose.SE3), 7: (Sim3, pypose.sim3, pypose.Sim3)}


def tangents(size: int, reach: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(size)
    delta = torch.randn(200, size, dtype=torch.float64, generator=generator)
    delta[:, :3] *= reach
    return delta


def theirs(element: Any) -> Any:
    """Our elements as pypose keeps them: translation, quaternion x y z w, scale."""
    q = quaternion_from_matrix(element.rotation).roll(-1, -1)
    if isinstance(element, SE3):
        return pypose.SE3(torch.cat([element.translation, q], -1))
    return pypose.Sim3(torch.cat([element.translation, q, element.scale[:, None]], -1))


@pytest.mark.parametrize("reach", [1.0, 1e5])
@pytest.mark.parametrize("size", [6, 7])
def test_exp_and_log(size: int, reach: float) -> None:
    group, algebra, _ = GROUPS[size]
    delta = tangents(size, reach)
    element = group.exp(delta)
    torch.testing.assert_close(element.matrix(), algebra(delta).Exp().matrix(), rtol=1e-8, atol=1e-9 * reach)
    torch.testing.assert_close(element.log(), theirs(element).Log().tensor(), rtol=1e-7, atol=1e-8 * reach)


@pytest.mark.parametrize("size", [6, 7])
def test_compose_invert_act(size: int) -> None:
    group, _, _ = GROUPS[size]
    a, b = group.exp(tangents(size)), group.exp(tangents(size).flip(0))
    x = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close((a @ b).matrix(), (theirs(a) @ theirs(b)).matrix(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(a.inverse().matrix(), theirs(a).Inv().matrix(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(a.act(x), theirs(a).Act(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [6, 7])
def test_adjoint(size: int) -> None:
    group, algebra, _ = GROUPS[size]
    a, delta = group.exp(tangents(size)), tangents(size).roll(1, 0)
    ours = (a.adjoint() @ delta[..., None]).squeeze(-1)
    torch.testing.assert_close(ours, theirs(a).Adj(algebra(delta)).tensor(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [6, 7])
def test_increments_are_on_the_left(size: int) -> None:
    group, algebra, _ = GROUPS[size]
    a, delta = group.exp(tangents(size)), 0.1 * tangents(size).roll(1, 0)
    retracted = theirs(a).Retr(algebra(delta)).matrix()
    torch.testing.assert_close((group.exp(delta) @ a).matrix(), retracted, rtol=1e-9, atol=1e-9)

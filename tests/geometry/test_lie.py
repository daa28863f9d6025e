"""SE3 and Sim3: axioms, exp and log, adjoints, Jacobians, from millimetres to a thousand kilometres."""

import math
from typing import Any

import pytest
import torch
from geometry_strategies import positions, rotation_vectors, se3_tangents, sim3_tangents
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from torch import Tensor

from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.geometry.so3 import hat

ELEMENTS = st.one_of(se3_tangents().map(SE3.exp), sim3_tangents().map(Sim3.exp))


def elements_of_one_group(count: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.one_of(
        st.tuples(*[se3_tangents().map(SE3.exp)] * count), st.tuples(*[sim3_tangents().map(Sim3.exp)] * count)
    )


def same_motion(a: Any, b: Any, *coordinates: Tensor, tolerance: float = 1e-13) -> None:
    """Equal linear parts, and translations equal relative to the largest coordinate that took part."""
    largest = max(1e-300, *(float(c.norm()) for c in (a.translation, b.translation, *coordinates)))
    if isinstance(a, Sim3):
        assert float((a.scale / b.scale).log().abs().max()) < tolerance
    assert float((a.rotation - b.rotation).abs().max()) < tolerance
    assert float((a.translation - b.translation).norm()) <= tolerance * largest


def generator(delta: Tensor) -> Tensor:
    """The 4x4 matrix whose exponential the group's exp must be."""
    matrix = torch.zeros(4, 4, dtype=torch.float64)
    matrix[:3, :3] = hat(delta[3:6])
    if len(delta) == 7:
        matrix[:3, :3] += delta[6] * torch.eye(3, dtype=torch.float64)
    matrix[:3, 3] = delta[:3]
    return matrix


@given(elements_of_one_group(3))
def test_group_axioms(elements: tuple[Any, Any, Any]) -> None:
    a, b, c = elements
    one = type(a).identity()
    reach = 60.0 * (a.translation.norm() + 60 * (b.translation.norm() + 60 * c.translation.norm()))
    same_motion(a @ one, a)
    same_motion(one @ a, a)
    same_motion((a @ b) @ c, a @ (b @ c), reach, tolerance=1e-14)
    same_motion(a @ a.inverse(), one, a.translation)
    same_motion(a.inverse() @ a, one, a.inverse().translation)


@given(elements_of_one_group(2), positions())
def test_act_is_the_matrix_and_respects_composition(elements: tuple[Any, Any], x: Tensor) -> None:
    a, b = elements
    homogeneous = a.matrix() @ torch.cat([x, torch.ones(1, dtype=torch.float64)])
    size = float(a.translation.norm() + 60 * b.translation.norm() + 60 * 60 * x.norm()) + 1e-300
    assert float((homogeneous[:3] - a.act(x)).norm()) <= 1e-15 * size
    assert float(((a @ b).act(x) - a.act(b.act(x))).norm()) <= 2e-14 * size
    same_motion(type(a).from_matrix(a.matrix()), a)
    same_motion(type(a).from_matrix(a.matrix()[:3]), a)


@given(st.one_of(se3_tangents(), sim3_tangents()))
def test_log_inverts_exp(delta: Tensor) -> None:
    group = SE3 if len(delta) == 6 else Sim3
    back = group.exp(delta).log()
    assert float((back[3:] - delta[3:]).norm()) <= 1e-13 * max(1.0, float(delta[3:].norm()))
    # V grows and shrinks with the scale: e^4 either way
    assert float((back[:3] - delta[:3]).norm()) <= 1e-11 * float(delta[:3].norm())


@given(ELEMENTS)
def test_exp_inverts_log(element: Any) -> None:
    same_motion(type(element).exp(element.log()), element, tolerance=1e-11)


@given(st.one_of(se3_tangents(), sim3_tangents()))
def test_exp_is_the_matrix_exponential(delta: Tensor) -> None:
    group = SE3 if len(delta) == 6 else Sim3
    # the translation is linear in upsilon: a unit one keeps the reference exact at any coordinate
    length = max(float(delta[:3].norm()), 1e-300)
    unit = torch.cat([delta[:3] / length, delta[3:]])
    expected = torch.from_numpy(expm(generator(unit).numpy()))
    same_motion(group.exp(unit), group.from_matrix(expected), tolerance=1e-12)
    stretched = length * group.exp(unit).translation
    assert float((group.exp(delta).translation - stretched).norm()) <= 1e-14 * float(stretched.norm())


@given(st.one_of(se3_tangents(), sim3_tangents()), st.floats(-1, 1), st.floats(-1, 1))
def test_one_direction_commutes(delta: Tensor, s: float, t: float) -> None:
    group = SE3 if len(delta) == 6 else Sim3
    same_motion(
        group.exp(s * delta) @ group.exp(t * delta),
        group.exp((s + t) * delta),
        60 * delta[:3],
        tolerance=1e-12,
    )


@given(
    st.one_of(st.tuples(se3_tangents(), se3_tangents(0.5)), st.tuples(sim3_tangents(), sim3_tangents(0.5)))
)
def test_adjoint_moves_an_increment_to_the_other_side(pair: tuple[Tensor, Tensor]) -> None:
    group = SE3 if len(pair[0]) == 6 else Sim3
    T, delta = group.exp(pair[0]), 0.1 * pair[1]
    moved = T.adjoint() @ delta
    reach = 1e3 * (T.translation.norm() + delta[:3].norm())
    same_motion(T @ group.exp(delta), group.exp(moved) @ T, reach, tolerance=1e-12)


@given(elements_of_one_group(2))
def test_adjoint_is_a_homomorphism(elements: tuple[Any, Any]) -> None:
    a, b = elements
    product = a.adjoint() @ b.adjoint()
    size = float((a.adjoint().abs() @ b.adjoint().abs()).max())
    assert float(((a @ b).adjoint() - product).abs().max()) <= 1e-13 * size


@given(ELEMENTS, positions())
def test_act_jacobian_is_autograd(element: Any, x: Tensor) -> None:
    group = type(element)
    size = 6 if group is SE3 else 7
    moved = element.act(x)
    zero = torch.zeros(size, dtype=torch.float64)
    measured = torch.func.jacfwd(lambda d: (group.exp(d) @ element).act(x))(zero)
    analytic = group.act_jacobian(moved)
    largest = max(1.0, float(moved.norm()), 60 * float(x.norm()), float(element.translation.norm()))
    assert float((measured - analytic).abs().max()) <= 1e-13 * largest


@given(sim3_tangents(), se3_tangents(), positions())
def test_world_camera_sees_the_chunks_points_at_world_scale(s: Tensor, t: Tensor, x: Tensor) -> None:
    world_from_chunk, cam_from_chunk = Sim3.exp(s), SE3.exp(t)
    cam_from_world = world_camera(world_from_chunk, cam_from_chunk)
    expected = world_from_chunk.scale * cam_from_chunk.act(x)
    got = cam_from_world.act(world_from_chunk.act(x))
    size = world_from_chunk.translation.norm() + 60 * (x.norm() + cam_from_chunk.translation.norm())
    assert float((got - expected).norm()) <= 1e-13 * float(size)
    centre = world_from_chunk.act(cam_from_chunk.centre)
    assert float((cam_from_world.centre - centre).norm()) <= 1e-13 * float(size)


@given(positions(), rotation_vectors(), st.floats(1e4, 1e6))
def test_a_thousand_poses_far_away_stay_a_rotation(step: Tensor, omega: Tensor, far: float) -> None:
    T = SE3.exp(torch.cat([step / (1 + step.norm()), 1e-2 * omega]))
    pose = SE3(torch.eye(3, dtype=torch.float64), torch.full((3,), far, dtype=torch.float64))
    for _ in range(20):
        pose = T @ pose
    repaired = pose.orthonormalised()
    assert float((repaired.rotation @ repaired.rotation.mT - torch.eye(3)).abs().max()) < 1e-15 * 3
    same_motion(repaired, pose, tolerance=1e-13)


@pytest.mark.parametrize("group", [SE3, Sim3])
def test_near_identity_increments_keep_their_digits(group: Any) -> None:
    size = 6 if group is SE3 else 7
    for small in (1e-9, 1e-12, 1e-15):
        delta = small * torch.tensor([1.0, -2.0, 3.0, 0.5, -0.25, 0.125, 0.75][:size], dtype=torch.float64)
        # the scale is 1 + sigma in floating point: its log cannot keep more
        tolerance = torch.full((size,), 1e-9 * small, dtype=torch.float64)
        tolerance[6:] = 2.3e-16
        assert bool(((group.exp(delta).log() - delta).abs() <= tolerance).all())


@pytest.mark.parametrize("group", [SE3, Sim3])
def test_gradients_are_finite_at_identity_and_half_turn(group: Any) -> None:
    size = 6 if group is SE3 else 7
    for angle in (0.0, math.pi):
        delta = torch.zeros(size, dtype=torch.float64)
        delta[4] = angle
        delta.requires_grad_()
        group.exp(delta).log().sum().backward()
        assert delta.grad is not None and bool(delta.grad.isfinite().all())


@pytest.mark.parametrize("group", [SE3, Sim3])
def test_batches_index_and_broadcast(group: Any) -> None:
    size = 6 if group is SE3 else 7
    delta = torch.randn(4, 5, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = group.exp(delta)
    assert len(batch) == 4
    same_motion(batch[1, 2], group.exp(delta[1, 2]))
    assert batch[..., None].act(torch.zeros(7, 3, dtype=torch.float64)).shape == (4, 5, 7, 3)
    assert batch[torch.tensor([0, 3])].translation.shape == (2, 5, 3)
    assert batch[delta[..., 0] > 0].rotation.shape == (int((delta[..., 0] > 0).sum()), 3, 3)
    assert batch[:, None].rotation.shape == (4, 1, 5, 3, 3)
    assert group.identity(0).log().shape == (0, size)
    assert group.identity(2, 3).adjoint().shape == (2, 3, size, size)
    assert batch.to(torch.float32).translation.dtype == torch.float32

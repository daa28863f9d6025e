"""Rotations: round trips over all angles, Jacobians against autograd, agreement with roma."""

import math

import pytest
import roma
import torch
from geometry_strategies import axes, rotation_vectors
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from torch import Tensor

from geoweaver.geometry.so3 import (
    hat,
    matrix_from_6d,
    matrix_from_quaternion,
    nearest_rotation,
    quaternion_from_matrix,
    r6_from_matrix,
    rotation_angle,
    so3_exp,
    so3_left_jacobian,
    so3_log,
)

EYE = torch.eye(3, dtype=torch.float64)
six = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=6, max_size=6)


def close(a: Tensor, b: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def random_rotations(count: int) -> Tensor:
    return roma.random_rotmat(count, dtype=torch.float64)


@given(rotation_vectors(math.pi))
def test_exp_is_a_rotation(omega: Tensor) -> None:
    R = so3_exp(omega)
    close(R @ R.mT, EYE, 2e-15)
    close(torch.linalg.det(R), torch.tensor(1.0, dtype=torch.float64), 2e-15)
    close(R, torch.from_numpy(expm(hat(omega).numpy())), 5e-15)


@given(rotation_vectors())
def test_log_inverts_exp_to_relative_precision(omega: Tensor) -> None:
    close(so3_log(so3_exp(omega)), omega, 1e-14 * float(omega.norm()))


@given(axes())
def test_half_turn_survives_the_log(axis: Tensor) -> None:
    R = so3_exp(math.pi * axis)
    omega = so3_log(R)
    assert abs(float(omega.norm()) - math.pi) < 1e-14
    close(so3_exp(omega), R, 1e-14)


@given(rotation_vectors())
def test_left_jacobian_is_the_derivative_of_exp(omega: Tensor) -> None:
    back = so3_exp(omega).mT
    measured = torch.func.jacfwd(lambda d: so3_exp(omega + d) @ back)(torch.zeros_like(omega))
    J = so3_left_jacobian(omega)
    close(measured, torch.stack([hat(J[:, i]) for i in range(3)], -1), 1e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, math.pi - 1e-9, math.pi])
def test_gradients_are_finite_everywhere(angle: float) -> None:
    omega = (angle * torch.tensor([0.6, 0.0, -0.8], dtype=torch.float64)).requires_grad_()
    so3_log(so3_exp(omega)).sum().backward()
    assert omega.grad is not None and bool(omega.grad.isfinite().all())


@given(rotation_vectors())
def test_angle_is_true_at_both_ends(omega: Tensor) -> None:
    angle = omega.norm()
    close(rotation_angle(so3_exp(omega)), angle, 1e-15 + 1e-14 * float(angle))


@given(rotation_vectors(math.pi))
def test_quaternions_go_round(omega: Tensor) -> None:
    R = so3_exp(omega)
    q = quaternion_from_matrix(R)
    assert float(q[0]) >= 0 and abs(float(q.norm()) - 1) < 1e-15
    close(matrix_from_quaternion(-3 * q), R, 5e-15)


def test_agreement_with_roma() -> None:
    torch.manual_seed(0)
    omega = roma.random_rotvec(500, dtype=torch.float64)
    R = roma.rotvec_to_rotmat(omega)
    close(so3_exp(omega), R, 1e-14)
    close(so3_log(R), roma.rotmat_to_rotvec(R), 1e-12)
    theirs = roma.rotmat_to_unitquat(R).roll(1, -1)  # x y z w there
    close(quaternion_from_matrix(R), theirs * torch.sign(theirs[:, :1]), 1e-14)
    close(matrix_from_quaternion(theirs), R, 1e-14)
    other = random_rotations(500)
    close(rotation_angle(R.mT @ other), roma.rotmat_geodesic_distance(R, other), 1e-9)


@given(rotation_vectors(math.pi))
def test_6d_form_goes_round(omega: Tensor) -> None:
    R = so3_exp(omega)
    close(matrix_from_6d(r6_from_matrix(R)), R, 1e-14)


@given(six, st.floats(0.01, 100), st.floats(-5, 5))
def test_6d_form_is_gram_schmidt(values: list[float], stretch: float, shear: float) -> None:
    r6 = torch.tensor(values, dtype=torch.float64)
    a, b = r6[:3], r6[3:]
    if float(torch.linalg.cross(a, b).norm()) < 1e-3 * float(a.norm() * b.norm() + 1):
        return
    R = matrix_from_6d(r6)
    close(R @ R.mT, EYE, 1e-10)
    assert float(torch.linalg.det(R)) > 0
    close(R[0], a / a.norm(), 1e-14)
    # the plane and the first direction are all that matters
    close(matrix_from_6d(torch.cat([stretch * a, stretch * b + shear * a])), R, 1e-9)
    close(R, roma.special_gramschmidt(torch.stack([a, b], -1)).mT, 1e-9)


def test_nearest_rotation_agrees_with_procrustes_and_never_mirrors() -> None:
    torch.manual_seed(1)
    noisy = random_rotations(200) + 0.3 * torch.randn(200, 3, 3, dtype=torch.float64)
    mirrored = torch.cat([noisy, -noisy])
    nearest = nearest_rotation(mirrored)
    close(nearest, roma.special_procrustes(mirrored), 1e-10)
    close(torch.linalg.det(nearest), torch.ones(400, dtype=torch.float64), 1e-12)


def test_empty_and_deep_batches() -> None:
    for shape in [(0,), (2, 0), (2, 3)]:
        omega = torch.randn(*shape, 3, dtype=torch.float64)
        R = so3_exp(omega)
        assert so3_log(R).shape == omega.shape and rotation_angle(R).shape == shape
        assert matrix_from_6d(r6_from_matrix(R)).shape == R.shape == nearest_rotation(R).shape

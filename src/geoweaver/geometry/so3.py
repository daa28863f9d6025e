"""Rotations as batched 3x3 matrices: exponential, logarithm, Jacobian, quaternions (w first), 6D form."""

import torch
from jaxtyping import Float
from torch import Tensor

_SERIES_BELOW = 1e-3
"""Angle (rad) under which the Taylor series is the more accurate form in float64."""


def hat(v: Float[Tensor, "*b 3"]) -> Float[Tensor, "*b 3 3"]:
    """The matrix [v]x with [v]x y = v cross y."""
    x, y, z = v.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*x.shape, 3, 3)


def _sine_coefficients(angle2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """sin(t)/t, (1 - cos t)/t^2 and (t - sin t)/t^3 as functions of t^2, smooth through zero."""
    small = angle2 < _SERIES_BELOW**2
    safe2 = torch.where(small, torch.ones_like(angle2), angle2)
    t = safe2.sqrt()
    a = torch.where(small, 1 - angle2 / 6 + angle2**2 / 120, t.sin() / t)
    b = torch.where(small, 0.5 - angle2 / 24 + angle2**2 / 720, 2 * (t / 2).sin() ** 2 / safe2)
    c = torch.where(small, 1 / 6 - angle2 / 120 + angle2**2 / 5040, (t - t.sin()) / (safe2 * t))
    return a, b, c


def so3_exp(omega: Float[Tensor, "*b 3"]) -> Float[Tensor, "*b 3 3"]:
    """Rotation by the angle |omega| about omega (Rodrigues)."""
    a, b, _ = _sine_coefficients(omega.square().sum(-1))
    W = hat(omega)
    eye = torch.eye(3, dtype=omega.dtype, device=omega.device)
    return eye + a[..., None, None] * W + b[..., None, None] * (W @ W)


def so3_left_jacobian(omega: Float[Tensor, "*b 3"]) -> Float[Tensor, "*b 3 3"]:
    """J with exp(omega + d) = exp(J d) exp(omega) to first order; also the V of the SE3 exponential."""
    _, b, c = _sine_coefficients(omega.square().sum(-1))
    W = hat(omega)
    eye = torch.eye(3, dtype=omega.dtype, device=omega.device)
    return eye + b[..., None, None] * W + c[..., None, None] * (W @ W)


def so3_log(rotation: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b 3"]:
    """Axis times angle in [0, pi], accurate at both ends because it goes through the quaternion."""
    q = quaternion_from_matrix(rotation)
    w, v = q[..., 0], q[..., 1:]
    n2 = v.square().sum(-1)
    small = n2 < _SERIES_BELOW**2
    n = torch.where(small, torch.ones_like(n2), n2).sqrt()
    # w is 0 at half a turn: the branch not taken must stay finite, or its gradient is NaN
    safe_w = torch.where(small, w, torch.ones_like(w))
    ratio2 = n2 / safe_w.square()
    series = 2 / safe_w * (1 - ratio2 / 3 + ratio2.square() / 5)
    factor = torch.where(small, series, 2 * torch.atan2(n, w) / n)
    return factor[..., None] * v


def rotation_angle(rotation: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b"]:
    """Angle in radians by atan2 of sine and cosine, so that small angles are true."""
    skew = torch.stack(
        [
            rotation[..., 2, 1] - rotation[..., 1, 2],
            rotation[..., 0, 2] - rotation[..., 2, 0],
            rotation[..., 1, 0] - rotation[..., 0, 1],
        ],
        -1,
    )
    trace = rotation.diagonal(dim1=-2, dim2=-1).sum(-1)
    return torch.atan2(skew.norm(dim=-1), trace - 1)


def quaternion_from_matrix(rotation: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b 4"]:
    """Unit quaternion (w, x, y, z) with w >= 0, from the best conditioned of the four formulas."""
    m = rotation
    m00, m11, m22 = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    s0, s1, s2 = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    p01, p02, p12 = m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    candidates = torch.stack(
        [
            torch.stack([1 + m00 + m11 + m22, s0, s1, s2], -1),
            torch.stack([s0, 1 + m00 - m11 - m22, p01, p02], -1),
            torch.stack([s1, p01, 1 - m00 + m11 - m22, p12], -1),
            torch.stack([s2, p02, p12, 1 - m00 - m11 + m22], -1),
        ],
        -2,
    )
    best = candidates.diagonal(dim1=-2, dim2=-1).argmax(-1)
    q = candidates.gather(-2, best[..., None, None].expand(*best.shape, 1, 4)).squeeze(-2)
    q = q / q.norm(dim=-1, keepdim=True)
    return torch.where(q[..., :1] < 0, -q, q)


def matrix_from_quaternion(q: Float[Tensor, "*b 4"]) -> Float[Tensor, "*b 3 3"]:
    """Rotation of a quaternion (w, x, y, z) of any norm but zero."""
    w, x, y, z = (q / q.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(rows, -1).reshape(*w.shape, 3, 3)


def matrix_from_6d(r6: Float[Tensor, "*b 6"]) -> Float[Tensor, "*b 3 3"]:
    """Rotation whose first two rows are the two halves of r6, orthonormalised (Gram-Schmidt)."""
    a, b = r6[..., :3], r6[..., 3:]
    x = a / a.norm(dim=-1, keepdim=True)
    y = b - (x * b).sum(-1, keepdim=True) * x
    y = y / y.norm(dim=-1, keepdim=True)
    return torch.stack([x, y, torch.linalg.cross(x, y)], -2)


def r6_from_matrix(rotation: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b 6"]:
    """The first two rows, one after the other."""
    return rotation[..., :2, :].flatten(-2)


def nearest_rotation(matrix: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b 3 3"]:
    """The proper rotation closest to a matrix in the Frobenius norm."""
    u, _, vt = torch.linalg.svd(matrix)
    sign = torch.ones(matrix.shape[:-1], dtype=matrix.dtype, device=matrix.device)
    sign[..., 2] = torch.sign(torch.linalg.det(u @ vt))
    nearest: Tensor = u @ (sign[..., None] * vt)
    return nearest

"""Residuals and Jacobians on tensors of any device: the reference that the fused kernel must agree with."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.assembly.kernel import Kernel, cdf_loss, cdf_slope
from geoweaver.assembly.pairs import Normalisation, Objective, PairGeometry, PairMatches
from geoweaver.geometry import Sim3
from geoweaver.geometry.so3 import hat

PARAMETERS = 15
NEAR = 1e-3
"""A point counts as behind the camera when it is nearer than this share of its source depth."""
BLOCK = 65536
"""Rows per block: bounds the memory of the Jacobians to about 60 MB."""


@dataclass(frozen=True)
class Residual:
    """One residual type of a block of matches."""

    value: Float[Tensor, "m d"]
    active: Bool[Tensor, "m"]
    """The match has the depth that this residual needs (v_m); it counts in the loss."""
    usable: Bool[Tensor, "m"]
    """Also in front of the camera; otherwise the match costs the full loss and pulls at nothing."""
    jacobian: Float[Tensor, "m d 15"] | None

    def norm(self) -> Float[Tensor, "m"]:
        return torch.where(self.usable, self.value.square().sum(-1), torch.ones_like(self.value[:, 0])).sqrt()


def block_residuals(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, rows: slice, jacobians: bool
) -> tuple[list[Residual], Residual]:
    """2D and 3D residuals of some rows (Eqs. affine_depth, residual_2d, residual_3d)."""
    pair = matches.pairs_of(rows)
    z, Ki, Kj = geometry.z[pair], geometry.intrinsics_i[pair], geometry.intrinsics_j[pair]
    affine = geometry.affine[pair]
    ui, uj = matches.pixel_i[rows].double(), matches.pixel_j[rows].double()
    raw_i, raw_j = matches.depth_i[rows].double(), matches.depth_j[rows].double()
    di, dj = affine[:, 0] * raw_i + affine[:, 1], affine[:, 2] * raw_j + affine[:, 3]
    ray_i, ray_j = _ray(ui, Ki), _ray(uj, Kj)
    Xi, Xj = di[:, None] * ray_i, dj[:, None] * ray_j
    active_i, active_j = raw_i > 0, raw_j > 0
    ok_i, ok_j = active_i & (di > 0), active_j & (dj > 0)
    inverse = z.inverse()
    p, back = z.act(Xi), inverse.act(Xj)
    front = ok_i & (p[:, 2] > NEAR * z.scale * di)
    behind_ok = ok_j & (back[:, 2] > NEAR * dj / z.scale)
    distance = torch.where(ok_i & ok_j, z.scale * di * dj, torch.ones_like(di)).sqrt()

    dp = dback = dXj = dlog = None
    if jacobians:
        lift_i, lift_j = _lift_jacobian(raw_i, ray_i, Xi, Ki), _lift_jacobian(raw_j, ray_j, Xj, Kj)
        dp, dback, dXj = _point_jacobians(z, inverse, p, Xj, lift_i, lift_j)
        dlog = _log_distance_jacobian((di, dj), (raw_i, raw_j), (ok_i, ok_j))

    pixels = [_reprojection(p, uj, Kj, active_i, front, dp, 13)]
    if objective.both_directions:
        pixels.append(_reprojection(back, ui, Ki, active_j, behind_ok, dback, 11))
    points = _distance(p - Xj, distance, active_i & active_j, ok_i & ok_j, dp, dXj, dlog)
    if not objective.relative:
        scale = torch.ones_like(di) if geometry.target_scale is None else geometry.target_scale[pair]
        points = Residual((p - Xj) * scale[:, None], points.active, points.usable, None)
    return pixels, points


def _point_jacobians(
    z: Sim3, inverse: Sim3, p: Tensor, Xj: Tensor, lift_i: Tensor, lift_j: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """d(Z X_i), d(Z^-1 X_j) and dX_j by the pair's local parameters."""
    sR, sRt = z.scale[:, None, None] * z.rotation, inverse.scale[:, None, None] * inverse.rotation
    dp, dback, dXj = (torch.zeros(len(p), 3, PARAMETERS, dtype=p.dtype, device=p.device) for _ in range(3))
    dp[:, :, 0:7] = _act_jacobian(p)
    dp[:, :, 7:9], dp[:, :, 11:13] = sR @ lift_i[..., :2], sR @ lift_i[..., 2:]
    dback[:, :, 0:7] = -sRt @ _act_jacobian(Xj)
    dback[:, :, 9:11], dback[:, :, 13:15] = sRt @ lift_j[..., :2], sRt @ lift_j[..., 2:]
    dXj[:, :, 9:11], dXj[:, :, 13:15] = lift_j[..., :2], lift_j[..., 2:]
    return dp, dback, dXj


def _log_distance_jacobian(
    depth: tuple[Tensor, Tensor], raw: tuple[Tensor, Tensor], ok: tuple[Tensor, Tensor]
) -> Tensor:
    """Derivative of log sqrt(s d_i d_j), the unit of the 3D residual, by the pair's local parameters."""
    dlog = torch.zeros(len(depth[0]), PARAMETERS, dtype=depth[0].dtype, device=depth[0].device)
    dlog[:, 6] = 0.5
    for column, d, r, good in zip((7, 9), depth, raw, ok, strict=True):
        half = 0.5 / torch.where(good, d, torch.ones_like(d))
        dlog[:, column], dlog[:, column + 1] = r * half, half
    return dlog


def _ray(pixel: Tensor, K: Tensor) -> Tensor:
    return torch.cat([(pixel - K[:, 2:]) / K[:, :2], torch.ones_like(pixel[:, :1])], -1)


def _lift_jacobian(raw: Tensor, ray: Tensor, X: Tensor, K: Tensor) -> Tensor:
    """dX/d(a, b, fx, fy) of X = (a d + b) ray."""
    zero = torch.zeros_like(raw)
    dfx = torch.stack([-X[:, 0] / K[:, 0], zero, zero], -1)
    dfy = torch.stack([zero, -X[:, 1] / K[:, 1], zero], -1)
    return torch.stack([raw[:, None] * ray, ray, dfx, dfy], -1)


def _act_jacobian(y: Tensor) -> Tensor:
    eye = torch.eye(3, dtype=y.dtype, device=y.device).expand(len(y), 3, 3)
    return torch.cat([eye, -hat(y), y[..., None]], -1)


def _reprojection(
    p: Tensor, u: Tensor, K: Tensor, active: Tensor, usable: Tensor, dp: Tensor | None, focal: int
) -> Residual:
    z = torch.where(usable, p[:, 2], torch.ones_like(p[:, 2]))
    flat = p[:, :2] / z[:, None]
    value = torch.where(usable[:, None], flat * K[:, :2] + K[:, 2:] - u, torch.zeros_like(u))
    if dp is None:
        return Residual(value, active, usable, None)
    dflat = (dp[:, :2] - flat[..., None] * dp[:, 2:3]) / z[:, None, None]
    jacobian = K[:, :2, None] * dflat
    jacobian[:, 0, focal] += flat[:, 0]
    jacobian[:, 1, focal + 1] += flat[:, 1]
    return Residual(value, active, usable, jacobian)


def _distance(
    gap: Tensor, unit: Tensor, active: Tensor, usable: Tensor,
    dp: Tensor | None, dXj: Tensor | None, dlog: Tensor | None,
) -> Residual:  # fmt: skip
    value = gap / unit[:, None]
    if dp is None or dXj is None or dlog is None:
        return Residual(value, active, usable, None)
    jacobian = (dp - dXj) / unit[:, None, None] - value[..., None] * dlog[:, None]
    return Residual(value, active, usable, jacobian)


@dataclass(frozen=True)
class PairSums:
    """Per pair: the two losses, and where asked for, gradient and re-weighted normal matrix of their sum."""

    pixels: Float[Tensor, "P"]
    points: Float[Tensor, "P"]
    gradient: Float[Tensor, "P n"] | None = None
    normal: Float[Tensor, "P n n"] | None = None

    def loss(self) -> float:
        return float(self.pixels.sum() + self.points.sum())


def accumulate(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, norm: Normalisation, parameters: int
) -> PairSums:
    """Loss, gradient and normal matrix of each pair in its first `parameters` parameters (0: loss only)."""
    count, device = len(matches), matches.device
    pixels, points = (torch.zeros(count, dtype=torch.float64, device=device) for _ in range(2))
    gradient = torch.zeros(count, parameters, dtype=torch.float64, device=device)
    normal = torch.zeros(count, parameters, parameters, dtype=torch.float64, device=device)
    for first in range(0, matches.rows, BLOCK):
        rows = slice(first, first + BLOCK)
        pair, weight = matches.pairs_of(rows), matches.weight[rows].double()
        flat, solid = block_residuals(matches, geometry, objective, rows, parameters > 0)
        terms = [(r, objective.pixels, norm.pixels, pixels) for r in flat]
        terms.append((solid, objective.points, norm.points, points))
        for residual, kernel, factor, total in terms:
            share = weight * factor.to(device)[pair]
            total.index_add_(0, pair, share * _match_loss(residual, kernel))
            if parameters:
                _add_normal(residual, kernel, share, pair, gradient, normal)
    if not parameters:
        return PairSums(pixels, points)
    return PairSums(pixels, points, gradient, normal)


def _match_loss(residual: Residual, kernel: Kernel) -> Tensor:
    full = torch.where(
        residual.usable, cdf_loss(residual.norm(), kernel), torch.ones_like(residual.value[:, 0])
    )
    return torch.where(residual.active, full, torch.zeros_like(full))


def _add_normal(
    residual: Residual, kernel: Kernel, share: Tensor, pair: Tensor, gradient: Tensor, normal: Tensor
) -> None:
    assert residual.jacobian is not None, "the literal 3D residual has no Jacobian: use the adam solver"
    n, size = residual.norm(), gradient.shape[1]
    slope = torch.where(residual.usable, share * cdf_slope(n, kernel), torch.zeros_like(n))
    J = residual.jacobian[..., :size]
    pull = (slope / n.clamp(min=1e-12))[:, None] * residual.value
    gradient.index_add_(0, pair, (pull[..., None] * J).sum(1))
    weighted = (slope / n.clamp(min=kernel.beta / 2))[:, None, None] * J
    normal.index_add_(0, pair, weighted.mT @ J)


def pixel_errors(
    matches: PairMatches, geometry: PairGeometry, objective: Objective, at_most: int = 200_000
) -> Float[Tensor, "m"]:
    """Reprojection errors of evenly spread matches, infinite where a point is not in front of the camera."""
    errors = []
    step = max(1, -(-matches.rows // at_most))
    for first in range(0, matches.rows, BLOCK):
        rows = slice(first, min(first + BLOCK, matches.rows))
        # every step-th row of the whole, as the fused pass takes them
        spread = slice(-first % step, None, step)
        for residual in block_residuals(matches, geometry, objective, rows, False)[0]:
            error = torch.where(residual.usable, residual.norm(), torch.inf)
            errors.append(error[spread][residual.active[spread]])
    return torch.cat(errors) if errors else torch.zeros(0, dtype=torch.float64)

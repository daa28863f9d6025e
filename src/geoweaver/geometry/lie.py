"""SE3 and Sim3 as small batched values: `a @ b` composes, `a.act(x)` moves points, `a.inverse()` inverts.

Tangents are ordered (upsilon, omega) and (upsilon, omega, sigma). Increments are on the left:
T <- exp(delta) @ T, so that moving a point y = T x by delta costs the Jacobian `act_jacobian(y)`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry.so3 import hat, nearest_rotation, so3_exp, so3_left_jacobian, so3_log


def _key(index: Any, *tail: slice) -> tuple[Any, ...]:
    """An index into the batch dimensions, followed by the group's own dimensions."""
    index = index if isinstance(index, tuple) else (index,)
    rest = () if any(i is Ellipsis for i in index) else (Ellipsis,)
    return (*index, *rest, *tail)


_ALL = slice(None)


def _map(group: Any, function: Any) -> Any:
    return type(group)(*(function(getattr(group, name)) for name in group.__dataclass_fields__))


@dataclass(frozen=True)
class SE3:
    """Rigid transforms x -> R x + t."""

    rotation: Float[Tensor, "*b 3 3"]
    translation: Float[Tensor, "*b 3"]

    @classmethod
    def identity(cls, *batch: int, dtype: torch.dtype = torch.float64) -> "SE3":
        return cls(torch.eye(3, dtype=dtype).expand(*batch, 3, 3), torch.zeros(*batch, 3, dtype=dtype))

    @classmethod
    def from_matrix(cls, matrix: Float[Tensor, "*b r 4"]) -> "SE3":
        """From 3x4 or 4x4 matrices."""
        return cls(matrix[..., :3, :3], matrix[..., :3, 3])

    @classmethod
    def exp(cls, delta: Float[Tensor, "*b 6"]) -> "SE3":
        upsilon, omega = delta[..., :3], delta[..., 3:]
        return cls(so3_exp(omega), (so3_left_jacobian(omega) @ upsilon[..., None]).squeeze(-1))

    def log(self) -> Float[Tensor, "*b 6"]:
        omega = so3_log(self.rotation)
        upsilon = torch.linalg.solve(so3_left_jacobian(omega), self.translation[..., None]).squeeze(-1)
        return torch.cat([upsilon, omega], -1)

    def __matmul__(self, other: "SE3") -> "SE3":
        return type(self)(self.rotation @ other.rotation, self.act(other.translation))

    def inverse(self) -> "SE3":
        inverse = self.rotation.mT
        return type(self)(inverse, -(inverse @ self.translation[..., None]).squeeze(-1))

    def act(self, points: Float[Tensor, "*c 3"]) -> Float[Tensor, "*d 3"]:
        """Move points whose leading dimensions broadcast against the batch."""
        return (self.rotation @ points[..., None]).squeeze(-1) + self.translation

    def adjoint(self) -> Float[Tensor, "*b 6 6"]:
        """Ad with T exp(d) = exp(Ad d) T."""
        top = torch.cat([self.rotation, hat(self.translation) @ self.rotation], -1)
        bottom = torch.cat([torch.zeros_like(self.rotation), self.rotation], -1)
        return torch.cat([top, bottom], -2)

    @staticmethod
    def act_jacobian(moved: Float[Tensor, "*b 3"]) -> Float[Tensor, "*b 3 6"]:
        """d(exp(delta) y)/d delta at delta = 0, where y = T x is the moved point."""
        eye = torch.eye(3, dtype=moved.dtype, device=moved.device).expand(*moved.shape, 3)
        return torch.cat([eye, -hat(moved)], -1)

    @property
    def centre(self) -> Float[Tensor, "*b 3"]:
        """Where the source's origin comes from: the camera centre of a cam_from_world."""
        return self.inverse().translation

    def matrix(self) -> Float[Tensor, "*b 4 4"]:
        return _homogeneous(self.rotation, self.translation)

    def orthonormalised(self) -> "SE3":
        """The same transform with the rotation's rounding error removed."""
        return type(self)(nearest_rotation(self.rotation), self.translation)

    def to(self, *args: Any) -> "SE3":
        moved: SE3 = _map(self, lambda t: t.to(*args))
        return moved

    def __getitem__(self, index: Any) -> "SE3":
        return type(self)(self.rotation[_key(index, _ALL, _ALL)], self.translation[_key(index, _ALL)])

    def __len__(self) -> int:
        return len(self.translation)


@dataclass(frozen=True)
class Sim3:
    """Similarities x -> s R x + t (Eq. sim3)."""

    scale: Float[Tensor, "*b"]
    rotation: Float[Tensor, "*b 3 3"]
    translation: Float[Tensor, "*b 3"]

    @classmethod
    def identity(cls, *batch: int, dtype: torch.dtype = torch.float64) -> "Sim3":
        rigid = SE3.identity(*batch, dtype=dtype)
        return cls(torch.ones(batch, dtype=dtype), rigid.rotation, rigid.translation)

    @classmethod
    def from_se3(cls, rigid: SE3) -> "Sim3":
        return cls(torch.ones_like(rigid.translation[..., 0]), rigid.rotation, rigid.translation)

    @classmethod
    def from_matrix(cls, matrix: Float[Tensor, "*b r 4"]) -> "Sim3":
        """From 3x4 or 4x4 matrices [s R | t]."""
        scaled = matrix[..., :3, :3]
        scale = torch.linalg.det(scaled).pow(1 / 3)
        return cls(scale, scaled / scale[..., None, None], matrix[..., :3, 3])

    @classmethod
    def exp(cls, delta: Float[Tensor, "*b 7"]) -> "Sim3":
        upsilon, omega, sigma = delta[..., :3], delta[..., 3:6], delta[..., 6]
        translation = (_sim3_v(omega, sigma) @ upsilon[..., None]).squeeze(-1)
        return cls(sigma.exp(), so3_exp(omega), translation)

    def log(self) -> Float[Tensor, "*b 7"]:
        omega, sigma = so3_log(self.rotation), self.scale.log()
        upsilon = torch.linalg.solve(_sim3_v(omega, sigma), self.translation[..., None]).squeeze(-1)
        return torch.cat([upsilon, omega, sigma[..., None]], -1)

    def __matmul__(self, other: "Sim3") -> "Sim3":
        return type(self)(
            self.scale * other.scale, self.rotation @ other.rotation, self.act(other.translation)
        )

    def inverse(self) -> "Sim3":
        inverse = self.rotation.mT
        moved = (inverse @ self.translation[..., None]).squeeze(-1)
        return type(self)(1 / self.scale, inverse, -moved / self.scale[..., None])

    def act(self, points: Float[Tensor, "*c 3"]) -> Float[Tensor, "*d 3"]:
        """Move points whose leading dimensions broadcast against the batch."""
        return self.scale[..., None] * (self.rotation @ points[..., None]).squeeze(-1) + self.translation

    def adjoint(self) -> Float[Tensor, "*b 7 7"]:
        """Ad with S exp(d) = exp(Ad d) S."""
        R, t, s = self.rotation, self.translation, self.scale[..., None, None]
        zero, row, one = torch.zeros_like(R), torch.zeros_like(R[..., :1, :]), torch.ones_like(s)
        top = torch.cat([s * R, hat(t) @ R, -t[..., None]], -1)
        middle = torch.cat([zero, R, row.mT], -1)
        return torch.cat([top, middle, torch.cat([row, row, one], -1)], -2)

    @staticmethod
    def act_jacobian(moved: Float[Tensor, "*b 3"]) -> Float[Tensor, "*b 3 7"]:
        """d(exp(delta) y)/d delta at delta = 0, where y = S x is the moved point."""
        return torch.cat([SE3.act_jacobian(moved), moved[..., None]], -1)

    def matrix(self) -> Float[Tensor, "*b 4 4"]:
        return _homogeneous(self.scale[..., None, None] * self.rotation, self.translation)

    def orthonormalised(self) -> "Sim3":
        """The same transform with the rotation's rounding error removed."""
        return type(self)(self.scale, nearest_rotation(self.rotation), self.translation)

    def to(self, *args: Any) -> "Sim3":
        moved: Sim3 = _map(self, lambda t: t.to(*args))
        return moved

    def __getitem__(self, index: Any) -> "Sim3":
        return type(self)(
            self.scale[_key(index)],
            self.rotation[_key(index, _ALL, _ALL)],
            self.translation[_key(index, _ALL)],
        )

    def __len__(self) -> int:
        return len(self.scale)


def world_camera(world_from_chunk: Sim3, cam_from_chunk: SE3) -> SE3:
    """cam_from_world of a camera placed by its chunk, in world units (Eq. stage3_initialization)."""
    rotation = cam_from_chunk.rotation @ world_from_chunk.rotation.mT
    moved = (rotation @ world_from_chunk.translation[..., None]).squeeze(-1)
    return SE3(rotation, world_from_chunk.scale[..., None] * cam_from_chunk.translation - moved)


def _sim3_v(omega: Float[Tensor, "*b 3"], sigma: Float[Tensor, "*b"]) -> Float[Tensor, "*b 3 3"]:
    """Integral over t in [0, 1] of exp(t (sigma I + [omega]x)): a corner of one matrix exponential."""
    eye = torch.eye(3, dtype=omega.dtype, device=omega.device)
    top = torch.cat([sigma[..., None, None] * eye + hat(omega), eye.expand(*omega.shape, 3)], -1)
    # torch's is inexact for norms below 0.04 (1e-11): the identity block keeps it above 1
    exponential: Tensor = torch.linalg.matrix_exp(torch.cat([top, torch.zeros_like(top)], -2))
    return exponential[..., :3, 3:]


def _homogeneous(
    linear: Float[Tensor, "*b 3 3"], translation: Float[Tensor, "*b 3"]
) -> Float[Tensor, "*b 4 4"]:
    bottom = torch.tensor([0.0, 0, 0, 1], dtype=linear.dtype, device=linear.device)
    top = torch.cat([linear, translation[..., None]], -1)
    return torch.cat([top, bottom.expand(*linear.shape[:-2], 1, 4)], -2)

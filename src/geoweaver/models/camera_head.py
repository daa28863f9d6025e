"""Cameras in and out of the network: the encoding in nine numbers, two heads that predict it, an encoder.

The encoding holds the camera-to-world translation (3), its quaternion with w last (4, any norm), and the
vertical and the horizontal field of view in radians (2).
"""

# mypy: no-warn-return-any, no-disallow-untyped-calls
# torch's modules and some of its methods are untyped.

import math

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Bool, Float
from torch import Tensor, nn

from geoweaver.geometry.so3 import matrix_from_quaternion, quaternion_from_matrix
from geoweaver.models.transformer import Block, Mlp, initialise_linear

_SMALLEST_TANGENT = 1e-6
"""DA3's floor under the tangent of half the field of view, where its head says 0."""
_PLAUSIBLE_FOV = (math.radians(1.0), math.radians(170.0))
_SMALLEST_SPREAD = 0.1
"""Camera distances below this are not scaled up to 1 (the cameras hardly move)."""


def decode_cameras(
    encoding: Float[Tensor, "*b 9"], size: tuple[int, int]
) -> tuple[Float[Tensor, "*b 3 4"], Float[Tensor, "*b 3 3"]]:
    """cam_from_world and pinhole matrix, principal point in the centre, of images of (height, width)."""
    centre, xyz, w, fov = encoding.split([3, 3, 1, 2], -1)
    world_from_cam = matrix_from_quaternion(torch.cat([w, xyz], -1))
    rotation = world_from_cam.mT
    cam_from_world = torch.cat([rotation, -rotation @ centre[..., None]], -1)
    height, width = size
    half = torch.tan(fov / 2).clamp_min(_SMALLEST_TANGENT)
    K = torch.zeros(*encoding.shape[:-1], 3, 3, dtype=encoding.dtype, device=encoding.device)
    fx, fy = width / 2 / half[..., 1], height / 2 / half[..., 0]
    K = K + torch.diag_embed(torch.stack([fx, fy, torch.ones_like(fx)], -1))
    K[..., 0, 2], K[..., 1, 2] = width / 2, height / 2
    return cam_from_world, K


def plausible_cameras(encoding: Float[Tensor, "*b 9"]) -> Bool[Tensor, "*b"]:
    """False where a head gave up: a field of view that no lens has (its ReLU can say 0), or no rotation."""
    quaternion, fov = encoding[..., 3:7], encoding[..., 7:]
    sound = (fov > _PLAUSIBLE_FOV[0]).all(-1) & (fov < _PLAUSIBLE_FOV[1]).all(-1)
    return sound & (quaternion.norm(dim=-1) > 1e-6) & encoding.isfinite().all(-1)


def encode_cameras(
    cam_from_world: Float[Tensor, "*b 3 4"], intrinsics: Float[Tensor, "*b 3 3"], size: tuple[int, int]
) -> Float[Tensor, "*b 9"]:
    """The encoding of known cameras; the inverse of `decode_cameras` but for the principal point."""
    rotation, translation = cam_from_world[..., :3], cam_from_world[..., 3:]
    centre = -(rotation.mT @ translation)[..., 0]
    w, xyz = quaternion_from_matrix(rotation.mT).split([1, 3], -1)
    height, width = size
    tangents = torch.stack([height / 2 / intrinsics[..., 1, 1], width / 2 / intrinsics[..., 0, 0]], -1)
    return torch.cat([centre, xyz, w, 2 * torch.atan(tangents)], -1)


def normalise_cameras(
    cam_from_world: Float[Tensor, "S 3 4"],
) -> tuple[Float[Tensor, "S 3 4"], Float[Tensor, ""]]:
    """Known cameras as the encoder expects them: relative to the first, median distance 1; and that scale."""
    rotation, translation = cam_from_world[..., :3], cam_from_world[..., 3]
    relative = rotation @ rotation[0].mT
    offset = translation - relative @ translation[0]
    scale = offset.norm(dim=-1).median().clamp_min(_SMALLEST_SPREAD)
    return torch.cat([relative, (offset / scale)[..., None]], -1), scale


class MlpCameraHead(nn.Module):
    """DA3's camera decoder: two linear layers on each view's camera feature, then three outputs."""

    def __init__(self, dim_in: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(dim_in, dim_in), nn.ReLU(), nn.Linear(dim_in, dim_in), nn.ReLU()
        )
        self.fc_t = nn.Linear(dim_in, 3)
        self.fc_qvec = nn.Linear(dim_in, 4)
        field_of_view = nn.Linear(dim_in, 2)
        self.fc_fov = nn.Sequential(field_of_view, nn.ReLU())
        self.apply(initialise_linear)
        look_ahead(self.fc_qvec, field_of_view, fov=1.0)

    def forward(self, feature: Float[Tensor, "B S C"]) -> Float[Tensor, "B S 9"]:
        x = self.backbone(feature)
        return torch.cat([self.fc_t(x), self.fc_qvec(x), self.fc_fov(x)], -1)


class TransformerCameraHead(nn.Module):
    """The paper's head, for training: the views' camera features attend to each other, then are read out."""

    def __init__(self, dim_in: int, dim: int, heads: int, depth: int = 4) -> None:
        super().__init__()
        self.norm_in = nn.LayerNorm(dim_in)
        self.project = nn.Linear(dim_in, dim)
        self.trunk = nn.ModuleList(Block(dim, heads, eps=1e-5) for _ in range(depth))
        self.norm_out = nn.LayerNorm(dim)
        self.fc_t = nn.Linear(dim, 3)
        self.fc_qvec = nn.Linear(dim, 4)
        self.fc_fov = nn.Linear(dim, 2)
        self.apply(initialise_linear)
        look_ahead(self.fc_qvec, self.fc_fov, fov=math.log(math.e - 1))

    def forward(self, feature: Float[Tensor, "B S C"]) -> Float[Tensor, "B S 9"]:
        x = self.project(self.norm_in(feature))
        for block in self.trunk:
            x = block(x)
        x = self.norm_out(x)
        # Softplus, not ReLU: a field of view that starts at zero would never learn again.
        return torch.cat([self.fc_t(x), self.fc_qvec(x), F.softplus(self.fc_fov(x))], -1)


class CameraEncoder(nn.Module):
    """Known cameras to camera tokens, which then take the place of the learned ones."""

    def __init__(self, dim: int, heads: int = 16, depth: int = 4) -> None:
        super().__init__()
        self.pose_branch = Mlp(9, dim // 2, dim)
        self.token_norm = nn.LayerNorm(dim)
        self.trunk = nn.ModuleList(Block(dim, heads, eps=1e-5) for _ in range(depth))
        self.trunk_norm = nn.LayerNorm(dim)
        self.apply(initialise_linear)

    def forward(self, encoding: Float[Tensor, "B S 9"]) -> Float[Tensor, "B S D"]:
        x = self.token_norm(self.pose_branch(encoding))
        for block in self.trunk:
            x = block(x)
        return self.trunk_norm(x)


def look_ahead(quaternion: nn.Linear, field_of_view: nn.Linear, fov: float) -> None:
    """Biases with which an untrained head says: no rotation, a field of view of about one radian."""
    with torch.no_grad():
        quaternion.bias.copy_(torch.tensor([0.0, 0.0, 0.0, 1.0]))
        field_of_view.bias.fill_(fov)

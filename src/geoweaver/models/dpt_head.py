"""The DPT head: features from four blocks of the ViT, fused from coarse to fine into one value per pixel.

Letters in shapes: V views, P patches, H W pixels, h w the ray map's grid (8 per patch side).
"""

# mypy: no-warn-return-any, no-disallow-untyped-calls
# torch's modules and some of its methods are untyped.

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from geoweaver.models.vit import PATCH

_POSITION_GAIN = 0.1
_POSITION_BASE = 100.0


@dataclass(frozen=True)
class DenseOutput:
    """Per view and pixel (rays: grid cell); None where the head has no such branch or was not asked."""

    depth: Float[Tensor, "V H W"]
    confidence: Float[Tensor, "V H W"] | None = None
    sky: Float[Tensor, "V H W"] | None = None
    ray: Float[Tensor, "V h w 6"] | None = None
    """Direction (3) and origin (3), linear."""
    ray_confidence: Float[Tensor, "V h w"] | None = None


class ResidualConvUnit(nn.Module):
    """Two 3x3 convolutions beside a skip connection."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(features, features, 3, padding=1)
        self.conv2 = nn.Conv2d(features, features, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.relu(self.conv1(F.relu(x))))


class FusionBlock(nn.Module):
    """Adds the finer lateral features to the coarser ones and brings both to the next size."""

    def __init__(self, features: int, lateral: bool = True) -> None:
        super().__init__()
        if lateral:
            self.resConfUnit1 = ResidualConvUnit(features)
        self.resConfUnit2 = ResidualConvUnit(features)
        self.out_conv = nn.Conv2d(features, features, 1)

    def forward(self, lateral: Tensor, top: Tensor | None, size: tuple[int, int]) -> Tensor:
        x = lateral if top is None else top + self.resConfUnit1(lateral)
        # A 1x1 convolution commutes with bilinear resizing: before it, it costs a quarter.
        return resize(self.out_conv(self.resConfUnit2(x)), size)


class Scratch(nn.Module):
    """The fusion's layers; the name and the names inside are the checkpoints'."""

    def __init__(self, features: int, channels: tuple[int, ...], outputs: int, rays: bool, sky: bool) -> None:
        super().__init__()
        half = features // 2
        chains = ("", "_aux") if rays else ("",)
        for level in range(1, 5):
            setattr(
                self, f"layer{level}_rn", nn.Conv2d(channels[level - 1], features, 3, padding=1, bias=False)
            )
            for chain in chains:
                setattr(self, f"refinenet{level}{chain}", FusionBlock(features, lateral=level < 4))
        self.output_conv1 = nn.Conv2d(features, half, 3, padding=1)
        self.output_conv2 = _output_layers(half, outputs)
        if sky:
            self.sky_output_conv2 = _output_layers(half, 1)
        if rays:
            # Only the last of the four levels is ever run; the others let checkpoints load and save whole.
            shared_norm = nn.LayerNorm(32)
            self.output_conv1_aux = nn.ModuleList(_ray_trunk(features) for _ in range(4))
            self.output_conv2_aux = nn.ModuleList(_ray_output_layers(half, shared_norm) for _ in range(4))


class DPTHead(nn.Module):
    """DA3's head with confidence and a second branch for rays; without `rays` its monocular head with sky."""

    def __init__(self, dim_in: int, features: int, out_channels: tuple[int, ...], rays: bool) -> None:
        super().__init__()
        c0, c1, c2, c3 = out_channels
        self.two_branch = rays
        self.view_block = 8
        """Views that go through at once: bounds the memory of the full-size feature maps."""
        self.norm = nn.LayerNorm(dim_in) if rays else nn.Identity()
        self.projects = nn.ModuleList(nn.Conv2d(dim_in, c, 1) for c in out_channels)
        self.resize_layers = nn.ModuleList(
            [
                nn.ConvTranspose2d(c0, c0, 4, stride=4),
                nn.ConvTranspose2d(c1, c1, 2, stride=2),
                nn.Identity(),
                nn.Conv2d(c3, c3, 3, stride=2, padding=1),
            ]
        )
        self.scratch = Scratch(features, (c0, c1, c2, c3), 2 if rays else 1, rays, sky=not rays)

    def forward(
        self, taps: list[Float[Tensor, "V P C"]], size: tuple[int, int], rays: bool = False
    ) -> DenseOutput:
        """`size` is the images' (height, width); the ray branch runs only where asked for."""
        blocks = [
            self._block(
                [tap[start : start + self.view_block] for tap in taps], size, rays and self.two_branch
            )
            for start in range(0, len(taps[0]), self.view_block)
        ]
        joined: dict[str, Any] = {}
        for field in fields(DenseOutput):
            maps = [getattr(block, field.name) for block in blocks]
            joined[field.name] = None if maps[0] is None else torch.cat(maps)
        return DenseOutput(**joined)

    def _block(self, taps: list[Tensor], size: tuple[int, int], rays: bool) -> DenseOutput:
        laterals = [self._lateral(tap, level, size) for level, tap in enumerate(taps)]
        x = self._with_positions(resize(self.scratch.output_conv1(self._fuse(laterals, "")), size), size)
        out = self.scratch.output_conv2(x)
        depth = out[:, 0].exp()
        if not self.two_branch:
            return DenseOutput(depth, sky=F.relu(self.scratch.sky_output_conv2(x)[:, 0]))
        confidence = out[:, 1].exp() + 1
        if not rays:
            return DenseOutput(depth, confidence)
        return DenseOutput(depth, confidence, None, *self._rays(laterals, size))

    def _lateral(self, tap: Tensor, level: int, size: tuple[int, int]) -> Tensor:
        """Tokens as a map, at 4, 2, 1 or 1/2 times the patch grid."""
        grid = (size[0] // PATCH, size[1] // PATCH)
        x = self.projects[level](self.norm(tap).transpose(1, 2).unflatten(2, grid))
        x = self.resize_layers[level](self._with_positions(x, size))
        return getattr(self.scratch, f"layer{level + 1}_rn")(x)

    def _fuse(self, laterals: list[Tensor], chain: str) -> Tensor:
        """From the coarsest level to twice the finest."""
        x: Tensor | None = None
        finest = laterals[0].shape[-2:]
        sizes = [(2 * finest[0], 2 * finest[1]), *(tuple(lateral.shape[-2:]) for lateral in laterals[:3])]
        for level in (3, 2, 1, 0):
            x = getattr(self.scratch, f"refinenet{level + 1}{chain}")(laterals[level], x, sizes[level])
        assert x is not None
        return x

    def _rays(self, laterals: list[Tensor], size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        x = self.scratch.output_conv1_aux[3](self._fuse(laterals, "_aux"))
        out = self.scratch.output_conv2_aux[3](self._with_positions(x, size)).movedim(1, -1)
        return out[..., :6], out[..., 6].exp() + 1

    def _with_positions(self, x: Tensor, size: tuple[int, int]) -> Tensor:
        if not self.two_branch:
            return x
        return x + _POSITION_GAIN * position_map(x, size[1] / size[0])


class MoveChannels(nn.Module):
    """Brings the channels of a map to the end, and back: what surrounds the layer norm of the ray branch."""

    def __init__(self, source: int, target: int) -> None:
        super().__init__()
        self.source, self.target = source, target

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(self.source, self.target)


def _output_layers(features: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(features, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, outputs, 1))


def _ray_trunk(features: int) -> nn.Sequential:
    """Five convolutions with nothing between them."""
    widths = [features, features // 2, features, features // 2, features, features // 2]
    return nn.Sequential(*(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(widths)))


def _ray_output_layers(features: int, norm: nn.LayerNorm) -> nn.Sequential:
    first, last = nn.Conv2d(features, 32, 3, padding=1), nn.Conv2d(32, 7, 1)
    return nn.Sequential(first, MoveChannels(1, -1), norm, MoveChannels(-1, 1), nn.ReLU(), last)


def resize(x: Float[Tensor, "V C h w"], size: tuple[int, int]) -> Float[Tensor, "V C H W"]:
    """Bilinear, corners on corners."""
    return F.interpolate(x, size, mode="bilinear", align_corners=True)


def position_map(x: Float[Tensor, "V C h w"], aspect: float) -> Float[Tensor, "C h w"]:
    """Sines and cosines of each cell's place, the image's half diagonal being 1: x, then y channels."""
    channels, height, width = x.shape[1:]
    diagonal = (aspect**2 + 1) ** 0.5
    across = _axis_positions(width, aspect / diagonal, channels, x.device)
    down = _axis_positions(height, 1 / diagonal, channels, x.device)
    return torch.cat([across[:, None].expand(-1, height, -1), down[:, :, None].expand(-1, -1, width)]).to(
        x.dtype
    )


def _axis_positions(
    cells: int, span: float, channels: int, device: torch.device
) -> Float[Tensor, "half cells"]:
    """`channels` / 2 numbers for each cell centre of one axis."""
    edge = span * (cells - 1) / cells
    place = torch.linspace(-edge, edge, cells, device=device)
    quarter = channels // 4
    frequency = _POSITION_BASE ** (-torch.arange(quarter, device=device, dtype=torch.float32) / quarter)
    angle = frequency[:, None] * place
    return torch.cat([angle.sin(), angle.cos()])

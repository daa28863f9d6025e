"""The parts that transformers here are built of: blocks of attention and feed-forward, rotary positions.

Module names are those of the public checkpoints, so that weights load by name.
"""

# mypy: no-warn-return-any, no-disallow-untyped-calls
# torch's modules and some of its methods are untyped.

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn

_ROPE_BASE = 100.0

Rope = tuple[Tensor, Tensor]
"""Cosine and sine of every token's angles, (tokens, channels of a head)."""


class Mlp(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self, dim: int, hidden: int, out: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class SwiGLU(nn.Module):
    """The gated feed-forward of the giant model; two thirds of the usual width, in multiples of 8."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        hidden = (dim * 4 * 2 // 3 + 7) // 8 * 8
        self.w12 = nn.Linear(dim, 2 * hidden)
        self.w3 = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.w12(x).chunk(2, -1)
        return self.w3(F.silu(gate) * value)


class Attention(nn.Module):
    """Multi-head attention; where `rotary`, queries and keys are normalised and turned by their position."""

    def __init__(self, dim: int, heads: int, rotary: bool) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        if rotary:
            self.q_norm = nn.LayerNorm(dim // heads)
            self.k_norm = nn.LayerNorm(dim // heads)

    def forward(self, x: Tensor, rope: Rope | None) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if rope is not None:
            # The norms return float32 under autocast; attention wants one dtype.
            q = rotate(self.q_norm(q), rope).to(v.dtype)
            k = rotate(self.k_norm(k), rope).to(v.dtype)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).flatten(2))


class LayerScale(nn.Module):
    """A learned gain per channel."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Block(nn.Module):
    """Pre-norm transformer block: attention, then feed-forward."""

    def __init__(
        self, dim: int, heads: int, *, rotary: bool = False, swiglu: bool = False, eps: float = 1e-6
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=eps)
        self.attn = Attention(dim, heads, rotary)
        self.ls1 = LayerScale(dim)
        self.norm2 = nn.LayerNorm(dim, eps=eps)
        self.mlp = SwiGLU(dim) if swiglu else Mlp(dim, 4 * dim, dim)
        self.ls2 = LayerScale(dim)
        self.rotary = rotary

    def forward(self, x: Tensor, rope: Rope | None = None) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x), rope if self.rotary else None))
        return x + self.ls2(self.mlp(self.norm2(x)))


def initialise_linear(module: nn.Module) -> None:
    """Small random weights and zero biases for training from scratch."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)


def rotary_table(position: Int[Tensor, "N 2"], channels: int) -> Rope:
    """Angles of 2D positions: one half of the channels turns with the row, the other with the column."""
    half = channels // 2
    frequency = _ROPE_BASE ** (-torch.arange(0, half, 2, device=position.device, dtype=torch.float32) / half)
    angle = position[..., None].float() * frequency
    angle = torch.cat([angle, angle], -1).flatten(1)
    return angle.cos(), angle.sin()


def rotate(x: Float[Tensor, "B heads N C"], rope: Rope) -> Float[Tensor, "B heads N C"]:
    """Turn each half of the channels by its angles."""
    cos, sin = rope
    a, b, c, d = x.chunk(4, -1)
    return x * cos + torch.cat([-b, a, -d, c], -1) * sin

"""Depth in half precision: two bytes a pixel, with a power-of-two scale per frame so that any unit fits."""

import torch
from jaxtyping import Float, Float16, Float32, Int
from torch import Tensor

SPAN = 28
"""Octaves of one frame that keep a relative error of 2^-11: half precision's normal numbers below 2^15."""

_TOP = 15
"""Where the largest value goes: below 2^15, far enough from 65,504 that rounding cannot overflow."""


def encode_depth(depth: Float[Tensor, "n H W"]) -> tuple[Float16[Tensor, "n H W"], Int[Tensor, "n"]]:
    """Half-precision depth and each frame's exponent; what is not finite and positive becomes 0, unknown.

    A frame whose largest value is below 2^28 times its smallest keeps all of them within a relative 2^-11.
    In a wilder frame the median decides: values from 2^-13 to 65,504 times it keep that error, farther ones
    become unknown, nearer ones lose digits and end at unknown.
    """
    half = torch.zeros(depth.shape, dtype=torch.float16)
    exponent = torch.zeros(len(depth), dtype=torch.int32)
    for i, frame in enumerate(depth):
        single = frame.detach().to("cpu", torch.float32)
        # In double, no power of two leaves the range on the way.
        valid = torch.where(single.isfinite() & (single > 0), single, 0).double()
        exponent[i] = _exponent(valid[valid > 0])
        scaled = torch.ldexp(valid, -exponent[i])
        half[i] = torch.where(scaled <= torch.finfo(torch.float16).max, scaled, 0).to(torch.float32).half()
    return half, exponent


def decode_depth(half: Float16[Tensor, "n H W"], exponent: Int[Tensor, "n"]) -> Float32[Tensor, "n H W"]:
    """Depth in its own units again; unknown stays 0."""
    frames = [torch.ldexp(frame.double(), e).float() for frame, e in zip(half, exponent, strict=True)]
    return torch.stack(frames) if frames else half.float()


def _exponent(values: Float[Tensor, "valid"]) -> int:
    """The power of two that puts these positive values into half precision's range."""
    if not len(values):
        return 0
    low, middle, high = (int(torch.frexp(v).exponent) for v in (values.min(), values.median(), values.max()))
    return high - _TOP if high - low <= SPAN else middle

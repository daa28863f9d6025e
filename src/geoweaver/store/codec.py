"""Depth in half precision: two bytes a pixel, with a power-of-two scale per frame so that any unit fits."""

from math import frexp

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
        valid = torch.where(single.isfinite() & (single > 0), single, 0)
        exponent[i] = _exponent(valid)
        scaled = _times_power(valid, -int(exponent[i]))
        half[i] = torch.where(scaled <= torch.finfo(torch.float16).max, scaled, 0).half()
    return half, exponent


def decode_depth(half: Float16[Tensor, "n H W"], exponent: Int[Tensor, "n"]) -> Float32[Tensor, "n H W"]:
    """Depth in its own units again; unknown stays 0."""
    depth = half.float()
    for frame, e in zip(depth, exponent.tolist(), strict=True):
        frame.copy_(_times_power(frame, e))
    # The very largest numbers were rounded up to what single precision calls infinite.
    return depth.clamp(max=torch.finfo(torch.float32).max)


def _times_power(values: Float32[Tensor, "H W"], exponent: int) -> Float32[Tensor, "H W"]:
    """Times 2^exponent, exactly; in two steps, for the power alone may leave single precision's range."""
    first = exponent // 2
    return values * 2.0**first * 2.0 ** (exponent - first)


def _exponent(values: Float32[Tensor, "H W"]) -> int:
    """The power of two that puts the positive ones of these values into half precision's range."""
    high = float(values.max()) if values.numel() else 0.0
    if not high:
        return 0
    low = float(torch.where(values > 0, values, torch.inf).min())
    top = frexp(high)[1]
    return top - _TOP if top - frexp(low)[1] <= SPAN else frexp(float(values[values > 0].median()))[1]

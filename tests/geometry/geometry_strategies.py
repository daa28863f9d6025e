"""Hypothesis strategies for rotations, tangents and coordinates, with the corners where formulas break."""

import math

import torch
from hypothesis import strategies as st
from torch import Tensor

CORNER_ANGLES = (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 0.999e-3, 1.001e-3, 2.001e-3)
CORNER_ANGLES += tuple(math.pi - a for a in (1e-3, 1e-6, 1e-9, 1e-12))

_unit = st.integers(-(10**6), 10**6).map(lambda i: i / 10**6)
_exponent = st.integers(-3, 6)


@st.composite
def axes(draw: st.DrawFn) -> Tensor:
    """A unit vector, sometimes along a coordinate axis."""
    x = torch.tensor(draw(st.tuples(_unit, _unit, _unit)), dtype=torch.float64)
    return x / x.norm() if x.norm() > 1e-3 else torch.eye(3, dtype=torch.float64)[draw(st.integers(0, 2))]


@st.composite
def rotation_vectors(draw: st.DrawFn, largest: float = math.pi - 1e-9) -> Tensor:
    """Axis times angle, with angles near 0 and near pi."""
    angle = draw(st.sampled_from(CORNER_ANGLES) | st.floats(1e-15, math.pi))
    return min(angle, largest) * draw(axes())


@st.composite
def positions(draw: st.DrawFn) -> Tensor:
    """Coordinates between a millimetre and a thousand kilometres."""
    return torch.tensor(draw(st.tuples(_unit, _unit, _unit)), dtype=torch.float64) * 10.0 ** draw(_exponent)


@st.composite
def se3_tangents(draw: st.DrawFn, largest: float = math.pi - 1e-9) -> Tensor:
    """(upsilon, omega)."""
    return torch.cat([draw(positions()), draw(rotation_vectors(largest))])


@st.composite
def sim3_tangents(draw: st.DrawFn, largest: float = math.pi - 1e-9) -> Tensor:
    """(upsilon, omega, sigma) with scales from e^-4 to e^4."""
    sigma = draw(st.sampled_from((0.0, 1e-12, -1e-9, 1e-6)) | st.floats(-4, 4, allow_subnormal=False))
    return torch.cat([draw(se3_tangents(largest)), torch.tensor([sigma], dtype=torch.float64)])

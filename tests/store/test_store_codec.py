"""Half-precision depth: relative error 2^-11 in any unit, and unknown stays unknown."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from geoweaver.store import decode_depth, encode_depth

BOUND = 2.0**-11


def relative_error(depth, back):
    return ((back.double() - depth.double()).abs() / depth.double()).max().item()


@given(
    st.floats(-6, 9),
    st.floats(0, 8.4),
    st.integers(0, 2**31),
)
def test_a_frame_of_any_unit_keeps_eleven_bits(log_unit, decades, seed):
    """From 1e-6 to 1e9 units, with values spread over up to 2^28 within one frame."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.rand(3, 5, 7, generator=generator, dtype=torch.float64) * decades
    depth = (10.0 ** (log_unit - spread)).float()
    assert relative_error(depth, decode_depth(*encode_depth(depth))) <= BOUND


@given(st.integers(-100, 100), st.integers(1, 2047))
def test_the_span_holds_to_its_very_ends(exponent, mantissa):
    """The largest ratio that is promised, at the least favourable mantissas."""
    high = (2048 - mantissa / 2048) * 2.0**exponent
    depth = torch.tensor([[[high, high * 2.0**-28 * (1 + 2.0**-20)]]])
    assert relative_error(depth, decode_depth(*encode_depth(depth))) <= BOUND


@given(st.lists(st.floats(width=32), min_size=1, max_size=30))
@example([3.401992901712019e38])
def test_unknown_stays_unknown_and_nothing_else_appears(values):
    depth = torch.tensor(values, dtype=torch.float32)[None, None]
    back = decode_depth(*encode_depth(depth))
    assert back.isfinite().all()
    assert (back >= 0).all()
    invalid = ~(depth.isfinite() & (depth > 0))
    assert (back[invalid] == 0).all()


@pytest.mark.parametrize("outlier", [1e30, 1e-30])
def test_one_wild_pixel_does_not_cost_the_frame(outlier):
    depth = torch.linspace(1, 1000, 999).reshape(1, 27, 37)
    depth[0, 3, 3] = outlier
    back = decode_depth(*encode_depth(depth))
    sane = torch.ones_like(depth, dtype=torch.bool)
    sane[0, 3, 3] = False
    assert relative_error(depth[sane], back[sane]) <= BOUND
    assert back[0, 3, 3] == 0


def test_frames_have_their_own_scale():
    depth = torch.stack([torch.full((4, 4), 1e-6), torch.full((4, 4), 1e9), torch.zeros(4, 4)])
    half, exponent = encode_depth(depth)
    assert half.dtype == torch.float16
    assert half.isfinite().all()
    assert len(set(exponent.tolist())) == 3
    back = decode_depth(half, exponent)
    assert relative_error(depth[:2], back[:2]) <= BOUND
    assert (back[2] == 0).all()


def test_encoding_the_decoded_changes_nothing():
    depth = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(1)) * 50
    once = decode_depth(*encode_depth(depth))
    assert torch.equal(decode_depth(*encode_depth(once)), once)


def test_no_frames():
    half, exponent = encode_depth(torch.zeros(0, 4, 5))
    assert decode_depth(half, exponent).shape == (0, 4, 5)

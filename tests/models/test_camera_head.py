"""The cameras' encoding and its inverse."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.geometry.so3 import so3_exp
from geoweaver.models.camera_head import decode_cameras, encode_cameras, normalise_cameras, plausible_cameras

_number = st.floats(-3, 3)
_SIZE = (280, 504)


@given(st.tuples(*[_number] * 3), st.tuples(*[_number] * 3), st.floats(0.2, 2.5), st.floats(0.2, 2.5))
def test_encoding_and_decoding_undo_each_other(
    turn: tuple[float, ...], place: tuple[float, ...], fov_h: float, fov_w: float
) -> None:
    rotation = so3_exp(torch.tensor(turn, dtype=torch.float64))
    cam_from_world = torch.cat([rotation, torch.tensor(place, dtype=torch.float64)[:, None]], 1)
    K = torch.eye(3, dtype=torch.float64)
    K[0, 0], K[1, 1] = 252 / math.tan(fov_w / 2), 140 / math.tan(fov_h / 2)
    K[0, 2], K[1, 2] = 252, 140
    encoding = encode_cameras(cam_from_world, K, _SIZE)
    assert encoding[6] >= 0 and bool(plausible_cameras(encoding))
    again, intrinsics = decode_cameras(encoding * torch.tensor([1, 1, 1, 3, 3, 3, 3, 1, 1]), _SIZE)
    torch.testing.assert_close(again, cam_from_world)
    torch.testing.assert_close(intrinsics, K)


def test_encoding_is_camera_to_world_with_w_last_and_vertical_field_first() -> None:
    # A quarter turn about the optical axis, one metre right of the world's origin.
    world_from_cam = so3_exp(torch.tensor([0.0, 0.0, math.pi / 2]))
    centre = torch.tensor([1.0, 0.0, 0.0])
    cam_from_world = torch.cat([world_from_cam.T, -world_from_cam.T @ centre[:, None]], 1)
    K = torch.diag(torch.tensor([252.0, 140.0 / math.tan(0.5), 1.0]))
    half = math.sqrt(0.5)
    expected = torch.tensor([1, 0, 0, 0, 0, half, half, 1.0, math.pi / 2])
    torch.testing.assert_close(encode_cameras(cam_from_world, K, _SIZE), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("fault", [{7: 0.0}, {8: 3.1}, {3: 0.0, 4: 0.0, 5: 0.0, 6: 0.0}, {0: math.nan}])
def test_cameras_that_no_lens_has_are_told(fault: dict[int, float]) -> None:
    encoding = torch.tensor([0, 0, 0, 0.1, 0.2, 0, 1, 0.8, 1.1])
    assert bool(plausible_cameras(encoding))
    for place, value in fault.items():
        encoding[place] = value
    assert not bool(plausible_cameras(encoding))


def test_known_cameras_are_made_relative_and_of_unit_size() -> None:
    torch.manual_seed(1)
    rotation = so3_exp(torch.randn(5, 3))
    cameras = torch.cat([rotation, 40 * torch.randn(5, 3, 1)], -1)
    normal, scale = normalise_cameras(cameras)
    torch.testing.assert_close(normal[0], torch.eye(3, 4), atol=1e-5, rtol=0)
    centres = -(normal[..., :3].mT @ normal[..., 3:])[..., 0]
    torch.testing.assert_close(centres.norm(dim=-1).median(), torch.tensor(1.0))
    point = torch.randn(3)
    expected = rotation @ point + cameras[..., 3]
    seen_first = (rotation[0] @ point + cameras[0, :, 3]) / scale
    torch.testing.assert_close(
        scale * (normal[..., :3] @ seen_first + normal[..., 3]), expected, atol=1e-3, rtol=1e-4
    )
    still = cameras[:1].expand(3, 3, 4)
    assert float(normalise_cameras(still)[1]) == pytest.approx(0.1)

"""Random trajectories, cameras and damaged files for the tests of the formats."""

from pathlib import Path

import hypothesis.strategies as st
import torch

from geoweaver.geometry import SE3


@st.composite
def tangents(draw, most=6):
    """(upsilon, omega) of a few cameras within some kilometres, turned any way, half turns included."""
    n = draw(st.integers(1, most))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    tangent = torch.randn(n, 6, generator=generator, dtype=torch.float64)
    tangent[:, :3] *= 10 ** draw(st.floats(-6, 3.5))
    if draw(st.booleans()):
        tangent[:, 3:] *= torch.pi / tangent[:, 3:].norm(dim=1, keepdim=True)
    return tangent


def cameras(tangent) -> SE3:
    """cam_from_world of a drawn tangent."""
    return SE3.exp(tangent).orthonormalised()


_FOCAL, _CENTRE, _LENS = st.floats(1, 1e4), st.floats(-1e3, 1e4), st.floats(-1, 1)


@st.composite
def lenses(draw):
    """The values of a camera of one of the models that both COLMAP and nerfstudio have."""
    model = draw(st.sampled_from(("PINHOLE", "OPENCV", "FULL_OPENCV", "OPENCV_FISHEYE")))
    params = [draw(_FOCAL), draw(_FOCAL), draw(_CENTRE), draw(_CENTRE)]
    params += [draw(_LENS) for _ in range({"PINHOLE": 0, "FULL_OPENCV": 5}.get(model, 4))]
    if model == "FULL_OPENCV":
        params[8] = params[8] or 0.5
        params += [0.0, 0.0, 0.0]
    return model, tuple(params), draw(st.integers(1, 9999)), draw(st.integers(1, 9999))


@st.composite
def damaged(draw, whole: bytes):
    """A valid file after a few accidents: cut, overwritten, doubled, spliced with other numbers and words."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["cut", "byte", "double", "splice", "remove"]))
        if kind == "cut":
            del data[at:]
        elif kind == "byte" and data:
            data[at] = draw(st.integers(0, 255))
        elif kind == "double":
            data[at:at] = data[at : at + draw(st.integers(1, 64))]
        elif kind == "splice":
            data[at : at + draw(st.integers(0, 8))] = draw(st.sampled_from(_SPLICES))
        else:
            del data[at : at + draw(st.integers(1, 32))]
    return bytes(data)


_SPLICES = [
    b"nan", b"-inf", b"1e999", b"9" * 400, b"9" * 5000, b"\xef\xbb\xbf", b"\r\n", b"\0", b"\xff\xfe", b"#",
    b"," * 9, b"{", b"[[[[", b'"', b"null", b"true", b"-1", b"0 0 0 0", b"1_000", "１２".encode(),
    b"\xff" * 8, b"\0" * 8, b"1" * 20,
]  # fmt: skip


def relative_difference(a: SE3, b: SE3) -> float:
    """Largest difference of any matrix entry, relative to how far the cameras are from the origin."""
    reach = 1 + max(a.translation.abs().max(), a.centre.abs().max())
    return float((a.matrix() - b.matrix()).abs().max() / reach)


def write_bytes(path: Path, data: bytes) -> Path:
    """The path, now holding the data."""
    path.write_bytes(data)
    return path

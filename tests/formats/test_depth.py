"""Depth maps: units are stated and kept, unknown stays unknown, damaged files are refused."""

import io
import zipfile

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from PIL import Image

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.depth import depth_files, read_confidence, read_depth, write_depth


def some_depth(height: int, width: int, seed: int = 0, reach: float = 10.0) -> torch.Tensor:
    """Depth with a third of it unknown."""
    generator = torch.Generator().manual_seed(seed)
    depth = reach * torch.rand(height, width, generator=generator, dtype=torch.float64)
    return torch.where(torch.rand(height, width, generator=generator) < 0.3, torch.zeros_like(depth), depth)


@settings(max_examples=50)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 2**31),
    st.floats(1e-4, 1e4),
    st.sampled_from(["npy", "npz", "pfm"]),
)
def test_float_round_trip(scratch, height, width, seed, reach, suffix):
    depth = some_depth(height, width, seed, reach)
    write_depth(scratch / f"a.{suffix}", depth)
    assert torch.equal(read_depth(scratch / f"a.{suffix}"), depth.float())


@settings(max_examples=50)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**31), st.floats(1e-4, 1e4))
def test_png_round_trip_within_half_a_count(scratch, height, width, seed, reach):
    depth, unit = some_depth(height, width, seed, reach), reach / 60_000
    write_depth(scratch / "a.png", depth, unit)
    back = read_depth(scratch / "a.png", unit=123.0)  # the file's own word goes first
    assert torch.equal(back > 0, depth > 0)
    error = (back.double() - depth).abs()
    assert error[depth >= unit].numel() == 0 or error[depth >= unit].max() <= unit * (0.5 + 1e-2)


def test_a_png_that_states_nothing_is_millimetres(tmp_path):
    Image.fromarray(np.array([[1500, 0]], dtype=np.uint16)).save(tmp_path / "a.png")
    assert read_depth(tmp_path / "a.png").tolist() == [[1.5, 0.0]]
    assert read_depth(tmp_path / "a.png", unit=1 / 5000).tolist() == [[pytest.approx(0.3), 0.0]]


def test_tiny_depth_does_not_become_unknown(tmp_path):
    write_depth(tmp_path / "a.png", torch.tensor([[1e-5, 0.0]]))
    assert (read_depth(tmp_path / "a.png") > 0).tolist() == [[True, False]]


def test_depth_that_does_not_fit_names_the_unit_that_does(tmp_path):
    with pytest.raises(
        InputError, match=r"depth of 100 does not fit into 16 bits of 0.001: .* at least 0.0015"
    ):
        write_depth(tmp_path / "a.png", torch.tensor([[100.0]]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["npy", "npz", "pfm", "png"])
def test_what_is_no_distance_becomes_unknown(tmp_path, suffix):
    values = torch.tensor([[float("nan"), float("inf"), -1.0, 2.0]])
    write_depth(tmp_path / f"a.{suffix}", values)
    assert read_depth(tmp_path / f"a.{suffix}").tolist() == [[0, 0, 0, 2]]


def test_foreign_arrays_with_gaps(tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray([[np.nan, np.inf, -3], [1, 2, 3]]).astype(">f8"))
    assert read_depth(tmp_path / "a.npy").tolist() == [[0, 0, 0], [1, 2, 3]]
    np.save(tmp_path / "b.npy", np.array([[1e300, 2.0]]))
    assert read_depth(tmp_path / "b.npy").tolist() == [[0, 2]]
    np.savez(tmp_path / "c.npz", anything=np.array([[7, 8]], dtype=np.uint16))
    assert read_depth(tmp_path / "c.npz").tolist() == [[7, 8]]


def test_pfm_of_both_byte_orders_begins_at_the_bottom(tmp_path):
    for scale, order in ((-1.0, "<f4"), (2.5, ">f4")):
        body = np.array([[1, 2], [3, np.inf]], dtype=order).tobytes()
        (tmp_path / "a.pfm").write_bytes(f"Pf\n2 2\n{scale}\n".encode() + body)
        assert read_depth(tmp_path / "a.pfm").tolist() == [[3, 0], [1, 2]]


def test_confidence_beside_depth(tmp_path):
    depth, confidence = some_depth(3, 4), torch.rand(3, 4)
    write_depth(tmp_path / "a.npz", depth, confidence=confidence)
    assert torch.equal(read_depth(tmp_path / "a.npz"), depth.float())
    assert torch.equal(read_confidence(tmp_path / "a.npz"), confidence)
    with pytest.raises(InputError, match=r"only an .npz holds confidence"):
        write_depth(tmp_path / "a.npy", depth, confidence=confidence)
    with pytest.raises(InputError, match="choose one of these suffixes"):
        write_depth(tmp_path / "a.exr", depth)


def touched(folder, names):
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_a_folder_by_number(tmp_path):
    folder = touched(tmp_path / "d", ["000010.png", "000002.png", "notes.txt", ".hidden.png"])
    assert {k: v.name for k, v in depth_files(folder).items()} == {2: "000002.png", 10: "000010.png"}


def test_a_folder_by_time_counts_files(tmp_path):
    folder = touched(tmp_path / "d", ["1305031102.160407.png", "1305031102.194330.png"])
    assert [path.name[-8:] for path in depth_files(folder).values()] == ["0407.png", "4330.png"]
    assert list(depth_files(folder)) == [0, 1]


def test_a_folder_by_image_names(tmp_path):
    folder = touched(tmp_path / "d", ["0003.npy", "0007.npy", "0099.npy"])
    found = depth_files(folder, names=["cam0/0001.jpg", "cam0/0003.jpg", "cam0/0007.jpg"])
    assert {k: v.name for k, v in found.items()} == {1: "0003.npy", 2: "0007.npy"}
    with pytest.raises(InputError, match="called like an image"):
        depth_files(folder, names=["a.jpg"])


def test_folders_that_hold_none(tmp_path):
    with pytest.raises(InputError, match="holds no depth map"):
        depth_files(tmp_path)
    with pytest.raises(InputError, match="cannot be listed"):
        depth_files(tmp_path / "missing")


def png_bytes(array, **options):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG", **options)
    return buffer.getvalue()


def npy_bytes(array, pickled=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=pickled)
    return buffer.getvalue()


def zip_bytes(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


MAP = np.ones((4, 5), dtype=np.float32)
BAD = {
    "empty": (b"", "begins like no known format"),
    "text": (b"1.0 2.0", "begins like no known format"),
    "8 bits": (png_bytes(np.zeros((4, 4), np.uint8)), "PNG of mode L, 16-bit grey was expected"),
    "colour": (png_bytes(np.zeros((4, 4, 3), np.uint8)), "PNG of mode RGB"),
    "a cut png": (
        png_bytes(np.random.default_rng(0).integers(0, 65535, (9, 9), np.uint16))[:-40],
        "no sound PNG",
    ),
    "a cut npy": (npy_bytes(MAP)[:-3], "80 bytes are promised, 77 are there"),
    "a huge npy": (
        npy_bytes(MAP).replace(b"(4, 5), }      ", b"(4, 5000000), }"),
        "80000000 bytes are promised",
    ),
    "three axes": (npy_bytes(np.ones((2, 2, 2))), "has the shape (2, 2, 2)"),
    "no pixels": (npy_bytes(np.ones((0, 2))), "has the shape (0, 2)"),
    "words": (npy_bytes(np.array([["a"]])), "numbers were expected"),
    "objects": (npy_bytes(np.array([[None]]), pickled=True), "numbers were expected"),
    "complex": (npy_bytes(np.ones((2, 2), complex)), "numbers were expected"),
    "two arrays of other names": (zip_bytes(a=npy_bytes(MAP), b=npy_bytes(MAP)), "holds no array 'depth'"),
    "a cut npz": (zip_bytes(depth=npy_bytes(MAP))[:-30], "no sound .npz"),
    "an npz of junk": (zip_bytes(depth=b"junk"), "not a sound .npy header"),
    "a pfm of three channels": (b"PF\n1 1\n-1\n" + bytes(12), "three channels"),
    "a cut pfm": (b"Pf\n2 2\n-1\n" + bytes(15), "16 bytes are promised, 15 are there"),
    "a pfm without scale": (b"Pf\n2 2\n0\n" + bytes(16), "a number other than 0"),
    "a pfm of words": (b"Pf\ntwo 2\n-1\n" + bytes(16), "no sound PFM header"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    data, expected = BAD[name]
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_depth(tmp_path / "a.bin")
    assert expected in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("stated", ["nonsense", "nan", "-1", "0"])
def test_a_png_with_an_impossible_unit(tmp_path, stated):
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("depth_unit", stated)
    (tmp_path / "a.png").write_bytes(png_bytes(np.ones((2, 2), np.uint16), pnginfo=info))
    with pytest.raises(FormatError, match="no positive number"):
        read_depth(tmp_path / "a.png")


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read_depth(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_depth(tmp_path / "a.png")

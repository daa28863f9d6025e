"""PLY clouds: what is written reads back, other programs' files are understood, damaged ones refused."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
import trimesh
from hypothesis import given, settings

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.ply import PlyCloud, read_ply, read_ply_vertices, write_ply


def some_cloud(count: int, colours=True, normals=True, confidence=True, seed=0) -> PlyCloud:
    generator = torch.Generator().manual_seed(seed)
    return PlyCloud(
        1000 * torch.randn(count, 3, generator=generator),
        torch.randint(0, 256, (count, 3), generator=generator, dtype=torch.uint8) if colours else None,
        torch.randn(count, 3, generator=generator) if normals else None,
        torch.rand(count, generator=generator) if confidence else None,
    )


@settings(max_examples=50)
@given(st.integers(0, 50), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_round_trip(scratch, count, colours, normals, confidence, seed):
    cloud = some_cloud(count, colours, normals, confidence, seed)
    write_ply(scratch / "a.ply", cloud)
    back = read_ply(scratch / "a.ply")
    for name in ("points", "colours", "normals", "confidence"):
        one, other = getattr(cloud, name), getattr(back, name)
        assert (one is None and other is None) or torch.equal(one, other), name


def test_the_header_is_the_one_users_expect(tmp_path):
    write_ply(tmp_path / "a.ply", some_cloud(2, normals=False))
    header = (tmp_path / "a.ply").read_bytes().split(b"end_header\n")[0].decode().split("\n")
    properties = [line.split()[1:] for line in header if line.startswith("property")]
    assert header[:3] == ["ply", "format binary_little_endian 1.0", "element vertex 2"]
    assert [name for _, name in properties] == ["x", "y", "z", "red", "green", "blue", "confidence"]
    assert [kind for kind, _ in properties] == ["float"] * 3 + ["uchar"] * 3 + ["float"]


def test_blocks_join_without_a_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("geoweaver.formats.ply._BLOCK", 7)
    cloud = some_cloud(30)
    write_ply(tmp_path / "a.ply", cloud)
    assert torch.equal(read_ply(tmp_path / "a.ply").points, cloud.points)


def test_trimesh_reads_ours_and_we_read_its(tmp_path):
    cloud = some_cloud(20, normals=False, confidence=False)
    write_ply(tmp_path / "a.ply", cloud)
    theirs = trimesh.load(tmp_path / "a.ply")
    np.testing.assert_array_equal(np.asarray(theirs.vertices, dtype=np.float32), cloud.points.numpy())
    np.testing.assert_array_equal(np.asarray(theirs.colors)[:, :3], cloud.colours.numpy())
    for encoding in ("ascii", "binary"):
        data = trimesh.creation.box().export(file_type="ply", encoding=encoding)
        (tmp_path / "box.ply").write_bytes(data if isinstance(data, bytes) else data.encode())
        box = read_ply(tmp_path / "box.ply")
        assert len(box) == 8 and box.points.abs().max() == 0.5


KINDS = {"char": "i1", "uint8": "u1", "short": "i2", "uint16": "u2", "int": "i4", "uint": "u4"}
KINDS |= {"float32": "f4", "double": "f8"}


@pytest.mark.parametrize("order", ["<", ">", ""])
def test_any_property_in_every_encoding(tmp_path, order):
    name = {"<": "binary_little_endian", ">": "binary_big_endian", "": "ascii"}[order]
    dtype = np.dtype([(f"p_{kind}", (order or "=") + code) for kind, code in KINDS.items()])
    rows = np.array([tuple(range(i, i + 8)) for i in range(3)], dtype)
    body = rows.tobytes() if order else "\n".join(" ".join(map(str, row.tolist())) for row in rows).encode()
    before = b"\x01\x02" if order else b"513\n"
    header = f"ply\nformat {name} 1.0\ncomment é\nelement camera 1\nproperty ushort id\nelement vertex 3\n"
    header += "".join(f"property {kind} p_{kind}\n" for kind in KINDS)
    header += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    (tmp_path / "a.ply").write_bytes(header.encode("latin-1") + before + body + b"\n3 0 1 2\n")
    read = read_ply_vertices(tmp_path / "a.ply")
    assert list(read) == list(dtype.names)
    for field, code in zip(dtype.names, KINDS.values(), strict=True):
        assert read[field].dtype == np.dtype(code)
        np.testing.assert_array_equal(read[field], rows[field])


def ascii_ply(properties: str, rows: str, count: int = 1) -> str:
    words = "".join(f"property {p}\n" for p in properties.split(","))
    return f"ply\r\nformat ascii 1.0\r\nelement vertex {count}\n{words}end_header\n{rows}\n"


@pytest.mark.parametrize(
    ("kind", "value"), [("uchar", "255 0 51"), ("float", "1.0 0 0.2"), ("ushort", "65535 0 13107")]
)
def test_colours_of_every_width(tmp_path, kind, value):
    properties = f"float x,float y,float z,{kind} red,{kind} green,{kind} blue"
    (tmp_path / "a.ply").write_text(ascii_ply(properties, f"1 2 3 {value}"), newline="")
    assert read_ply(tmp_path / "a.ply").colours.tolist() == [[255, 0, 51]]


XYZ = "float x,float y,float z"
BAD = {
    "no ply": ("solid cube", "does not begin with 'ply'"),
    "empty": ("", "does not begin with 'ply'"),
    "a header without end": ("ply\nformat ascii 1.0\n", "header does not end"),
    "no format": ("ply\nelement vertex 0\nproperty float x\nend_header\n", "no known format"),
    "another format": ("ply\nformat morse 1.0\nend_header\n", "line 2: 'format morse 1.0'"),
    "no vertices": ("ply\nformat ascii 1.0\nend_header\n", "no vertices"),
    "a negative count": (ascii_ply(XYZ, "", -1), "line 3: '-1' is no number of elements"),
    "a huge count": (ascii_ply(XYZ, "1 2 3", 10**30), "is no number of elements"),
    "an unknown type": (ascii_ply("quad x", "1"), "line 4: 'property quad x' is no property"),
    "one property twice": (ascii_ply("float x,float x", "1 1"), "the property 'x' appears twice"),
    "a list": (ascii_ply("list uchar int x", "1 1"), "lists in or before the vertices"),
    "no x y z": (ascii_ply("float x,float y", "1 1"), "have no x y z"),
    "cut ascii": (ascii_ply(XYZ, "1 2 3", 2), "2 vertices are promised, 1 are there"),
    "a short row": (ascii_ply(XYZ, "1 2"), "vertex 0: 3 numbers were expected, 2 found"),
    "a word": (ascii_ply(XYZ, "1 2 three"), "a vertex holds no number"),
    "nan": (ascii_ply(XYZ, "1 2 nan"), "1 of 1 vertices are not finite"),
    "a colour of 300": (ascii_ply("uchar red", "300"), "a value of 'red' does not fit its type"),
    "other letters": (ascii_ply(XYZ, "1 2 ３"), "an ascii PLY holds other bytes"),
    "a cut binary": (
        "ply\nformat binary_little_endian 1.0\nelement vertex 9\nproperty int x\nend_header\n12345",
        "9 vertices are promised, 1 are there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    text, expected = BAD[name]
    (tmp_path / "a.ply").write_bytes(text.encode())
    with pytest.raises(FormatError) as caught:
        read_ply(tmp_path / "a.ply")
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read_ply(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_ply(tmp_path / "a.ply")

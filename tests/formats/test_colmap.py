"""COLMAP models: what is written reads back and opens in pycolmap; damaged ones are refused."""

import shutil

import hypothesis.strategies as st
import numpy as np
import pycolmap
import pytest
import torch
from format_strategies import cameras, lenses, relative_difference, tangents
from hypothesis import given, settings

from geoweaver.datatypes import Camera
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.colmap import (
    ColmapModel,
    ColmapPoints,
    find_colmap,
    read_colmap,
    read_colmap_trajectory,
    write_colmap,
)
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry import SE3


def some_points(images: int, count: int, seed: int) -> ColmapPoints:
    """Points that some of the images see, in an order of their own."""
    generator = torch.Generator().manual_seed(seed)
    seen = torch.rand(count, images, generator=generator) < 0.6
    point, image = torch.nonzero(seen, as_tuple=True)
    pixel = torch.rand(len(point), 2, generator=generator, dtype=torch.float64) * 500
    return ColmapPoints(
        position=torch.randn(count, 3, generator=generator, dtype=torch.float64),
        colour=torch.randint(0, 256, (count, 3), generator=generator, dtype=torch.uint8),
        error=torch.rand(count, generator=generator, dtype=torch.float64),
        track_point=point,
        track_image=image,
        track_pixel=pixel,
    )


def small_model(images: int = 4, count: int = 5) -> ColmapModel:
    """Images of one pinhole camera, 000000.jpg and on."""
    return ColmapModel(
        names=tuple(f"{i:06d}.jpg" for i in range(images)),
        cam_from_world=SE3.exp(0.1 * torch.arange(6.0 * images).double().reshape(images, 6).sin()),
        cameras=(Camera("PINHOLE", (50.0, 51.0, 32.0, 24.0), 64, 48),),
        camera=torch.zeros(images, dtype=torch.int64),
        points=some_points(images, count, 0),
    )


@settings(max_examples=30)
@given(
    tangents(most=5),
    st.lists(lenses(), min_size=1, max_size=3),
    st.integers(0, 9),
    st.integers(0),
    st.booleans(),
)
def test_round_trip(scratch, tangent, values, count, seed, text):
    n, blank = len(tangent), "_" if text else " "
    model = ColmapModel(
        names=tuple(f"cam{blank}{i % 2}/ü_{i}.jpg" for i in range(n)),
        cam_from_world=cameras(tangent),
        cameras=tuple(Camera(*lens) for lens in values),
        camera=torch.arange(n) % len(values),
        points=some_points(n, count, seed % 2**31),
    )
    write_colmap(scratch, model, text)
    back = read_colmap(scratch)
    order = torch.tensor([model.names.index(name) for name in back.names])
    assert sorted(back.names) == sorted(model.names)
    assert back.cameras == model.cameras and torch.equal(back.camera, model.camera[order])
    assert relative_difference(model.cam_from_world[order], back.cam_from_world) < 1e-13
    for name in ("position", "colour", "error"):
        assert torch.equal(getattr(back.points, name), getattr(model.points, name)), name
    assert sorted(_rows(model.points, model.names)) == sorted(_rows(back.points, back.names))


def _rows(points, names):
    pixel = points.track_pixel.tolist()
    rows = zip(points.track_point.tolist(), points.track_image.tolist(), pixel, strict=True)
    return [(point, names[image], *xy) for point, image, xy in rows]


def test_pycolmap_finds_it_sound(tmp_path):
    model = small_model()
    write_colmap(tmp_path, model)
    opened = pycolmap.Reconstruction(tmp_path)
    assert opened.is_valid() and opened.num_reg_images() == 4 and opened.num_points3D() == 5
    assert opened.compute_num_observations() == len(model.points.track_point)
    image = opened.find_image_with_name("000002.jpg")
    np.testing.assert_allclose(
        image.cam_from_world().matrix(), model.cam_from_world[2].matrix()[:3], atol=1e-15
    )
    for point_id, point in opened.points3D.items():
        for element in point.track.elements:
            assert opened.images[element.image_id].points2D[element.point2D_idx].point3D_id == point_id


def test_text_says_which_points_an_image_sees(tmp_path):
    write_colmap(tmp_path, small_model(), text=True)
    lines = [line for line in (tmp_path / "images.txt").read_text().splitlines() if not line.startswith("#")]
    seen = {int(word) for line in lines[1::2] for word in line.split()[2::3]}
    assert seen <= {1, 2, 3, 4, 5} and len(seen) > 2


def test_a_new_model_replaces_the_old_in_both_forms(tmp_path):
    write_colmap(tmp_path, small_model(images=4))
    write_colmap(tmp_path, small_model(images=2), text=True)
    assert len(read_colmap(tmp_path)) == 2
    write_colmap(tmp_path, small_model(images=3))
    assert len(read_colmap(tmp_path)) == 3
    assert {path.suffix for path in tmp_path.iterdir()} == {".bin"}


@pytest.mark.parametrize("text", [False, True])
def test_models_from_before_rigs(tmp_path, text):
    write_colmap(tmp_path, small_model(), text)
    for name in ("rigs", "frames"):
        (tmp_path / f"{name}{'.txt' if text else '.bin'}").unlink()
    assert len(read_colmap(tmp_path)) == 4


@pytest.mark.parametrize("below", [".", "sparse/0", "colmap/sparse/0", "sparse"])
def test_found_from_the_parent_folder(tmp_path, below):
    write_colmap(tmp_path / below, small_model())
    assert find_colmap(tmp_path) == tmp_path / below
    read = read_trajectory(tmp_path)
    assert read.names == small_model().names and read.index.tolist() == [0, 1, 2, 3]


def test_places_of_a_model_that_lacks_images(tmp_path):
    model = small_model()
    gaps = ColmapModel(
        ("f_003.jpg", "f_007.jpg", "f_008.jpg", "f_020.jpg"),
        model.cam_from_world,
        model.cameras,
        model.camera,
        model.points,
    )
    write_colmap(tmp_path / "sparse/0", gaps)
    assert read_colmap_trajectory(tmp_path / "sparse/0").index.tolist() == [3, 7, 8, 20]
    (tmp_path / "images").mkdir()
    for name in ("f_002.jpg", *gaps.names):
        (tmp_path / "images" / name).touch()
    assert read_colmap_trajectory(tmp_path / "sparse/0").index.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["cameras", "images", "points3D", "rigs", "frames"])
def test_every_cut_of_a_binary_file_is_refused(tmp_path, name):
    write_colmap(tmp_path, small_model(images=2, count=2))
    path = tmp_path / f"{name}.bin"
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=rf"{name}.bin: (entry \d+ is cut|\d+ bytes follow)"):
            read_colmap(tmp_path)


@pytest.mark.parametrize("name", ["cameras", "images", "points3D", "rigs", "frames"])
def test_a_count_beyond_the_file_is_refused_at_once(tmp_path, name):
    write_colmap(tmp_path, small_model())
    path = tmp_path / f"{name}.bin"
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])
    with pytest.raises(FormatError, match="cut off or damaged"):
        read_colmap(tmp_path)


def test_text_with_blanks_in_names_is_not_written(tmp_path):
    model = small_model(images=1)
    blank = ColmapModel(("a b.jpg",), model.cam_from_world, model.cameras, model.camera, model.points)
    with pytest.raises(InputError, match="names with blanks"):
        write_colmap(tmp_path, blank, text=True)


BAD_TEXT = [
    ("cameras.txt", "PINHOLE", "PINHOLF", "Camera model does not exist"),
    ("cameras.txt", "50", "nan", "VerifyParams"),
    ("cameras.txt", "64", "0", "impossible"),
    ("images.txt", "000001.jpg", "000000.jpg", "two images are called '000000.jpg'"),
    ("images.txt", "000001", "a 1", "images.txt, line 7: a name holds a blank"),
    ("points3D.txt", "# Number", "7 1e30 0 0 1 2 3 0\n# Number", "not finite"),
    ("points3D.txt", "# Number", "word\n#", "a line lacks a number"),
    ("frames.txt", "\n1 1 ", "\n1 1 nan ", "a line lacks a number"),
    ("frames.txt", "CAMERA", "CAMEL", "not a sound COLMAP model"),
]


@pytest.mark.parametrize(("file", "old", "new", "expected"), BAD_TEXT)
def test_damaged_text(tmp_path, file, old, new, expected):
    write_colmap(tmp_path, small_model(), text=True)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    with pytest.raises(FormatError) as caught:
        read_colmap(tmp_path)
    message = str(caught.value)
    assert message.startswith(str(tmp_path)) and expected in message and "\n" not in message


def test_incomplete_and_empty_models(tmp_path):
    write_colmap(tmp_path, small_model())
    (tmp_path / "points3D.bin").unlink()
    with pytest.raises(InputError, match="holds no complete model"):
        read_trajectory(tmp_path)
    with pytest.raises(InputError, match="holds no complete model"):
        read_colmap(tmp_path / "nowhere")
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    pycolmap.Reconstruction().write_binary(tmp_path)
    with pytest.raises(FormatError, match="no registered image"):
        read_colmap(tmp_path)


@pytest.mark.parametrize("name", ["", "a\nb.jpg", " a.jpg", "a\0"])
def test_names_that_colmap_cannot_store(tmp_path, name):
    model = small_model(images=1)
    wrong = ColmapModel((name,), model.cam_from_world, model.cameras, model.camera, model.points)
    with pytest.raises(InputError, match="cannot store the image name"):
        write_colmap(tmp_path, wrong)


@pytest.mark.parametrize(
    ("camera", "expected"),
    [
        (Camera("NOPE", (1.0,), 1, 1), "no COLMAP camera model"),
        (Camera("PINHOLE", (1.0,), 1, 1), "cannot have 1 par"),
    ],
)
def test_cameras_that_colmap_does_not_know(tmp_path, camera, expected):
    model = small_model(images=1)
    with pytest.raises(InputError, match=expected):
        write_colmap(
            tmp_path, ColmapModel(model.names, model.cam_from_world, (camera,), model.camera, model.points)
        )


def test_an_output_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        write_colmap(tmp_path / "file", small_model())

"""Whatever bytes a reader meets, it answers or raises a GeoWeaverError of one line: never anything else."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from format_strategies import damaged
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_colmap import small_model
from test_trajectory_files import ALIGNMENT, EUROC, VKITTI, VKITTI_INTRINSICS

from geoweaver.datatypes import Trajectory
from geoweaver.errors import GeoWeaverError
from geoweaver.formats.colmap import read_colmap, write_colmap
from geoweaver.formats.depth import read_confidence, read_depth, write_depth
from geoweaver.formats.euroc import read_euroc
from geoweaver.formats.kitti import read_kitti, write_kitti
from geoweaver.formats.nerfstudio import NerfstudioScene, read_transforms, write_transforms
from geoweaver.formats.ply import PlyCloud, read_ply, write_ply
from geoweaver.formats.run_folder import read_run_folder
from geoweaver.formats.tnt_log import read_tnt_alignment, read_tnt_log, write_tnt_log
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.formats.tum import read_tum, write_tum
from geoweaver.formats.vkitti import read_vkitti, read_vkitti_intrinsics

READERS = {
    "tum": read_tum,
    "kitti": read_kitti,
    "log": read_tnt_log,
    "euroc": read_euroc,
    "vkitti": read_vkitti,
    "intrinsic": read_vkitti_intrinsics,
    "trans": read_tnt_alignment,
    "transforms": read_transforms,
    "ply": read_ply,
    **dict.fromkeys(("png", "npy", "npz", "pfm"), read_depth),
}
MODEL_PARTS = ("cameras", "images", "points3D", "rigs", "frames")
MODEL_FILES = [f"{name}.{kind}" for kind in ("bin", "txt") for name in MODEL_PARTS]
FUZZ = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def valid(scratch) -> dict[str, bytes]:
    """One small valid file of every format."""
    model = small_model(images=3, count=3)
    walk = Trajectory(model.cam_from_world, index=torch.arange(3), timestamps=torch.arange(3.0).double() / 7)
    scene = NerfstudioScene(model.names, model.cam_from_world, model.cameras, model.camera)
    depth = torch.arange(20.0).reshape(4, 5)
    write_tum(scratch / "v.tum", walk)
    write_kitti(scratch / "v.kitti", walk)
    write_tnt_log(scratch / "v.log", walk)
    (scratch / "v.euroc").write_text(EUROC)
    (scratch / "v.vkitti").write_text(VKITTI)
    (scratch / "v.intrinsic").write_text(VKITTI_INTRINSICS)
    (scratch / "v.trans").write_text(ALIGNMENT)
    write_transforms(scratch / "v.transforms", scene)
    write_ply(scratch / "v.ply", PlyCloud(torch.eye(3), torch.zeros(3, 3, dtype=torch.uint8)))
    for suffix in ("png", "npy", "npz", "pfm"):
        write_depth(scratch / f"v.{suffix}", depth)
    files = {name: (scratch / f"v.{name}").read_bytes() for name in READERS}
    for kind in ("bin", "txt"):
        write_colmap(scratch / kind, model, text=kind == "txt")
        files |= {file: (scratch / kind / file).read_bytes() for file in MODEL_FILES if file.endswith(kind)}
    return files


def answers_or_says_why(read, path: Path) -> None:
    """Run a reader; its only exception is ours, in one line that names the file or its folder."""
    try:
        result = read(path)
    except GeoWeaverError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return
    if isinstance(result, Trajectory):
        assert len(result) > 0 and result.cam_from_world.matrix().isfinite().all()


@FUZZ
@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode(errors="replace")))
@example(b"\xff\xfe\x00")
@example(b"ply\n")
@example(b"\x93NUMPY\x01\x00\x00\x00")
@example(b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((((")
@example(b"PK\x05\x06" + bytes(18))
@example(b"\x89PNG\r\n\x1a\n" + bytes(30))
@example(b"Pf 1 1 1e999 " + bytes(4))
@example(b"{}")
def test_random_bytes(scratch, data):
    path = scratch / "random"
    path.write_bytes(data)
    for read in {*READERS.values(), read_trajectory, read_confidence}:
        answers_or_says_why(read, path)


@pytest.mark.parametrize("name", READERS)
@FUZZ
@given(data=st.data())
def test_damaged_files(scratch, valid, name, data):
    path = scratch / "damaged"
    path.write_bytes(data.draw(damaged(valid[name])))
    answers_or_says_why(READERS[name], path)
    answers_or_says_why(read_trajectory, path)


@pytest.mark.parametrize("file", MODEL_FILES)
@FUZZ
@given(data=st.data())
def test_damaged_models(scratch, valid, file, data):
    folder = scratch / "model"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for other in MODEL_FILES:
        if other[-3:] == file[-3:]:
            (folder / other).write_bytes(valid[other])
    (folder / file).write_bytes(data.draw(damaged(valid[file])))
    answers_or_says_why(read_colmap, folder)
    answers_or_says_why(read_trajectory, folder)


@FUZZ
@given(st.data())
def test_damaged_runs(scratch, valid, data):
    folder = scratch / "run"
    folder.mkdir(exist_ok=True)
    run = json.dumps({"untrusted": [{"frame": 1, "reason": "blur"}], "names": ["a", "b", "c"]}).encode()
    (folder / "run.json").write_bytes(data.draw(damaged(run)))
    (folder / "trajectory.tum").write_bytes(data.draw(st.just(valid["tum"]) | damaged(valid["tum"])))
    answers_or_says_why(read_run_folder, folder)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
FIELDS = [
    "frames",
    "w",
    "h",
    "fl_x",
    "fl_y",
    "cx",
    "k1",
    "k4",
    "camera_model",
    "camera_angle_x",
    "is_fisheye",
]


@FUZZ
@given(
    st.dictionaries(st.sampled_from(FIELDS), json_values),
    st.dictionaries(st.sampled_from(FIELDS), json_values),
)
def test_transforms_of_any_values(scratch, fields, frame_fields):
    frame = {"file_path": "a.jpg", "transform_matrix": np.eye(4).tolist(), **frame_fields}
    path = scratch / "transforms.json"
    path.write_text(json.dumps({"w": 8, "h": 6, "fl_x": 5, "frames": [frame], **fields}))
    answers_or_says_why(read_trajectory, path)

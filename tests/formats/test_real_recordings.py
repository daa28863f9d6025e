"""The readers on real recordings."""

import numpy as np
import pytest
import torch

from geoweaver.formats.depth import depth_files, read_depth
from geoweaver.formats.nerfstudio import read_transforms, write_transforms
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.formats.tum import write_tum

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize(
    ("name", "frames", "length"),
    [("drone_room", 100, None), ("indoor_walk", 373, None), ("street_loop", 1500, 1100)],
)
def test_reference_trajectories(realdata, tmp_path, name, frames, length):
    path = realdata / name / "groundtruth.tum"
    read = read_trajectory(path)
    assert len(read) == frames and torch.equal(read.index, torch.arange(frames))
    rows = np.loadtxt(path)
    np.testing.assert_allclose(read.cam_from_world.centre.numpy(), rows[:, 1:4], atol=1e-9)
    if length is not None:
        walked = read.cam_from_world.centre.diff(dim=0).norm(dim=1).sum()
        assert walked == pytest.approx(length, rel=0.05)
    write_tum(tmp_path / "a.tum", read)
    back = read_trajectory(tmp_path / "a.tum")
    assert torch.equal(back.timestamps, read.timestamps)
    assert (back.cam_from_world.matrix() - read.cam_from_world.matrix()).abs().max() < 1e-12


def test_a_car_drives_forward(realdata):
    """The axis that the file calls forward is the one along which the car moves."""
    pose = read_trajectory(realdata / "street_loop" / "groundtruth.tum").cam_from_world
    step = pose[:-1].act(pose[1:].centre)
    assert (step[:, 2] > 0.95 * step.norm(dim=1)).double().mean() > 0.95


def test_fox(realdata, tmp_path):
    path = realdata / "fox" / "transforms.json"
    read = read_trajectory(path)
    images = sorted(p.name for p in (realdata / "fox" / "images").iterdir())
    assert sorted(read.names) == images and len(read) == 50
    assert [images[i] for i in read.index.tolist()] == list(read.names)
    scene = read_transforms(path)
    (camera,) = scene.cameras
    assert (camera.model, camera.width, camera.height) == ("OPENCV", 540, 960)
    assert camera.params == (
        687.76,
        687.245,
        277.279,
        482.634,
        0.0578421,
        -0.0805099,
        -0.000980296,
        0.00015575,
    )
    write_transforms(tmp_path / "t.json", scene)
    back = read_transforms(tmp_path / "t.json")
    assert back.cameras == scene.cameras and back.file_paths == scene.file_paths
    assert (back.cam_from_world.matrix() - scene.cam_from_world.matrix()).abs().max() < 1e-12


def test_fox_cameras_look_at_one_place(realdata):
    """With the axes right, the point nearest to all viewing rays lies in front of every camera."""
    pose = read_trajectory(realdata / "fox").cam_from_world
    ahead = pose.inverse().rotation[:, :, 2]
    across = torch.eye(3, dtype=torch.float64) - ahead[:, :, None] * ahead[:, None, :]
    target = torch.linalg.solve(across.sum(0), (across @ pose.centre[..., None]).sum(0)).squeeze(-1)
    assert (pose.act(target)[:, 2] > 0).all()


def test_indoor_depth(realdata):
    files = depth_files(realdata / "indoor_walk" / "depth")
    assert list(files) == list(range(0, 373, 2))
    depth = read_depth(files[100])
    assert depth.shape == (360, 540) and 0.3 < depth[depth > 0].median() < 10

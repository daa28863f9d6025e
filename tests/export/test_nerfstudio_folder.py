"""transforms.json, read as nerfstudio's documentation says: OpenGL axes, +Z up, one world for all."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from made_runs import finished, first, stated, with_cameras, write_pictures
from PIL import Image

from geoweaver.export import ExportChoice, export_run, write_exports
from geoweaver.formats.nerfstudio import read_transforms_trajectory
from geoweaver.formats.ply import PlyCloud, read_ply
from geoweaver.frames import FramesConfig
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import so3_exp


@dataclass
class Loaded:
    """What a trainer has after reading the file."""

    images: list[Path]
    camera_to_world: np.ndarray
    K: np.ndarray
    depth: list[Path]
    masks: list[Path]
    points: np.ndarray
    applied: np.ndarray


def load(path):
    """Keys at the top hold for every frame, those of a frame come first; depth and masks for all or none."""
    meta, folder = json.loads(path.read_text()), path.parent
    frames = sorted(meta["frames"], key=lambda frame: frame["file_path"])
    value = lambda frame, key: frame.get(key, meta.get(key))  # noqa: E731
    K = np.array([[value(f, k) for k in ("fl_x", "fl_y", "cx", "cy", "w", "h")] for f in frames], float)
    assert meta.get("camera_model", "PINHOLE") == "PINHOLE"
    lists = {key: [folder / f[key] for f in frames if key in f] for key in ("depth_file_path", "mask_path")}
    assert all(len(files) in (0, len(frames)) for files in lists.values())
    return Loaded(
        [folder / frame["file_path"] for frame in frames],
        np.array([frame["transform_matrix"] for frame in frames]),
        K, lists["depth_file_path"], lists["mask_path"],
        read_ply(folder / meta["ply_file_path"]).points.numpy(), np.array(meta["applied_transform"]),
    )  # fmt: skip


def project_opengl(loaded, k):
    """Pixels of the file's points in one image: x right, y up, looking along -z."""
    local = (loaded.points - loaded.camera_to_world[k, :3, 3]) @ loaded.camera_to_world[k, :3, :3]
    fx, fy, cx, cy, w, h = loaded.K[k]
    z = -local[:, 2]
    pixel = np.stack([fx * local[:, 0] / z + cx, -fy * local[:, 1] / z + cy], -1)
    inside = (z > 0) & (pixel > 0).all(1) & (pixel < [w, h]).all(1)
    return pixel, z, inside


def test_cameras_points_images_and_depth_agree(run, tmp_path):
    export_run(run, "nerfstudio", tmp_path / "ns")
    loaded = load(tmp_path / "ns/transforms.json")
    assert len(loaded.images) == len(run.frames) == len(loaded.depth)
    unit = json.loads((tmp_path / "ns/transforms.json").read_text())["depth_unit_scale_factor"]
    for k in (0, 5):
        with Image.open(loaded.images[k]) as image, Image.open(loaded.depth[k]) as stored:
            assert image.size == tuple(loaded.K[k, 4:].astype(int))
            # a trainer resizes depth to the image
            depth = np.array(stored.resize(image.size, Image.NEAREST)).astype(float) * unit
        pixel, z, inside = project_opengl(loaded, k)
        column, row = pixel[inside].astype(int).T
        seen = depth[row, column]
        assert inside.mean() > 0.3
        assert np.median(np.abs(seen / z[inside] - 1)[seen > 0]) < 0.05


def test_up_is_z_and_the_turn_is_stated(run, tmp_path):
    """A world on its side: the file's is upright, and its applied_transform leads there."""
    turn = so3_exp(torch.tensor([0.7, -1.1, 0.4], dtype=torch.float64))
    cameras = run.result.cam_from_world
    tilted = with_cameras(run, SE3(cameras.rotation @ turn.T, cameras.translation))
    export_run(tilted, "nerfstudio", tmp_path / "ns")
    loaded = load(tmp_path / "ns/transforms.json")
    # the tiny world has +z up, and its camera walks level
    up = loaded.camera_to_world[:, :3, 1].mean(0)
    assert up[2] / np.linalg.norm(up) > 0.99
    R = loaded.applied[:, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    centres = tilted.result.cam_from_world.centre.numpy() @ R.T + loaded.applied[:, 3]
    np.testing.assert_allclose(centres, loaded.camera_to_world[:, :3, 3], atol=1e-9)


def test_masks_are_written_where_there_are_any(clip, images, tmp_path):
    write_pictures(tmp_path / "in", images[:3], [f"{k}.png" for k in range(3)])
    blind = np.full((160, 240), 255, np.uint8)
    blind[100:, :120] = 0
    (tmp_path / "masks").mkdir()
    Image.fromarray(blind).save(tmp_path / "masks/1.png")
    options = FramesConfig(intrinsics=stated(clip), masks=tmp_path / "masks", max_size=160)
    run = finished(first(clip, 3), tmp_path / "in", tmp_path / "run", options)
    export_run(run, "nerfstudio", tmp_path / "ns")
    loaded = load(tmp_path / "ns/transforms.json")
    masks = [Image.open(file) for file in loaded.masks]
    assert {mask.mode for mask in masks} == {"L"}, "nerfstudio refuses masks of colour"
    shown = [np.asarray(mask) for mask in masks]
    assert (shown[0] == 255).all() and shown[1].shape == blind.shape
    assert (shown[1] != blind).mean() < 0.02


def test_several_cameras_have_their_intrinsics_per_frame(clip, images, tmp_path):
    write_pictures(tmp_path / "in", images[:2], ["a/0.png", "a/1.png"])
    write_pictures(tmp_path / "in", [im[:120].copy() for im in images[2:4]], ["b/0.png", "b/1.png"])
    run = finished(first(clip, 4), tmp_path / "in", tmp_path / "run")
    write_exports(run, tmp_path / "run")
    loaded = load(tmp_path / "run/transforms.json")
    assert loaded.K[:, 5].tolist() == [160, 160, 120, 120]
    assert all(file.is_file() for file in loaded.images + loaded.depth)
    assert read_transforms_trajectory(tmp_path / "run/transforms.json").names == run.frames.names


def test_a_run_folder_gets_all_of_it_and_the_given_cloud(run, tmp_path):
    rng = torch.Generator().manual_seed(0)
    cloud = PlyCloud(torch.rand(1_200_000, 3, generator=rng), torch.zeros(1_200_000, 3, dtype=torch.uint8))
    write_exports(run, tmp_path, cloud)
    assert {p.name for p in tmp_path.iterdir()} == {"colmap", "depth", "sparse_pc.ply", "transforms.json"}
    loaded = load(tmp_path / "transforms.json")
    assert len(loaded.points) == 400_000
    torch.testing.assert_close(
        torch.from_numpy(loaded.points[:50]),
        (cloud.points[::3][:50].double() @ torch.from_numpy(loaded.applied[:, :3]).T).float(),
    )


def test_frames_without_depth_leave_the_file_without_depth_and_are_counted(run, tmp_path, caplog):
    class Some:
        frames = (0, 1, 2)
        read = run.depths.read

    export_run(replace(run, depths=Some()), "nerfstudio", tmp_path / "ns", ExportChoice(all_frames=True))
    loaded = load(tmp_path / "ns/transforms.json")
    assert not loaded.depth and len(loaded.images) == 8
    assert "5 of 8 frames have no depth map" in caplog.text
    caplog.clear()
    export_run(run, "nerfstudio", tmp_path / "whole", ExportChoice(all_frames=True))
    assert "no depth map" not in caplog.text


def test_a_run_that_trusts_nothing_still_ends_well(run, tmp_path, caplog):
    nobody = replace(run, result=replace(run.result, trusted=torch.zeros(8, dtype=torch.bool)))
    write_exports(nobody, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["depth"] and "no COLMAP model" in caplog.text

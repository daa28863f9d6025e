"""The folder for Gaussian splatting, read as the trainers' COLMAP loaders do."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap
import torch
from made_runs import finished, first, write_pictures
from PIL import Image

from geoweaver.export import ExportChoice, export_run


def files_below(folder):
    found = [Path(where, f) for where, _, files in os.walk(folder) for f in files]
    return sorted(str(f.relative_to(folder)) for f in found)


def load(folder, factor=1):
    """Images sorted by name are paired with the sorted files of images[_factor]; cameras are pinholes."""
    model = pycolmap.Reconstruction(folder / "sparse/0")
    images = sorted(model.images.values(), key=lambda image: image.name)
    shown = folder / (f"images_{factor}" if factor > 1 else "images")
    paired = dict(zip(files_below(folder / "images"), files_below(shown), strict=True))
    Ks = []
    for image in images:
        camera = model.cameras[image.camera_id]
        assert camera.model == pycolmap.CameraModelId.PINHOLE
        K = camera.calibration_matrix()
        K[:2] /= factor
        Ks.append((K, camera.width // factor, camera.height // factor))
    points = np.array([point.xyz for point in model.points3D.values()])
    return [shown / paired[image.name] for image in images], Ks, points, model


def test_images_cameras_and_points_load_at_every_factor(run, tmp_path):
    export_run(run, "gsplat", tmp_path / "gs", ExportChoice(downscale=(2, 4)))
    for factor in (1, 2, 4):
        paths, Ks, points, model = load(tmp_path / "gs", factor)
        assert len(paths) == len(run.frames) and len(points) > 300
        for path, (_, width, height) in zip(paths, Ks, strict=True):
            with Image.open(path) as image:
                assert image.size == (width, height) and np.asarray(image).shape == (height, width, 3)
        assert all(np.ptp(point.color) >= 0 and point.error >= 0 for point in model.points3D.values())


def test_every_image_sees_points(run, tmp_path):
    export_run(run, "gsplat", tmp_path / "gs")
    model = load(tmp_path / "gs")[3]
    assert min(image.num_points3D for image in model.images.values()) > 50


def test_names_are_plain_and_folders_flat(clip, images, tmp_path):
    write_pictures(tmp_path / "in", images[:4], ["a/0.png", "a/1.png", "b/0.png", "b/1.png"])
    run = finished(first(clip, 4), tmp_path / "in", tmp_path / "run")
    export_run(run, "gsplat", tmp_path / "gs")
    names = [path.name for path in load(tmp_path / "gs")[0]]
    assert names == ["a__0.png", "a__1.png", "b__0.png", "b__1.png"]
    foreign = replace(run, frames=replace(run.frames, names=("ä/0.png", "ä/1.png", "b/0.png", "b/1.png")))
    export_run(foreign, "gsplat", tmp_path / "gs2")
    assert files_below(tmp_path / "gs2/images") == [f"image_{k:06}.png" for k in range(4)]


def test_trusted_frames_alone(run, tmp_path):
    trusted = torch.tensor([True] * 5 + [False] * 3)
    export_run(replace(run, result=replace(run.result, trusted=trusted)), "gsplat", tmp_path / "gs")
    assert len(load(tmp_path / "gs")[0]) == 5

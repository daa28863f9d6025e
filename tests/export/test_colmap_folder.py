"""The COLMAP folder: opens in pycolmap, its cameras fit its images, and bundle adjustment agrees."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap
import pytest
import torch
from made_runs import finished, first, moved, stated, with_cameras, write_pictures
from PIL import Image

from geoweaver.errors import DegenerateError, InputError
from geoweaver.export.colmap_folder import write_colmap_folder
from geoweaver.formats.colmap import read_colmap
from geoweaver.frames import FramesConfig
from geoweaver.geometry.camera import project_with_depth
from geoweaver.geometry.registration import umeyama
from geoweaver.synth.render import render
from tests.frames.recordings import turn_flag, write_video


def camera_centres(model):
    images = sorted(model.images.values(), key=lambda image: image.name)
    return torch.tensor(np.array([image.projection_center() for image in images]))


def reprojection(folder):
    """Errors of every observation in pixels of the exported images, by our own projection."""
    model = read_colmap(folder / "sparse" / "0")
    lens = torch.tensor([camera.params for camera in model.cameras], dtype=torch.float64)
    points, image = model.points, model.points.track_image
    local = model.cam_from_world[image].act(points.position[points.track_point])
    pixel, z = project_with_depth(local, lens[model.camera[image]])
    assert (z > 0).all()
    return (pixel - points.track_pixel).norm(dim=-1)


def as_taken(run, folder, frame, name):
    """What the exported camera should see, rendered, and what the exported image shows."""
    model, clip = read_colmap(folder / "sparse" / "0"), run.depths.clip
    camera = model.cameras[int(model.camera[model.names.index(name)])]
    lens = torch.tensor(camera.params, dtype=torch.float64)
    truth = render(clip.world, clip.cam_from_world[frame], lens, (camera.width, camera.height)).rgb
    with Image.open(folder / "images" / name) as image:
        shown = np.asarray(image.convert("RGB"))
    assert shown.shape == truth.shape
    return truth.astype(float), shown.astype(float)


def test_pycolmap_opens_it_and_all_five_files_are_there(run, tmp_path):
    made = write_colmap_folder(run, tmp_path / "colmap")
    names = {f"{n}.bin" for n in ("cameras", "images", "points3D", "rigs", "frames")}
    assert {f.name for f in (tmp_path / "colmap/sparse/0").iterdir()} == names
    model = pycolmap.Reconstruction(tmp_path / "colmap/sparse/0")
    assert model.num_reg_images() == len(run.frames) and len(model.cameras) == 1
    assert model.compute_mean_track_length() > 3 and model.num_points3D() == len(made.tracks)
    camera = model.cameras[1]
    assert (camera.width, camera.height) == run.depths.clip.size != run.result.size
    np.testing.assert_allclose(camera.params, run.depths.clip.intrinsics[0], rtol=1e-9)
    error = np.mean([point.error for point in model.points3D.values()])
    assert abs(model.compute_mean_reprojection_error() - error) < 0.01


def test_points_reproject_at_the_original_size(run, tmp_path):
    write_colmap_folder(run, tmp_path / "colmap")
    error = reprojection(tmp_path / "colmap")
    assert error.max() < 2.5 and error.mean() < 0.6


def test_a_bundle_adjustment_converges_and_stays(run, tmp_path):
    """Cameras a little off are pulled back; the export's own stay where they are."""
    for by, within in ((0.0, 0.004), (0.002, 0.004)):
        cameras = moved(run.result.cam_from_world, by)
        write_colmap_folder(with_cameras(run, cameras), tmp_path / "colmap")
        model = pycolmap.Reconstruction(tmp_path / "colmap/sparse/0")
        options = pycolmap.BundleAdjustmentOptions()
        options.print_summary = False
        options.refine_focal_length = False
        pycolmap.bundle_adjustment(model, options)
        truth, found = run.result.cam_from_world.centre, camera_centres(model)
        off = (umeyama(found, truth).act(found) - truth).norm(dim=-1).max()
        # in depths: the room is about 2 m deep
        assert off / 2 < within, by


def test_images_are_the_original_files(run, tmp_path):
    write_colmap_folder(run, tmp_path / "colmap")
    for name in run.frames.names:
        original = Path(run.summary["input"]) / name
        assert (tmp_path / "colmap/images" / name).read_bytes() == original.read_bytes()
    notes = json.loads((tmp_path / "colmap/geoweaver.json").read_text())
    assert notes["cameras"][0]["images"] == "original"


def test_cameras_fit_their_images(run, tmp_path):
    write_colmap_folder(run, tmp_path / "colmap")
    truth, shown = as_taken(run, tmp_path / "colmap", 3, "0003.jpg")
    assert np.abs(truth - shown).mean() < 4


def test_a_distorted_camera_gives_undistorted_images_and_is_noted(bent_run, tmp_path):
    write_colmap_folder(bent_run, tmp_path / "colmap")
    model = read_colmap(tmp_path / "colmap/sparse/0")
    assert model.cameras[0].model == "PINHOLE"
    assert model.cameras[0].width > bent_run.result.size[0]
    truth, shown = as_taken(bent_run, tmp_path / "colmap", 1, "1.png")
    assert np.abs(truth - shown).mean() < 6
    # not by chance: half a percent more focal fits worse
    assert reprojection(tmp_path / "colmap").mean() < 0.2
    notes = json.loads((tmp_path / "colmap/geoweaver.json").read_text())["cameras"][0]
    assert notes["images"] == "undistorted" and notes["original"]["model"] == "OPENCV"
    assert notes["original"]["params"] == pytest.approx(bent_run.frames.cameras[0].params, abs=1e-9)


def test_the_original_camera_is_the_one_that_the_run_found(run, tmp_path):
    found = run.result.intrinsics * torch.tensor([1.1, 1.1, 1.0, 1.0]) + torch.tensor([0.0, 0.0, 2.0, 0.0])
    refined = replace(run, result=replace(run.result, intrinsics=found))
    write_colmap_folder(refined, tmp_path / "colmap")
    told = json.loads((tmp_path / "colmap/geoweaver.json").read_text())["cameras"][0]
    # images that are the original files have the exported camera
    (camera,) = read_colmap(tmp_path / "colmap/sparse/0").cameras
    assert told["images"] == "original" and told["original"]["params"] == pytest.approx(camera.params)


def test_names_with_blanks_quotes_and_other_letters(clip, images, tmp_path):
    names = ["a b.jpg", "b 'quoted' \"twice\".jpg", "c été/ü.jpg", "c été/привет 猫.jpg"]
    write_pictures(tmp_path / "in", images[:4], names)
    four = first(clip, 4)
    run = finished(four, tmp_path / "in", tmp_path / "run", FramesConfig(intrinsics=stated(clip)))
    write_colmap_folder(run, tmp_path / "colmap")
    model = pycolmap.Reconstruction(tmp_path / "colmap/sparse/0")
    assert {image.name for image in model.images.values()} == set(run.frames.names) == set(names)
    assert all((tmp_path / "colmap/images" / name).is_file() for name in names)
    plain = write_colmap_folder(run, tmp_path / "plain", plain=True)
    assert all(p.name.isascii() and "/" not in p.name for p in plain.pictures)
    notes = json.loads((tmp_path / "plain/geoweaver.json").read_text())
    assert set(notes["frames"].values()) == set(names)


def test_sub_folders_are_cameras_each_with_its_own_size(clip, images, tmp_path):
    """Two cameras, one of them smaller and narrower: the working images are padded, the exports are not."""
    narrow = [np.ascontiguousarray(image[:, 60:180]) for image in images]
    write_pictures(tmp_path / "in", images[:4], [f"left/{k}.png" for k in range(4)])
    write_pictures(tmp_path / "in", narrow[4:], [f"right/{k}.png" for k in range(4)])
    fx, fy, cx, cy = clip.intrinsics[0].tolist()
    (tmp_path / "cameras.txt").write_text(
        f"1 PINHOLE 240 160 {fx} {fy} {cx} {cy}\n2 PINHOLE 120 160 {fx} {fy} {cx - 60} {cy}\n"
    )
    options = FramesConfig(intrinsics=str(tmp_path / "cameras.txt"), max_size=180)
    run = finished(clip, tmp_path / "in", tmp_path / "run", options)
    write_colmap_folder(run, tmp_path / "colmap")
    model = read_colmap(tmp_path / "colmap/sparse/0")
    assert [(c.width, c.height) for c in model.cameras] == [(240, 160), (120, 160)]
    assert model.camera.tolist() == [0] * 4 + [1] * 4
    np.testing.assert_allclose(model.cameras[1].params, (fx, fy, cx - 60, cy), rtol=1e-9)
    truth, shown = as_taken(run, tmp_path / "colmap", 5, "right/1.png")
    assert np.abs(truth - shown).mean() < 4
    assert reprojection(tmp_path / "colmap").mean() < 0.2


def test_grey_and_turned_files_are_written_anew(clip, images, tmp_path):
    write_pictures(tmp_path / "in", images[:2], ["0.png", "1.png"])
    Image.fromarray(images[0]).convert("L").save(tmp_path / "in/0.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.rot90(images[1])).save(tmp_path / "in/1.jpg", exif=exif, quality=95)
    (tmp_path / "in/1.png").unlink()
    two = first(clip, 2)
    run = finished(two, tmp_path / "in", tmp_path / "run", FramesConfig(intrinsics=stated(clip)))
    write_colmap_folder(run, tmp_path / "colmap")
    with Image.open(tmp_path / "colmap/images/0.png") as grey:
        assert grey.mode == "RGB"
    with Image.open(tmp_path / "colmap/images/1.jpg") as turned:
        assert turned.size == clip.size and turned.getexif().get(0x0112, 1) == 1
        assert np.abs(np.asarray(turned).astype(float) - images[1]).mean() < 4


def test_files_of_the_same_name_in_two_folders_are_told_apart(clip, images, tmp_path):
    """With an image beside it, `images/` is a camera like any other sub-folder."""
    write_pictures(tmp_path / "in", images[:2], ["0.png", "1.png"])
    write_pictures(tmp_path / "in", images[2:4], ["images/0.png", "images/1.png"])
    run = finished(first(clip, 4), tmp_path / "in", tmp_path / "run")
    write_colmap_folder(run, tmp_path / "colmap")
    for name in run.frames.names:
        assert (tmp_path / "colmap/images" / name).read_bytes() == (tmp_path / "in" / name).read_bytes()
    alone = finished(first(clip, 2), tmp_path / "in/images", tmp_path / "run")
    write_colmap_folder(alone, tmp_path / "alone")
    assert (tmp_path / "alone/images/0.png").samefile(tmp_path / "in/images/0.png")


def test_sixteen_bit_images_become_eight_bit(clip, images, tmp_path):
    import cv2

    write_pictures(tmp_path / "in", images[:2], ["0.png", "1.png"])
    for k in range(2):
        deep = images[k][..., ::-1].astype(np.uint16) * 257
        cv2.imwrite(str(tmp_path / f"in/{k}.png"), deep)
    run = finished(first(clip, 2), tmp_path / "in", tmp_path / "run")
    write_colmap_folder(run, tmp_path / "colmap")
    shown = cv2.imread(str(tmp_path / "colmap/images/1.png"), cv2.IMREAD_UNCHANGED)
    assert shown.dtype == np.uint8 and np.abs(shown[..., ::-1].astype(int) - images[1]).max() <= 1


def test_a_turned_video_is_exported_upright(tmp_path, images, clip):
    sideways = [np.ascontiguousarray(np.rot90(image)) for image in images[:4]]
    write_video(tmp_path / "v.mp4", sideways)
    turn_flag(tmp_path / "v.mp4", 1)
    four = first(clip, 4)
    run = finished(four, tmp_path / "v.mp4", tmp_path / "run", FramesConfig(intrinsics=stated(clip)))
    write_colmap_folder(run, tmp_path / "colmap")
    names = [f"frame_{k:06}.jpg" for k in range(4)]
    assert sorted(p.name for p in (tmp_path / "colmap/images").iterdir()) == names
    truth, shown = as_taken(run, tmp_path / "colmap", 2, names[2])
    assert np.abs(truth - shown).mean() < 8


def test_only_trusted_frames_unless_all_are_wanted(run, tmp_path):
    trusted = torch.ones(len(run.frames), dtype=torch.bool)
    trusted[[2, 5]] = False
    some = replace(run, result=replace(run.result, trusted=trusted))
    made = write_colmap_folder(some, tmp_path / "some")
    assert [p.frame for p in made.pictures] == [0, 1, 3, 4, 6, 7]
    every = write_colmap_folder(some, tmp_path / "all", all_frames=True)
    assert len(every.pictures) == 8 and pycolmap.Reconstruction(tmp_path / "all/sparse/0").num_images() == 8
    # what is not trusted bears no point
    assert not torch.isin(every.tracks.frame, torch.tensor([2, 5])).any()
    nobody = replace(run, result=replace(run.result, trusted=~torch.ones_like(trusted)))
    with pytest.raises(DegenerateError, match="--all-frames"):
        write_colmap_folder(nobody, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_focal_that_changes_gives_each_image_its_camera(run, tmp_path):
    intrinsics = run.result.intrinsics.clone()
    intrinsics[:, :2] *= torch.linspace(1, 1.05, len(intrinsics))[:, None]
    write_colmap_folder(replace(run, result=replace(run.result, intrinsics=intrinsics)), tmp_path / "colmap")
    assert len(read_colmap(tmp_path / "colmap/sparse/0").cameras) == len(run.frames)


def test_where_the_originals_are_gone_working_images_serve(run, clip, images, tmp_path, caplog):
    write_pictures(tmp_path / "in", images, [f"{k:04}.jpg" for k in range(8)])
    gone = finished(
        clip, tmp_path / "in", tmp_path / "run", FramesConfig(intrinsics=stated(clip), max_size=160)
    )
    kept = [gone.frames.pixels.read(k) for k in range(8)]
    shutil.rmtree(tmp_path / "in")

    class Kept:
        def read(self, frame):
            return kept[frame]

        def read_original(self, frame):
            raise InputError("the input is gone")

    gone = replace(gone, frames=replace(gone.frames, pixels=Kept()))
    write_colmap_folder(gone, tmp_path / "colmap")
    assert "working size" in caplog.text
    camera = read_colmap(tmp_path / "colmap/sparse/0").cameras[0]
    assert (camera.width, camera.height) == gone.result.size
    assert reprojection(tmp_path / "colmap").mean() < 0.2
    notes = json.loads((tmp_path / "colmap/geoweaver.json").read_text())
    assert notes["cameras"][0]["images"] == "working"


def test_an_export_is_replaced_but_nothing_else(run, tmp_path):
    write_colmap_folder(run, tmp_path / "colmap")
    (tmp_path / "colmap/stale").touch()
    write_colmap_folder(run, tmp_path / "colmap")
    assert not (tmp_path / "colmap/stale").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/work.txt").touch()
    with pytest.raises(InputError, match="did not export"):
        write_colmap_folder(run, tmp_path / "mine")
    with pytest.raises(InputError, match="is a file"):
        write_colmap_folder(run, tmp_path / "mine/work.txt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["colmap", "mine"]


def test_what_fails_halfway_leaves_nothing(run, tmp_path):
    class Broken:
        def read(self, edge):
            raise InputError("matches are gone")

    with pytest.raises(InputError, match="matches are gone"):
        write_colmap_folder(replace(run, matches=Broken()), tmp_path / "colmap")
    assert not list(tmp_path.iterdir())


def test_the_same_run_gives_the_same_bytes(run, tmp_path):
    for name in ("one", "two"):
        write_colmap_folder(run, tmp_path / name)
    for file in (tmp_path / "one/sparse/0").iterdir():
        assert file.read_bytes() == (tmp_path / "two/sparse/0" / file.name).read_bytes()

from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
import torch
from tiny_world import tiny_world

from geoweaver.errors import ConfigError, InputError
from geoweaver.formats.colmap import read_colmap
from geoweaver.formats.depth import read_depth
from geoweaver.formats.nerfstudio import read_transforms
from geoweaver.formats.tum import read_tum
from geoweaver.synth.clips import Clip, ClipOptions, clip_depth, make_clip, render_clip, render_frame
from geoweaver.synth.effects import Effects
from geoweaver.synth.sequence import Output, depth_unit, is_written, write_sequence
from geoweaver.synth.world import World

SMALL = ClipOptions(frames=4, size=(96, 54), laps=0.2)


@pytest.fixture(scope="module")
def world() -> World:
    return tiny_world()


@pytest.fixture(scope="module")
def clip(world: World) -> Clip:
    effects = Effects(distortion=(-0.1, 0.02, 0, 0, 0), noise=2.0, shutter=0.4, blur_samples=2, readout=0.3)
    return make_clip(
        world, ClipOptions(frames=4, size=(96, 54), laps=0.2, effects=effects, movers=True, zoom=1.3)
    )


def test_a_folder_holds_images_and_the_truth_in_every_format(clip: Clip, tmp_path: Path) -> None:
    write_sequence(clip, tmp_path, Output(images="png", depth="npz"))
    for frame in range(4):
        shown = render_frame(clip, frame)
        read = cv2.imread(str(tmp_path / "images" / f"frame_{frame:05d}.png"))[..., ::-1]
        assert np.array_equal(read, shown.rgb)
        depth = read_depth(tmp_path / "depth" / f"frame_{frame:05d}.npz")
        assert torch.equal(depth, shown.depth.float())
        mask = cv2.imread(str(tmp_path / "masks" / f"frame_{frame:05d}.png"), cv2.IMREAD_GRAYSCALE)
        assert np.array_equal(mask == 0, shown.moving.numpy())
    trajectory = read_tum(tmp_path / "groundtruth.tum")
    assert trajectory.index.tolist() == [0, 1, 2, 3]
    assert torch.allclose(trajectory.cam_from_world.matrix(), clip.cam_from_world.matrix(), atol=1e-12)
    model, scene = read_colmap(tmp_path / "sparse" / "0"), read_transforms(tmp_path / "transforms.json")
    for cameras in (model.cam_from_world, scene.cam_from_world):
        assert torch.allclose(cameras.matrix(), clip.cam_from_world.matrix(), atol=1e-9)
    for file in (model, scene):
        focal = torch.tensor([file.cameras[int(k)].params[0] for k in file.camera], dtype=torch.float64)
        assert torch.allclose(focal, clip.intrinsics[:, 0])
        assert file.cameras[0].model == "OPENCV"


def test_depth_as_png_is_right_to_half_its_unit(world: World, tmp_path: Path) -> None:
    clip = make_clip(world, SMALL)
    write_sequence(clip, tmp_path, Output(images="jpg", depth="png", depth_every=2))
    assert sorted(p.name for p in (tmp_path / "depth").iterdir()) == ["frame_00000.png", "frame_00002.png"]
    off = (read_depth(tmp_path / "depth" / "frame_00002.png") - render_frame(clip, 2).depth).abs()
    assert off.max() <= 0.501 * depth_unit(clip)
    assert not (tmp_path / "masks").exists()


def test_a_video_has_every_frame_at_its_time(world: World, tmp_path: Path) -> None:
    clip = make_clip(world, ClipOptions(frames=7, size=(96, 54), laps=0.2, fps=12.5))
    write_sequence(clip, tmp_path, Output(images="mp4", depth="none"))
    with av.open(str(tmp_path / "video.mp4")) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
    assert len(frames) == 7
    assert [float(f.time) for f in frames] == pytest.approx(clip.timestamps.tolist(), abs=1e-3)
    assert read_tum(tmp_path / "groundtruth.tum").timestamps.tolist() == pytest.approx(
        clip.timestamps.tolist()
    )
    loss = np.abs(frames[3].to_ndarray(format="rgb24").astype(float) - render_frame(clip, 3).rgb)
    assert loss.mean() < 6, "nearly lossless, but for the halved colour resolution"


def test_the_number_of_workers_changes_no_byte(clip: Clip, tmp_path: Path) -> None:
    for workers in (1, 2):
        write_sequence(clip, tmp_path / str(workers), Output(images="png", workers=workers))
    files = sorted(
        p.relative_to(tmp_path / "1")
        for p in (tmp_path / "1").rglob("*")
        if p.suffix in (".png", ".tum", ".json")
    )
    assert len(files) == 4 + 4 + 3
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes(), file


def test_depth_only_rendering_is_the_depth_of_the_pictures(world: World) -> None:
    clip = make_clip(world, SMALL)
    for depth, shown in zip(clip_depth(clip), render_clip(clip), strict=True):
        assert torch.equal(depth, shown.depth)
    half = list(clip_depth(clip, size=(48, 27)))
    assert half[0].shape == (27, 48)


def test_zoom_and_exposure_change_over_time(world: World) -> None:
    clip = make_clip(world, ClipOptions(frames=60, zoom=1.5, exposure_swing=2.0))
    focal = clip.intrinsics[:, 0] / clip.size[0]
    assert float(focal.min()) == pytest.approx(0.72, rel=1e-3)
    assert float(focal.max()) == pytest.approx(0.72 * 1.5, rel=0.01)
    assert 0.5 <= clip.exposure.min() < 0.8 and 1.25 < clip.exposure.max() <= 2.0


def test_impossible_clips_and_outputs_are_refused_in_words(world: World, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give 2 frames"):
        make_clip(world, ClipOptions(frames=1))
    with pytest.raises(InputError, match="even width"):
        write_sequence(make_clip(world, ClipOptions(frames=2, size=(95, 54))), tmp_path, Output(images="mp4"))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="check the output path"):
        write_sequence(make_clip(world, SMALL), tmp_path / "file")


def test_a_film_of_another_length_or_seed_is_another_film(world: World, tmp_path: Path) -> None:
    clip = make_clip(world, SMALL)
    write_sequence(clip, tmp_path, Output(images="mp4", depth="none"))
    assert is_written(make_clip(world, SMALL), tmp_path)
    assert not is_written(make_clip(world, replace(SMALL, frames=6)), tmp_path)
    assert not is_written(make_clip(world, replace(SMALL, seed=1)), tmp_path)
    (tmp_path / "sequence.json").unlink()
    assert not is_written(clip, tmp_path)

"""A recording through a bending lens, without calibration: rectified once, and opened again the same way."""

from pathlib import Path

import numpy as np
import pytest
import torch

from geoweaver.engine import LocalEngine
from geoweaver.export.pictures import image_box
from geoweaver.features import FeatureConfig
from geoweaver.finished import RunInput
from geoweaver.frames import FramesConfig, open_frames
from geoweaver.geometry.distortion import Lens, distort_points
from geoweaver.priors.lens import LensConfig
from geoweaver.store import Store
from geoweaver.straightening import straighten
from geoweaver.synth.clips import ClipOptions, make_clip
from geoweaver.synth.effects import Effects
from geoweaver.synth.sequence import Output, write_sequence
from geoweaver.synth.world import build_world

OPTIONS = FramesConfig(max_size=288)
SIZE = (320, 240)
K1, K2 = -0.18, 0.03


def rendered(folder: Path, distortion: tuple[float, ...]) -> Path:
    """A walk around a table, 20 images."""
    effects = Effects(distortion=(*distortion, 0.0, 0.0, 0.0))
    clip = make_clip(
        build_world("tabletop"), ClipOptions(frames=20, size=SIZE, laps=0.3, focal=0.7, effects=effects)
    )
    write_sequence(clip, folder, Output(depth="none"))
    return folder / "images"


@pytest.fixture(scope="module")
def bent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rendered(tmp_path_factory.mktemp("bent"), (K1, K2))


def test_a_bent_recording_is_rectified_and_opened_again(bent: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "work") as store:
        before = open_frames(bent, OPTIONS)
        given = (before, OPTIONS, LensConfig(), FeatureConfig(), store, LocalEngine())
        frames = straighten(*given)
        again = straighten(*given)
    camera = frames.cameras[0]
    assert camera.model == "RADIAL" and not camera.calibrated
    assert any("distortion" in note for note in frames.notes)
    assert frames.digests == again.digests and frames.digests != before.digests
    # where the found lens shows what a pinhole would see near the corner, beside where it really is
    truth = Lens("RADIAL", (224.0, 160.0, 120.0, K1, K2), SIZE)
    found = Lens(camera.model, camera.params, SIZE)
    ideal = torch.tensor([[32.0, 32.0], [160.0, 16.0], [264.0, 208.0]], dtype=torch.float64)
    real = [
        distort_points(ideal, lens, torch.tensor([224.0, 224.0, 160.0, 120.0])) for lens in (truth, found)
    ]
    straight = (real[0] - ideal).norm(dim=-1)
    off = real[1] - real[0]
    # a common shift is no bending: the principal point and the camera's turn explain each other
    assert ((off - off.mean(0)).norm(dim=-1) < 0.3 * straight).all() and off.norm(dim=-1).max() < 4
    opened = RunInput(bent, OPTIONS, frames.digests, frames.cameras)
    assert frames.pixels is not None
    assert np.array_equal(opened.read(5), frames.pixels.read(5))
    assert opened.read_original(5).shape == (240, 320, 3)
    # the export's undistorted original covers the working image
    assert image_box(camera) == pytest.approx((0, 0, *frames.size), abs=1.5)


def test_straight_images_stay_as_they_are(tmp_path: Path) -> None:
    folder = rendered(tmp_path / "straight", (0.0, 0.0))
    with Store.open(tmp_path / "work") as store:
        before = open_frames(folder, OPTIONS)
        frames = straighten(before, OPTIONS, LensConfig(), FeatureConfig(), store, LocalEngine())
    assert list((tmp_path / "work").rglob("*camera-000*")), "the verdict is kept"
    assert frames is before


def test_a_calibrated_camera_is_not_asked(bent: Path, tmp_path: Path) -> None:
    options = FramesConfig(intrinsics="224,224,159.5,119.5,-0.1,0")
    with Store.open(tmp_path / "work") as store:
        before = open_frames(bent, options)
        assert straighten(before, options, LensConfig(), FeatureConfig(), store, LocalEngine()) is before

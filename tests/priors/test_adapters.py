"""Every model's conventions end in one: a known scene comes out the same through all of them."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import PACKAGES, SIZE, Scene, StandInGPM, featureless, install, make_scene

from geoweaver.datatypes import Chunk, ChunkPrior
from geoweaver.errors import ConfigError
from geoweaver.geometry.camera import lift, pixel_centres, resize_intrinsics
from geoweaver.models import FAMILIES
from geoweaver.priors import Prediction, PriorModel, SavedPrior, as_priors, find_prior, write_saved
from geoweaver.priors import network as network_module
from geoweaver.priors.gpm import GpmNetwork, gpm_size
from geoweaver.priors.memory import Room
from geoweaver.priors.network import NetworkContext, NetworkPrior
from geoweaver.priors.views import read_views

CHUNK = Chunk(0, (0, 1, 2, 3))
CONFIG = FAMILIES["da3-small"]
NAMES = [*PACKAGES, "gpm", "saved"]


def told(name: str, scene: Scene, folder: Path, calibrated: bool = False) -> ChunkPrior:
    """What a model's stand-in tells of the scene, through its adapter."""
    frames = scene.frames(calibrated)
    if name == "saved":
        return saved(scene, folder)
    if name == "gpm":
        views, rows = read_views(frames, CHUNK, gpm_size(frames.size))
        return one(as_priors(GpmNetwork(StandInGPM(scene), CONFIG, "cpu")(views), frames, rows))
    with pytest.MonkeyPatch.context() as patch:
        network_module._loaded.cache_clear()
        install(name, scene, patch.setitem)
        prior = find_prior(name)
        assert isinstance(prior, PriorModel)
        context = prior.prepare(frames, [CHUNK], featureless)
        assert isinstance(pickle.loads(pickle.dumps(prior)), NetworkPrior)
        return one(prior.predict(CHUNK, context))


def saved(scene: Scene, folder: Path) -> ChunkPrior:
    """A foreign writer's plain arrays, in a size and a scale of confidence of its own."""
    size, frames = (120, 80), scene.frames()
    np.savez(
        folder / "chunk.npz",
        name=np.array([Path(name).stem for name in frames.names]),
        depth=(scene.depth_at(size) / scene.unit).numpy(),
        confidence=17 * scene.doubt_at(size).exp().numpy(),
        world_from_cam=scene.cam_from_model.inverse().matrix().numpy(),
        intrinsics=scene.intrinsics_at(size).numpy(),
    )
    prior = SavedPrior(folder)
    context = prior.prepare(frames, [CHUNK], featureless)
    return one(prior.predict(CHUNK, context))


def one(priors: list[ChunkPrior]) -> ChunkPrior:
    assert len(priors) == 1
    return priors[0]


def assert_tells_the_scene(prior: ChunkPrior, scene: Scene) -> None:
    """Cameras, lens, depth and confidence are the scene's, whatever the gauge."""
    assert prior.frame.tolist() == list(CHUNK.frames)
    size = (prior.depth.shape[2], prior.depth.shape[1])
    truth, mine = scene.cam_from_world, prior.cam_from_chunk
    turn = mine.rotation[0].mT @ truth.rotation[0]
    assert (mine.rotation @ turn - truth.rotation).abs().max() < 1e-5
    steps, true_steps = (c.centre - c.centre[0] for c in (mine, truth))
    assert (steps @ turn * scene.unit - true_steps).abs().max() < 1e-4
    assert torch.allclose(prior.intrinsics, scene.intrinsics_at(size).expand(4, 4), rtol=1e-4)
    assert torch.allclose(prior.depth.double() * scene.unit, scene.depth_at(size), rtol=1e-4)
    # the lifted points of all views lie on the plane, seen from the first camera
    points = lift(
        pixel_centres(*size).expand(4, -1, -1, -1),
        prior.depth.double() * scene.unit,
        prior.intrinsics[:, None, None],
    )
    world = mine.inverse()
    lifted = torch.einsum("nij,nhwj->nhwi", turn.T @ world.rotation, points) + true_steps[:, None, None]
    plane = (lifted + truth.centre[0]) @ scene.normal
    assert (plane - scene.distance).abs().max() < 1e-2
    doubt = scene.doubt_at(size)
    assert torch.allclose(prior.confidence.double(), (doubt - doubt.median()).sigmoid(), atol=2e-3)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_a_known_scene_comes_out_the_same(
    name: str, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    scene = make_scene(seed)
    assert_tells_the_scene(told(name, scene, tmp_path_factory.mktemp("saved")), scene)


@pytest.mark.parametrize("name", ["gpm", "vggt", "pi3"])
def test_given_intrinsics_win_over_predicted_ones(name: str, tmp_path: Path) -> None:
    scene = make_scene(3)
    calibration = replace(scene, intrinsics=scene.intrinsics * 1.1)
    prior = told(name, replace(scene, intrinsics=scene.intrinsics), tmp_path)
    frames = calibration.frames(calibrated=True)
    size = (prior.depth.shape[2], prior.depth.shape[1])
    told_again = as_priors(
        Prediction(
            prior.depth, prior.confidence, prior.cam_from_chunk, prior.intrinsics, torch.ones(4).bool()
        ),
        frames,
        CHUNK.frames,
    )
    expected = resize_intrinsics(calibration.intrinsics, SIZE, size)
    assert torch.allclose(told_again[0].intrinsics, expected.expand(4, 4))


@pytest.mark.parametrize(("name", "origin"), [("pi3x", 0.5), ("mapanything", 0.5)])
def test_known_intrinsics_and_cameras_are_passed_on(
    name: str, origin: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, frames = make_scene(5), make_scene(5).frames(calibrated=True)
    network_module._loaded.cache_clear()
    model = install(name, scene, monkeypatch.setitem)
    prior = find_prior(name)
    known = {k: scene.cam_from_world[k] for k in range(4)}
    assert isinstance(prior, NetworkPrior)
    context = NetworkContext(frames, featureless, "anywhere", "digest", Room("cpu", 1, 10**12), known)
    out = one(prior.predict(CHUNK, context))
    size = (out.depth.shape[2], out.depth.shape[1])
    centred = scene.intrinsics_at(size)[2:] - origin
    assert torch.allclose(model.asked["intrinsics"][0].reshape(-1, 3, 3)[0, :2, 2].double(), centred)
    poses = model.asked["poses" if name == "pi3x" else "camera_poses"].double().reshape(-1, 4, 4)
    assert torch.allclose(poses[0], scene.cam_from_world[0].inverse().matrix(), atol=1e-5)
    # the given cameras come back, with depth in their unit
    assert torch.allclose(out.cam_from_chunk.matrix(), scene.cam_from_world.matrix())
    assert torch.allclose(out.depth.double(), scene.depth_at(size), rtol=1e-4)


def test_known_cameras_condition_the_gpm() -> None:
    scene = make_scene(6)
    frames = scene.frames(calibrated=True)
    model = StandInGPM(scene)
    known = {k: scene.cam_from_world[k] for k in range(4)}
    views, _ = read_views(frames, CHUNK, gpm_size(SIZE), known)
    GpmNetwork(model, CONFIG, "cpu")(views)
    first = model.asked["cam_from_world"][0, 0]
    assert torch.allclose(first, torch.eye(4)[:3], atol=1e-5)
    views, _ = read_views(scene.frames(), CHUNK, gpm_size(SIZE), known)
    GpmNetwork(model, CONFIG, "cpu")(views)
    assert model.asked == {}, "without intrinsics the encoder cannot be told"


@pytest.mark.parametrize("name", list(PACKAGES))
def test_a_missing_package_is_named_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=r"pip install git\+https") as caught:
        find_prior(name)
    assert "\n" not in str(caught.value)


def test_a_prior_that_takes_no_cameras_refuses_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install("vggt", make_scene(0), monkeypatch.setitem)
    prior = find_prior("vggt", poses=tmp_path / "poses.tum")
    with pytest.raises(ConfigError, match="takes no known cameras"):
        prior.prepare(make_scene(0).frames(), [CHUNK], featureless)
    with pytest.raises(ConfigError, match="takes no known cameras"):
        find_prior("sfm", poses=tmp_path / "poses.tum")


def test_known_cameras_are_found_by_name_and_by_index(tmp_path: Path) -> None:
    from geoweaver.datatypes import Trajectory
    from geoweaver.formats.tum import write_tum
    from geoweaver.priors.known_cameras import known_cameras

    scene = make_scene(2)
    write_tum(tmp_path / "poses.tum", Trajectory(scene.cam_from_world, torch.arange(4)))
    found = known_cameras(tmp_path / "poses.tum", scene.frames())
    assert sorted(found) == [0, 1, 2, 3]
    assert torch.allclose(found[2].matrix(), scene.cam_from_world[2].matrix(), atol=1e-6)


def test_known_cameras_are_counted_among_all_images(tmp_path: Path) -> None:
    from geoweaver.datatypes import Trajectory
    from geoweaver.formats.kitti import write_kitti
    from geoweaver.priors.known_cameras import known_cameras

    scene = make_scene(2)
    write_kitti(tmp_path / "poses.txt", Trajectory(scene.cam_from_world, torch.arange(4)))
    frames = replace(scene.frames(), chosen=(1, 3, 5, 7))
    found = known_cameras(tmp_path / "poses.txt", frames)
    assert sorted(found) == [0, 1]
    assert torch.allclose(found[1].matrix(), scene.cam_from_world[3].matrix(), atol=1e-6)


def test_a_gap_in_the_known_cameras_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from geoweaver.datatypes import Trajectory
    from geoweaver.formats.tum import write_tum

    scene = make_scene(2)
    install("mapanything", scene, monkeypatch.setitem)
    write_tum(tmp_path / "poses.tum", Trajectory(scene.cam_from_world[:3], torch.arange(3)))
    prior = find_prior("mapanything", poses=tmp_path / "poses.tum")
    caplog.clear()
    prior.prepare(scene.frames(), [Chunk(0, (0, 1, 2)), Chunk(1, (2, 3))], featureless)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "1 of 2 lack some, such as images/003.png, and go without" in line
    caplog.clear()
    prior.prepare(replace(scene.frames(), broken=(3,)), [CHUNK], featureless)
    assert not caplog.records


def test_what_the_writer_writes_reads_back(tmp_path: Path) -> None:
    scene = make_scene(1)
    prior = saved(scene, tmp_path)
    (tmp_path / "chunk.npz").unlink()
    names = scene.frames().names
    write_saved(tmp_path / "again.npz", names, prior)
    reader = SavedPrior(tmp_path)
    context = reader.prepare(scene.frames(), [CHUNK], featureless)
    again = one(reader.predict(CHUNK, context))
    assert torch.equal(again.depth, prior.depth) and torch.equal(again.frame, prior.frame)
    assert torch.allclose(again.cam_from_chunk.matrix(), prior.cam_from_chunk.matrix())
    # put on the common scale once more: the order stays, and so does the typical pixel
    first, second = prior.confidence.flatten(), again.confidence.flatten()
    assert (second[first.argsort()].diff() >= -1e-6).all()
    assert abs(float(second.median()) - 0.5) < 1e-3

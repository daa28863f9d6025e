"""The GPM as a prior: weights from a folder as on the hub, sizes, broken predictions, memory."""

import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch
from stand_ins import SIZE, featureless, make_scene

from geoweaver.datatypes import Chunk, ChunkPrior
from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.models import FAMILIES, GPM, save_gpm
from geoweaver.models.checkpoint import describe
from geoweaver.models.families import GPMConfig
from geoweaver.priors import find_prior, memory
from geoweaver.priors import network as network_module
from geoweaver.priors.da3 import _cached
from geoweaver.priors.memory import Footprint, Room, measure_room, too_large
from geoweaver.priors.network import NetworkPrior

TINY = GPMConfig(64, 6, 2, 2, (2, 3, 4, 5), 16, (8, 16, 24, 32))
MONO = GPMConfig(64, 6, 2, -1, (2, 3, 4, 5), 16, (8, 16, 24, 32), camera_head="none", pose_conditioning=False)
CHUNK = Chunk(0, (0, 1, 2, 3))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    network_module._loaded.cache_clear()


def checkpoint(folder: Path, config: GPMConfig = TINY, field_of_view: float | None = None) -> Path:
    torch.manual_seed(0)
    model = GPM(config)
    if field_of_view is not None:
        with torch.no_grad():
            model.cam_dec.fc_fov[0].weight.zero_()  # type: ignore[index, union-attr]
            model.cam_dec.fc_fov[0].bias.fill_(field_of_view)  # type: ignore[index, union-attr]
    save_gpm(model, folder)
    return folder


def predict(name: str, calibrated: bool = False, workers: int = 1) -> list[ChunkPrior]:
    prior = find_prior(name)
    frames = make_scene(0).frames(calibrated)
    context = prior.prepare(frames, [CHUNK] * workers, featureless, workers)
    prior, context = pickle.loads(pickle.dumps((prior, context)))
    return prior.predict(CHUNK, context)


def test_a_folder_as_on_the_hub_predicts_every_frame(tmp_path: Path) -> None:
    (prior,) = predict(f"gpm:{checkpoint(tmp_path)}")
    assert prior.frame.tolist() == [0, 1, 2, 3]
    assert prior.depth.shape == (4, 336, 504) and (prior.depth > 0).all()
    assert torch.allclose(prior.intrinsics[:, 2:], torch.tensor([252.0, 168.0]).double())
    assert float(prior.confidence.min()) >= 0 and float(prior.confidence.max()) <= 1


def test_given_intrinsics_are_kept(tmp_path: Path) -> None:
    (prior,) = predict(f"gpm:{checkpoint(tmp_path)}", calibrated=True)
    scene = make_scene(0)
    assert torch.allclose(prior.intrinsics, scene.intrinsics_at((504, 336)).expand(4, 4))


def test_a_head_that_gives_up_is_left_out_rather_than_woven(tmp_path: Path) -> None:
    assert predict(f"gpm:{checkpoint(tmp_path, field_of_view=-1.0)}") == []


def test_a_monocular_model_makes_a_piece_of_every_frame(tmp_path: Path) -> None:
    priors = predict(f"gpm:{checkpoint(tmp_path, MONO)}", calibrated=True)
    assert [p.frame.tolist() for p in priors] == [[0], [1], [2], [3]]
    assert torch.allclose(priors[0].intrinsics[0], make_scene(0).intrinsics_at((504, 336)))


def test_broken_frames_are_not_looked_at(tmp_path: Path) -> None:
    from dataclasses import replace

    prior = find_prior(f"gpm:{checkpoint(tmp_path)}")
    frames = replace(make_scene(0).frames(), broken=(1,))
    context = prior.prepare(frames, [CHUNK], featureless)
    (out,) = prior.predict(CHUNK, context)
    assert out.frame.tolist() == [0, 2, 3]


def test_other_weights_are_another_identity(tmp_path: Path) -> None:
    def identity(folder: Path) -> object:
        context = find_prior(f"gpm:{folder}").prepare(make_scene(0).frames(), [], featureless)
        return context.identity()

    one, moved = checkpoint(tmp_path / "a"), checkpoint(tmp_path / "b")
    assert identity(one) == identity(moved), "the place of the weights does not matter"
    assert identity(one) != identity(checkpoint(tmp_path / "c", field_of_view=1.0))


def test_the_wrong_family_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    with pytest.raises(FormatError, match="da3-small"):
        predict(f"da3-small:{tmp_path}")


def test_mono_and_metric_are_told_apart_by_their_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_name": "depth-anything/DA3MONO-LARGE"}')
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(FormatError, match=r"config\.json: names da3mono-large, not da3metric-large"):
        find_prior(f"da3-metric:{tmp_path}")
    assert describe(tmp_path, "da3mono-large")[0] == "da3mono-large"


@pytest.mark.parametrize("kind", ["gpm", "da3-small"])
@pytest.mark.parametrize("change", ["cut off", "of another size", "of no network"])
def test_weights_that_do_not_fit_are_refused_before_any_work(kind: str, change: str, tmp_path: Path) -> None:
    file = checkpoint(tmp_path) / "model.safetensors"
    if change == "cut off":
        file.write_bytes(file.read_bytes()[:-1000])
    elif change == "of no network":
        safetensors.torch.save_file({"a": torch.zeros(3)}, file)
    else:
        state = safetensors.torch.load_file(file)
        safetensors.torch.save_file({name: value[:1].clone() for name, value in state.items()}, file)
    with pytest.raises(FormatError, match=r"model\.safetensors") as caught:
        find_prior(f"{kind}:{tmp_path}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "words"), [("gpm", "gpm:FOLDER"), ("gpm:/nowhere", "no such checkpoint")])
def test_missing_weights_are_said_at_once(name: str, words: str) -> None:
    with pytest.raises((ConfigError, InputError), match=words):
        find_prior(name)


def test_a_checkpoint_with_conditions_must_be_fetched_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geoweaver.priors import da3

    def nothing_cached(name: str, **how: object) -> Path:
        raise InputError("not there")

    monkeypatch.setattr(da3, "fetch", nothing_cached)
    with pytest.raises(InputError, match=r"geoweaver models fetch da3-giant-1\.1 --accept-licence"):
        find_prior("da3-giant")


def test_a_download_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    (tmp_path / "config.json").write_text('{"model_name": "da3-small"}')

    def download(repository: str, *, local_files_only: bool, **how: object) -> str:
        if not local_files_only:
            (tmp_path / "model.safetensors").write_bytes(b"the rest")
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert _cached("da3-small") == tmp_path and (tmp_path / "model.safetensors").exists()


def test_a_chunk_that_does_not_fit_names_the_largest_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"gpm:{checkpoint(tmp_path)}"
    monkeypatch.setattr(memory, "free_memory", lambda device: 10**6)
    with pytest.raises(ConfigError, match="no chunk fits"):
        predict(name)
    prior = find_prior(name)
    assert isinstance(prior, NetworkPrior)
    footprint = prior.source.load(str(tmp_path), "cpu").footprint((504, 336))
    monkeypatch.setattr(memory, "free_memory", lambda device: int(footprint.of(3) / 0.9) + 1000)
    with pytest.raises(ConfigError, match="--chunk-size 3 or less") as caught:
        predict(name)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="2 workers"):
        predict(name, workers=2)


def test_memory_is_measured_once_before_the_weights_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = find_prior(f"gpm:{checkpoint(tmp_path)}")
    context = prior.prepare(make_scene(0).frames(), [CHUNK], featureless, workers=8)
    assert context.room.workers == 1, "one chunk needs no more than one worker"
    # another worker has loaded its network by now
    monkeypatch.setattr(memory, "free_memory", lambda device: 10**6)
    assert len(prior.predict(CHUNK, context)) == 1


def test_a_gpu_is_not_shared_and_torchs_idle_memory_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 2 * 10**9))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 5 * 10**8)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 2 * 10**8)
    assert measure_room("cuda", 16) == Room("cuda", 1, int(0.9 * 1.3 * 10**9))


def test_the_pipeline_counts_one_worker_on_a_gpu() -> None:
    from geoweaver.pipeline import Config, _workers

    config = Config(workers=16)
    assert _workers(config, NetworkPrior("gpm", device="cuda")) == 1
    assert _workers(config, NetworkPrior("gpm", device="cpu")) == 16


def test_an_allocators_refusal_becomes_the_same_words() -> None:
    footprint = Footprint(1000, 100)

    def run(error: Exception) -> None:
        with memory.saying_what_fits(60, footprint, Room("cpu", 1, 10**12)):
            raise error

    for error in (
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("can't allocate memory"),
    ):
        with pytest.raises(ConfigError, match="--chunk-size 59 or less"):
            run(error)
    with pytest.raises(RuntimeError, match="a bug"):
        run(RuntimeError("a bug"))


def test_the_largest_chunk_is_the_largest() -> None:
    footprint = Footprint(1000, 100)
    most = footprint.most_views(5050)
    assert footprint.of(most) <= 5050 < footprint.of(most + 1)
    assert "no chunk fits" in str(too_large(10, footprint, Room("cpu", 1, 1200)))
    assert memory.free_memory("cpu") > 10**8


def test_every_family_has_a_name() -> None:
    from geoweaver.models.families import NESTED, family_name
    from geoweaver.priors.da3 import PUBLISHED

    assert {family_name(name) for name in PUBLISHED.values()} == {*FAMILIES, NESTED}
    assert SIZE == (240, 160)

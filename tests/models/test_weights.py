"""Checkpoint files: every key has its place, and what is missing, left over or odd is named."""

import json
import re
from pathlib import Path

import pytest
import safetensors.torch
import torch
from da3_layout import TINY, golden, tiny_state
from torch import Tensor

from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.models import build_gpm, load_gpm, load_gpm_folder, save_gpm
from geoweaver.models.checkpoint import read_config
from geoweaver.models.families import FAMILIES, config_as_mapping
from geoweaver.models.weights import read_state

_NORM = "head.scratch.output_conv2_aux.0.2.weight"


def _as_on_the_hub() -> dict[str, Tensor]:
    """DA3's files carry `model.` and store the shared norm once."""
    copies = re.compile(r"output_conv2_aux\.[123]\.2\.")
    return {f"model.{k}": v.contiguous() for k, v in tiny_state().items() if not copies.search(k)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hub")
    safetensors.torch.save_file(_as_on_the_hub(), path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"model_name": "gpm", "gpm": TINY}))
    return path


def test_folder_loads_and_fills_the_shared_norm(folder: Path) -> None:
    network = load_gpm_folder(folder)
    reference = golden("da3_tiny.npz")
    with torch.inference_mode():
        output = network(reference["v2/in"], rays=True)
    torch.testing.assert_close(output.ray, reference["v2/ray"], rtol=1e-5, atol=1e-5)


def test_what_is_saved_is_read_back(folder: Path, tmp_path: Path) -> None:
    network = load_gpm_folder(folder)
    save_gpm(network, tmp_path / "copy")
    again = load_gpm_folder(tmp_path / "copy")
    assert again.config == network.config
    ours, theirs = again.state_dict(), network.state_dict()
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)
    stored = read_state(tmp_path / "copy" / "model.safetensors")
    assert stored.keys() == _as_on_the_hub().keys()


def test_saved_families_keep_their_names(tmp_path: Path) -> None:
    for name, config in FAMILIES.items():
        (tmp_path / "config.json").write_text(
            json.dumps({"model_name": name, "gpm": config_as_mapping(config)})
        )
        assert read_config(tmp_path / "config.json") == name


def test_half_precision_files_become_float32() -> None:
    state = {key: value.half() for key, value in tiny_state().items()}
    assert {p.dtype for p in load_gpm(TINY, state).parameters()} == {torch.float32}


def test_the_network_owns_its_weights() -> None:
    state = tiny_state()
    network = load_gpm(TINY, state)
    with torch.no_grad():
        network.head.norm.weight.zero_()
    assert bool(state["head.norm.weight"].any())


def _old_name(key: str) -> str:
    """The names that DA3's training files had."""
    key = re.sub(r"^backbone\.", "net.", key).replace("camera_token", "camera_token_extra")
    key = re.sub(r"^cam_dec\.backbone\.", "cam_dec.more_mlps.", key).replace("fc_qvec", "fc_rot")
    key = re.sub(r"^cam_dec\.", "all_heads.camera_head.", key)
    key = re.sub(r"^cam_enc\.", "all_heads.camera_cond_head.", key)
    return "module." + re.sub(r"^head\.", "all_heads.head.", key).replace("_aux.", "_ray.")


def test_old_files_with_old_names_load(tmp_path: Path) -> None:
    state = {_old_name(key): value for key, value in tiny_state().items()}
    state["module.net.pretrained.camera_token"] = torch.full((1, 2, 64), 9.0)  # beside the one that counts
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "old.pth")
    network = load_gpm(TINY, read_state(tmp_path / "old.pth"))
    expected = tiny_state()
    for key, value in network.state_dict().items():
        assert torch.equal(value, expected[key]), key


def test_old_sky_names_load() -> None:
    network = build_gpm(TINY | {"alt_start": -1})
    state = {
        k.replace("sky_output_conv2", "output_conv2_additional.sky_mask"): v
        for k, v in network.state_dict().items()
    }
    load_gpm(
        TINY | {"alt_start": -1},
        {f"net{k[8:]}" if k.startswith("backbone") else k: v for k, v in state.items()},
    )


def test_missing_keys_are_named() -> None:
    state = tiny_state()
    del state["cam_dec.fc_t.bias"]
    with pytest.raises(FormatError, match=r"missing: cam_dec\.fc_t\.bias$"):
        load_gpm(TINY, state)


def test_shared_norm_cannot_be_missing_altogether() -> None:
    state = {k: v for k, v in tiny_state().items() if not re.search(r"output_conv2_aux\.\d\.2\.weight", k)}
    with pytest.raises(FormatError, match=re.escape(_NORM)):
        load_gpm(TINY, state)


def test_left_over_keys_are_named_and_counted() -> None:
    extra = {f"surprise.{i}": torch.zeros(1) for i in range(9)}
    with pytest.raises(FormatError, match=r"does not have: surprise\.0, .* and 3 more$"):
        load_gpm(TINY, tiny_state() | extra)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(4), r"another size: cam_dec\.fc_t\.bias \[4\] instead of \[3\]"),
        (torch.tensor([0.0, float("nan"), 0.0]), r"not finite: cam_dec\.fc_t\.bias"),
        (torch.zeros(3, dtype=torch.int64), r"not floating point: cam_dec\.fc_t\.bias"),
    ],
)
def test_damaged_tensors_are_named(value: Tensor, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        load_gpm(TINY, tiny_state() | {"cam_dec.fc_t.bias": value})


def test_two_names_for_one_weight_are_refused() -> None:
    state = tiny_state()
    with pytest.raises(FormatError, match="both stand for"):
        load_gpm(TINY, state | {"model.cam_dec.fc_t.bias": state["cam_dec.fc_t.bias"]})


def test_splats_of_the_giant_are_left_aside_and_nothing_else() -> None:
    load_gpm(TINY, tiny_state() | {"model.gs_head.projects.0.weight": torch.zeros(1)})
    with pytest.raises(FormatError, match=r"gs_heads\.x"):
        load_gpm(TINY, tiny_state() | {"gs_heads.x": torch.zeros(1)})


def test_a_part_can_start_fresh() -> None:
    config = TINY | {"camera_head": "transformer"}
    with pytest.raises(FormatError, match="missing: cam_dec"):
        load_gpm(config, tiny_state())
    network = load_gpm(config, tiny_state(), fresh=("cam_dec.",))
    assert torch.equal(network.head.norm.weight, tiny_state()["head.norm.weight"])
    assert not any(p.is_meta for p in network.parameters())


def test_folders_without_weights_or_with_several(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no weight file"):
        load_gpm_folder(tmp_path)
    for name in ("a.pth", "b.pth"):
        torch.save({"x": torch.zeros(1)}, tmp_path / name)
    with pytest.raises(InputError, match="2 weight files"):
        load_gpm_folder(tmp_path)
    with pytest.raises(InputError, match="no such checkpoint"):
        load_gpm_folder(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="fit no known family"):
        load_gpm_folder(tmp_path / "a.pth")


def _net(**changes: object) -> dict[str, object]:
    net = {"name": "vitb", "out_layers": [5, 7, 9, 11], "alt_start": 4, "qknorm_start": 4, "rope_start": 4}
    return net | {"cat_token": True} | changes


_HEAD = {"dim_in": 1536, "output_dim": 2, "features": 128, "out_channels": [96, 192, 384, 768]}


def test_config_as_on_the_hub(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_name": "da3-small", "config": {"net": _net(), "head": _HEAD}}))
    assert read_config(file) == "da3-small"
    file.write_text(
        json.dumps({"model_name": "mine", "config": {"net": _net(), "head": _HEAD, "cam_dec": {}}})
    )
    config = read_config(file)
    assert not isinstance(config, str) and (config.dim, config.camera_head) == (768, "mlp")
    assert not config.pose_conditioning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "JSON object"),
        ("{}", "names no model"),
        ('{"model_name": "da3-huge"}', "unknown GPM family"),
        ('{"model_name": "x", "config": {}}', "no network of ours"),
        (json.dumps({"config": {"net": _net(rope_start=2), "head": _HEAD}}), "rope_start must equal"),
        (json.dumps({"config": {"net": _net(out_layers=[1]), "head": _HEAD}}), "four entries"),
        (json.dumps({"gpm": {"dim": 64}}), "lacks: alt_start"),
    ],
)
def test_broken_configs_say_where_and_why(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FormatError, match=rf"config\.json: .*{words}"):
        read_config(tmp_path / "config.json")


def test_family_argument_must_be_known(folder: Path) -> None:
    with pytest.raises(ConfigError, match="da3-tiny"):
        load_gpm_folder(folder, family="da3-tiny")

"""`geoweaver models`: the catalogue, licences, the cache, and looking at files."""

import hashlib
import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from da3_layout import TINY, tiny_state
from huggingface_hub import errors

from geoweaver.cli.models import Options, run
from geoweaver.cli.parse import parse
from geoweaver.errors import ConfigError, FormatError, GeoWeaverError, InputError
from geoweaver.models import Salad, hub, load_gpm, save_gpm
from geoweaver.models.families import family_name


def _call(*arguments: str) -> None:
    run(parse(Options, "geoweaver models", arguments))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Stands in for the model hub and keeps what it was asked for."""
    requests: list[dict[str, Any]] = []

    def download(repository: str, **options: Any) -> str:
        requests.append({"repository": repository, **options})
        (tmp_path / "model.safetensors").touch()
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return requests


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    network = load_gpm(TINY, tiny_state())
    save_gpm(network, path)
    return path


def test_every_gpm_of_the_catalogue_is_a_known_family() -> None:
    for entry in hub.CATALOGUE.values():
        if entry.repository:
            assert family_name(entry.name) and entry.repository == f"depth-anything/{entry.name.upper()}"
    not_free = {entry.name for entry in hub.CATALOGUE.values() if not entry.free}
    assert {"da3-large-1.1", "da3-giant", "da3nested-giant-large", "salad"} <= not_free
    assert not_free.isdisjoint({"da3-small", "da3-base", "da3metric-large", "da3mono-large"})


def test_list_names_licences(capsys: pytest.CaptureFixture[str]) -> None:
    _call("list")
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("da3-small ") and "Apache-2.0" in line for line in lines)
    _call("list", "--json")
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(hub.CATALOGUE)


def test_fetch_passes_revision_and_offline_on(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    _call("fetch", "DA3-SMALL", "--revision", "v2", "--offline")
    assert asked[0]["repository"] == "depth-anything/DA3-SMALL"
    assert asked[0]["revision"] == "v2" and asked[0]["local_files_only"] is True
    assert "model.safetensors" in asked[0]["allow_patterns"]
    assert "Apache-2.0" in capsys.readouterr().out


def test_restricted_licence_is_shown_and_must_be_accepted(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match=r"CC-BY-NC-4\.0.*--accept-licence"):
        _call("fetch", "da3-large-1.1")
    assert not asked and "CC-BY-NC-4.0" in capsys.readouterr().out
    _call("fetch", "da3-large-1.1", "--accept-licence")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (errors.LocalEntryNotFoundError("no"), "not in the local cache"),
        (errors.OfflineModeIsEnabled("no"), "not in the local cache"),
        (OSError("disk full"), "disk full"),
        (errors.HTTPError("read timed out"), "read timed out"),
        (errors.HFValidationError("bad name"), "bad name"),
    ],
)
def test_failures_of_the_hub_are_one_line(
    failure: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*_: Any, **__: Any) -> str:
        raise failure

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(InputError, match=words):
        hub.fetch("da3-small")


@pytest.mark.parametrize("offline", [True, False])
def test_a_download_that_was_cut_off_is_not_taken_for_whole(
    offline: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    # an unfinished weight file is a link that leads nowhere
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "blob")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    with pytest.raises(InputError, match=r"model\.safetensors is missing.*models fetch da3-small"):
        hub.fetch("da3-small", offline=offline)


def test_salad_is_one_file_in_torchs_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", lambda url, target: Path(target).write_text(url))
    with pytest.raises(InputError, match="not in the local cache"):
        hub.fetch("salad", accept_licence=True, offline=True)
    with pytest.raises(ConfigError, match="no revisions"):
        hub.fetch("salad", accept_licence=True, revision="v2")
    path = hub.fetch("salad", accept_licence=True)
    assert path.name == "dino_salad.ckpt" and hub.fetch("salad", accept_licence=True, offline=True) == path


@pytest.mark.parametrize(
    "arguments", [("fetch",), ("info",), ("verify",), ("fetch", "nothing-such"), ("burn", "x")]
)
def test_wrong_calls_are_errors_of_the_user(arguments: tuple[str, ...]) -> None:
    with pytest.raises(GeoWeaverError):
        _call(*arguments)


def test_info_and_verify_tell_what_a_folder_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _call("info", str(folder), "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"].startswith("gpm (dim 64") and facts["dtypes"] == "float32" and "sha256" not in facts
    _call("verify", str(folder), "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["loads"] is True
    assert facts["sha256"] == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    _call("info", str(folder))
    assert "parameters" in capsys.readouterr().out


def test_verify_knows_salad(tmp_path: Path) -> None:
    with torch.device("meta"):
        state = Salad().state_dict()
    state = {key: torch.zeros(value.shape, dtype=torch.float16) for key, value in state.items()}
    torch.save(state, tmp_path / "dino_salad.ckpt")
    assert hub.verify(tmp_path / "dino_salad.ckpt")["model"] == "salad"


def test_verify_compares_with_the_hubs_digest(folder: Path, tmp_path: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    for digest, sound in [(hashlib.sha256(content).hexdigest(), True), ("0" * 64, False)]:
        snapshot = tmp_path / digest[:4]
        snapshot.mkdir()
        (snapshot / digest).write_bytes(content)
        (snapshot / "model.safetensors").symlink_to(snapshot / digest)
        (snapshot / "config.json").write_bytes((folder / "config.json").read_bytes())
        if sound:
            assert hub.verify(snapshot)["loads"]
        else:
            with pytest.raises(FormatError, match="not what the model hub published"):
                hub.verify(snapshot)


def test_verify_refuses_weights_of_nothing_known(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1)}, tmp_path / "x.pth")
    assert hub.info(tmp_path / "x.pth")["model"] == "unknown"
    with pytest.raises(FormatError, match="fit no known network"):
        hub.verify(tmp_path / "x.pth")

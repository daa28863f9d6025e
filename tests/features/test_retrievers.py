"""Retrievers by name, and SALAD's descriptors kept frame by frame."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import safetensors.torch
import torch
from test_frame_features import places

from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.features import RETRIEVERS, Retriever, SaladRetriever, compute_features, find_retriever
from geoweaver.features import salad as salad_module
from geoweaver.models import Salad, SaladConfig
from geoweaver.models.vit import ViTConfig
from geoweaver.store import Store, digest_of

TINY = SaladConfig(ViTConfig(48, 2, 2, norm_eps=1e-6), clusters=8, cluster_dim=16, token_dim=24)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small SALAD's weights; the real one's layout is tested with the models."""
    torch.manual_seed(0)
    network = Salad(TINY).eval()
    path = tmp_path / "salad.safetensors"
    safetensors.torch.save_file({k: v.contiguous() for k, v in network.state_dict().items()}, path)
    monkeypatch.setattr(salad_module, "load_salad", lambda file, device="cpu": network)
    monkeypatch.setattr(salad_module, "SIDE", 126)
    salad_module._loaded.cache_clear()
    return path


def test_salad_describes_every_frame_once(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = find_retriever(f"salad:{weights}")
    assert isinstance(retriever, Retriever) and isinstance(retriever, SaladRetriever)
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(), store)
        found = retriever.describe(features, range(12))
        assert found.shape == (12, TINY.descriptor_dim)
        assert torch.allclose(found.norm(dim=1), torch.ones(12), atol=1e-5)
        assert torch.allclose(found[5], described(places().pixels.read(5)), atol=1e-6)  # type: ignore[union-attr]
        assert not torch.allclose(found[5], found[6], atol=1e-3)
        monkeypatch.setattr(salad_module, "describe_images", _fail)
        again = retriever.describe(features, [11, 3])
        assert torch.equal(again, found[[11, 3]])


def described(image: np.ndarray) -> torch.Tensor:
    """By hand: resized, ImageNet-normalised."""
    small = cv2.resize(image, (126, 126), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    normal = (small - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    with torch.inference_mode():
        return salad_module._loaded("", "", "cpu").forward(torch.from_numpy(normal).permute(2, 0, 1)[None])[0]


def _fail(*_: object) -> None:
    raise AssertionError("described twice")


def test_other_weights_are_another_key_another_place_is_not(weights: Path, tmp_path: Path) -> None:
    moved, other = tmp_path / "moved.safetensors", tmp_path / "other.safetensors"
    moved.write_bytes(weights.read_bytes())
    other.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    keys = [digest_of(find_retriever(f"salad:{path}")) for path in (weights, moved, other)]
    assert keys[0] == keys[1] != keys[2]


def test_salad_runs_where_it_is_told_and_a_gpu_holds_one(weights: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    class Network(Salad):
        def to(self, device: str) -> Salad:  # type: ignore[override]
            asked.append(device)
            return self

    class Crowd:
        def map(self, *_: object, **__: object) -> None:
            raise AssertionError("several processes, one GPU")

    with pytest.MonkeyPatch.context() as patch, Store.open(tmp_path / "work") as store:
        patch.setattr(salad_module, "load_salad", lambda file, device="cpu": Network(TINY).eval())
        on_gpu = find_retriever(f"salad:{weights}", device="cuda")
        on_gpu.describe(compute_features(places(), store), range(2), Crowd())  # type: ignore[arg-type]
        patch.setattr(torch.cuda, "is_available", lambda: True)
        on_cpu = find_retriever(f"salad:{weights}", device="cpu")
    assert asked == ["cuda"] and on_gpu.most_workers == 1  # type: ignore[attr-defined]
    assert on_cpu.most_workers is None and digest_of(on_cpu) == digest_of(on_gpu)  # type: ignore[attr-defined]


def test_vlad_is_the_default_and_every_name_is_known(tmp_path: Path) -> None:
    assert type(find_retriever()).__name__ == "VladRetriever"
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(), store)
        assert len(find_retriever().describe(features, range(12))) == 12
    assert set(RETRIEVERS) == {"vlad", "salad"}


@pytest.mark.parametrize("name", ["telepathy", "vlad:file", ""])
def test_wrong_names_are_said(name: str) -> None:
    with pytest.raises(ConfigError, match="vlad"):
        find_retriever(name)


def test_missing_weights_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(InputError, match="geoweaver models fetch salad"):
        find_retriever("salad")
    with pytest.raises(InputError, match="cannot read"):
        find_retriever("salad:/nowhere/dino_salad.ckpt")


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"PK\x03\x04 cut off", bytes(range(256)) * 20])
def test_damaged_weights_are_refused_before_any_work(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "dino_salad.ckpt").write_bytes(content)
    with pytest.raises(FormatError, match=r"dino_salad\.ckpt"):
        find_retriever(f"salad:{tmp_path / 'dino_salad.ckpt'}")


def test_weights_of_another_network_are_refused_before_any_work(tmp_path: Path) -> None:
    torch.save({"backbone.model.cls_token": torch.zeros(1, 1, 768)}, tmp_path / "other.ckpt")
    with pytest.raises(FormatError, match=r"other\.ckpt: SALAD: weights are missing"):
        find_retriever(f"salad:{tmp_path / 'other.ckpt'}")

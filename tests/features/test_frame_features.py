"""Features of whole sequences: kept in the store, and one descriptor per frame."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from geoweaver.datatypes import Camera, Frames
from geoweaver.engine import LocalEngine
from geoweaver.errors import InputError
from geoweaver.features import (
    DescriptorConfig,
    FeatureConfig,
    cached_descriptors,
    compute_features,
    global_descriptors,
    learn_words,
    no_features,
    vlad,
)
from geoweaver.store import Store

CAMERA = Camera("PINHOLE", (100.0, 100.0, 80.0, 60.0), 160, 120)
SMALL = DescriptorConfig(words=16, dimensions=8)


@dataclass(frozen=True)
class Places:
    """Frame i shows place i // 3 of a world of random pictures, a little shifted each time."""

    unreadable: int = -1

    def read(self, frame: int) -> np.ndarray:
        if frame == self.unreadable:
            raise InputError("this frame is damaged: replace it")
        rng = np.random.default_rng(frame // 3)
        wide = cv2.resize(
            rng.integers(0, 255, (20, 30, 3), dtype=np.uint8), (180, 120), interpolation=cv2.INTER_CUBIC
        )
        shift = 8 * (frame % 3)
        return np.ascontiguousarray(wide[:, shift : shift + 160])


def places(count: int = 12, unreadable: int = -1) -> Frames:
    return Frames(
        names=tuple(f"{i}.png" for i in range(count)),
        timestamps=torch.arange(count).double(),
        camera=torch.zeros(count, dtype=torch.int64),
        keyframe=torch.tensor([i != 1 for i in range(count)]),
        cameras=(CAMERA,),
        size=(160, 120),
        pixels=Places(unreadable),
        digests=tuple(f"digest-{i}" for i in range(count)),
    )


def test_features_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "work") as store:
        compute_features(places(), store)
        assert len(list((tmp_path / "work/features").iterdir())) == 11  # keyframes only
        monkeypatch.setattr("geoweaver.features.frame_features.extract_features", None)
        again = compute_features(places(), store)
        assert len(again.read(3)) > 50


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "two") as two:
        alone = compute_features(places(), one)
        shared = compute_features(places(), two, engine=LocalEngine(2))
        files = [sorted((tmp_path / name / "features").iterdir()) for name in ("one", "two")]
        assert [a.read_bytes() for a in files[0]] == [b.read_bytes() for b in files[1]]
        assert torch.equal(alone.read(5).descriptors, shared.read(5).descriptors)


def test_a_frame_that_is_not_there_is_computed_when_read(tmp_path: Path) -> None:
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(), store, which=[0])
        assert len(features.read(1)) > 50
        assert len(list((tmp_path / "work/features").iterdir())) == 2


def test_keys_follow_pixels_and_options(tmp_path: Path) -> None:
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(), store, which=[])
        fewer = compute_features(places(), store, FeatureConfig(max_features=9), which=[])
        assert len({features.key(0), features.key(1), fewer.key(0)}) == 3


def test_unreadable_frames_have_no_features(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(unreadable=4), store)
        assert len(features.read(4)) == 0
        assert "damaged" in caplog.text


def test_descriptors_tell_places_apart(tmp_path: Path) -> None:
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(), store)
        rows = list(range(12))
        found = global_descriptors(features.read, rows, SMALL)
        assert found.shape == (12, 8)
        assert torch.allclose(found.norm(dim=-1), torch.ones(12), atol=1e-5)
        similarity = found @ found.T - 9 * torch.eye(12)
        assert (similarity.argmax(-1) // 3).tolist() == [i // 3 for i in rows]
        assert torch.equal(found, global_descriptors(features.read, rows, SMALL))
        assert torch.equal(found, cached_descriptors(features, rows, SMALL))


def test_descriptors_of_frames_that_show_nothing() -> None:
    found = global_descriptors(lambda frame: no_features(), range(5), SMALL)
    assert found.isfinite().all()
    assert len(found) == 5


def test_vlad_does_not_depend_on_the_order_of_features(tmp_path: Path) -> None:
    with Store.open(tmp_path / "work") as store:
        features = compute_features(places(), store)
        words = learn_words(features.read, range(12), SMALL)
        one = features.read(0)
        order = torch.randperm(len(one), generator=torch.Generator().manual_seed(1))
        mixed = type(one)(*(getattr(one, name)[order] for name in one.__dataclass_fields__))
        assert torch.allclose(vlad(one, words), vlad(mixed, words), atol=1e-4)

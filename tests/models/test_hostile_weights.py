"""Weight files that are damaged or hostile are refused in one line, and nothing in them is run."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geoweaver.errors import FormatError, GeoWeaverError
from geoweaver.models import load_gpm_folder
from geoweaver.models.weights import read_state

pytestmark = pytest.mark.filterwarnings("ignore:Detected pickle protocol")
Plant = Callable[[Path, Path], None]
"""Writes a hostile file whose payload would touch a marker."""


class _Bomb:
    """Unpickled the careless way, it writes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.marker,))


def _torch_archive(path: Path, marker: Path) -> None:
    torch.save({"weights": torch.zeros(2), "extra": _Bomb(marker)}, path)


def _bare_pickle(path: Path, marker: Path) -> None:
    path.write_bytes(pickle.dumps(_Bomb(marker), protocol=2))


def _newest_pickle(path: Path, marker: Path) -> None:
    path.write_bytes(pickle.dumps({"state_dict": _Bomb(marker)}))


def _archive_with_payload_alone(path: Path, marker: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Bomb(marker)))


@pytest.mark.parametrize("name", ["model.safetensors", "model.pth"])
@pytest.mark.parametrize("plant", [_torch_archive, _bare_pickle, _newest_pickle, _archive_with_payload_alone])
def test_hostile_files_are_refused_and_run_nothing(plant: Plant, name: str, tmp_path: Path) -> None:
    marker = tmp_path / "it-ran"
    plant(tmp_path / name, marker)
    with pytest.raises(FormatError, match=r"refused|damaged|neither"):
        load_gpm_folder(tmp_path, family="da3-small")
    assert not marker.exists()


def test_the_bomb_would_have_worked(tmp_path: Path) -> None:
    _bare_pickle(tmp_path / "bomb.pkl", tmp_path / "it-ran")
    pickle.loads((tmp_path / "bomb.pkl").read_bytes())
    assert (tmp_path / "it-ran").exists()


def _small_files() -> dict[str, bytes]:
    state = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4)}
    new, old = io.BytesIO(), io.BytesIO()
    torch.save(state, new)
    torch.save(state, old, _use_new_zipfile_serialization=False)
    return {"safetensors": safetensors.torch.save(state), "archive": new.getvalue(), "legacy": old.getvalue()}


_SMALL = _small_files()


@pytest.mark.parametrize("kind", _SMALL)
def test_small_files_read_whole(kind: str, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(_SMALL[kind])
    assert read_state(tmp_path / "w").keys() == {"a.weight", "b"}
    sizes = read_state(tmp_path / "w", "meta")
    assert sizes["a.weight"].shape == (2, 3) and all(value.is_meta for value in sizes.values())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(_SMALL)), keep=st.floats(0, 1, exclude_max=True))
def test_truncated_files_are_refused(kind: str, keep: float, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(_SMALL[kind][: int(keep * len(_SMALL[kind]))])
    for device in ("cpu", "meta"):
        with pytest.raises(FormatError, match=r"cut off|refused|no named tensors"):
            read_state(tmp_path / "w", device)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(_SMALL)), place=st.floats(0, 0.999), value=st.integers(0, 255))
def test_a_flipped_byte_is_read_or_refused_but_never_a_traceback(
    kind: str, place: float, value: int, tmp_path: Path
) -> None:
    content = bytearray(_SMALL[kind])
    content[int(place * len(content))] = value
    (tmp_path / "w").write_bytes(content)
    try:
        read_state(tmp_path / "w")
    except GeoWeaverError as error:
        assert str(tmp_path) in str(error) and "\n" not in str(error)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from([b"", b"\x80\x02", b"\x80\x04", b"PK\x03\x04"]), rest=st.binary(max_size=200))
def test_noise_is_refused(start: bytes, rest: bytes, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(start + rest)
    with pytest.raises(FormatError):
        read_state(tmp_path / "w")


def test_torch_files_that_hold_no_weights_are_refused(tmp_path: Path) -> None:
    for content, words in [
        ([1, 2], "no named tensors"),
        ({"epoch": 3}, "no tensors: epoch"),
        ({}, "no named tensors"),
    ]:
        torch.save(content, tmp_path / "w.pth")
        with pytest.raises(FormatError, match=words):
            read_state(tmp_path / "w.pth")

"""Keys change with everything that can change a result, and with nothing else."""

import subprocess
import sys
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.errors import InputError
from geoweaver.store import NOT_IN_KEY, artifact_key, canonical, digest_of, file_digest, tensor_digest


class Kind(Enum):
    SOFT = "soft"
    HARD = "hard"


class Level(IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Inner:
    sigma: float = 0.1


@dataclass(frozen=True)
class Options:
    inner: Inner = Inner()
    kind: Kind = Kind.SOFT
    sizes: tuple[int, ...] = (60, 30)
    limit: float | None = None
    table: dict[int, str] = field(default_factory=dict)
    workers: int = field(default=1, metadata=NOT_IN_KEY)


@dataclass(frozen=True)
class OtherOptions:
    sigma: float = 0.1


BASE = ("priors", 3, Options(), {"frames": "aa", "features": "bb"})


@pytest.mark.parametrize(
    "changed",
    [
        ("matches", *BASE[1:]),
        (BASE[0], 4, *BASE[2:]),
        (*BASE[:2], replace(Options(), inner=Inner(0.1000000001)), BASE[3]),
        (*BASE[:2], replace(Options(), kind=Kind.HARD), BASE[3]),
        (*BASE[:2], replace(Options(), sizes=(30, 60)), BASE[3]),
        (*BASE[:2], replace(Options(), limit=0.0), BASE[3]),
        (*BASE[:2], replace(Options(), table={1: "a"}), BASE[3]),
        (*BASE[:3], {"frames": "aa", "features": "bc"}),
        (*BASE[:3], {"frames": "aa"}),
        (*BASE[:3], {"frames": "bb", "features": "aa"}),
        (*BASE[:3], {}),
    ],
)
def test_every_part_of_the_key_counts(changed):
    assert artifact_key(*changed) != artifact_key(*BASE)


def test_what_cannot_change_the_result_does_not_count():
    assert artifact_key(*BASE[:2], replace(Options(), workers=8), BASE[3]) == artifact_key(*BASE)
    assert artifact_key(*BASE[:3], {"features": "bb", "frames": "aa"}) == artifact_key(*BASE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, "1"),
        (1, Level.LOW),
        (None, "null"),
        ("soft", Kind.SOFT),
        (Path("a"), "a"),
        ({1: 2}, {"1": 2}),
        ({1}, [1]),
        (Inner(), OtherOptions()),
        (Inner(), {"sigma": 0.1}),
        (0.1, np.float32(0.1)),
        (torch.zeros(2), torch.zeros(2, 1)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2), np.ones(2, np.float32)),
    ],
)
def test_values_of_different_kinds_have_different_digests(one, other):
    assert digest_of(one) != digest_of(other)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_floats_count_to_the_last_bit(a, b):
    assert (digest_of(a) == digest_of(b)) == (repr(a) == repr(b))


def test_key_is_the_same_in_another_process():
    value = "[{'b', 'a', 'c'}, {'x': 1.5, 'y': (1, None)}]"
    code = f"from geoweaver.store import digest_of; print(digest_of({value}))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert told == digest_of([{"c", "a", "b"}, {"y": [1, None], "x": 1.5}])


def test_paths_inside_the_run_folder_move_with_it(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there" / "run"
    assert digest_of(here / "masks" / "a.png", here) == digest_of(there / "masks" / "a.png", there)
    assert digest_of(Path("/data/video.mp4"), here) == digest_of(Path("/data/video.mp4"), there)
    assert str(tmp_path) not in canonical({"mask": here / "a.png"}, here)


def test_objects_without_a_value_are_refused():
    with pytest.raises(TypeError, match="cannot be part of a key"):
        digest_of([object()])
    with pytest.raises(TypeError, match="function"):
        digest_of(lambda: 1)


def test_files_count_by_their_content(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"pixels")
    second.write_bytes(b"pixels")
    assert file_digest(first) == file_digest(second)
    second.write_bytes(b"pixelz")
    assert file_digest(first) != file_digest(second)
    with pytest.raises(InputError, match="cannot read"):
        file_digest(tmp_path / "c")


def test_tensors_without_values_have_a_digest_whatever_their_stride() -> None:
    strided = torch.zeros(1).expand(3)[:0]
    assert tensor_digest(strided) == tensor_digest(torch.zeros(0))

"""Nothing half-written or altered is ever trusted."""

import itertools
import os
import random
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoweaver.errors import StoreError
from geoweaver.store import Store

GOOD = ({"x": torch.arange(100.0), "y": torch.arange(7)}, {"note": "good"})


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A store with one artifact, and that artifact's bytes."""
    with Store.open(tmp_path_factory.mktemp("damage") / "work") as store:
        store.save("stage", "piece", "key", *GOOD)
        yield store.folder, store.path("stage", "piece", "key").read_bytes()


def damaged(sample, content):
    """A store opened on altered bytes."""
    folder, _ = sample
    store = Store.reader(folder)
    store.path("stage", "piece", "key").write_bytes(content)
    return store


@given(st.data())
@settings(max_examples=200)
def test_any_changed_byte_is_noticed(sample, data):
    content = bytearray(sample[1])
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert not damaged(sample, content).has("stage", "piece", "key")


@given(st.data())
@settings(max_examples=60)
def test_any_other_length_is_noticed(sample, data):
    length = data.draw(st.integers(0, len(sample[1]) - 1))
    assert not damaged(sample, sample[1][:length]).has("stage", "piece", "key")
    assert not damaged(sample, sample[1] + bytes(length + 1)).has("stage", "piece", "key")


@given(st.binary(max_size=300))
@settings(max_examples=60)
def test_any_other_file_is_noticed(sample, content):
    assert not damaged(sample, content).has("stage", "piece", "key")
    framed = len(content).to_bytes(8, "little") + content
    assert not damaged(sample, framed).has("stage", "piece", "key")


def test_headers_that_are_json_and_nothing_more(sample):
    for text in (
        b"[]",
        b"{}",
        b"null",
        b'{"__metadata__": 3}',
        b"[" * 50_000,
        b'{"__metadata__": {"geoweaver": "{}"}}',
    ):
        content = len(text).to_bytes(8, "little") + text
        assert not damaged(sample, content).has("stage", "piece", "key")


def test_the_untouched_bytes_are_accepted(sample):
    assert damaged(sample, sample[1]).has("stage", "piece", "key")


@pytest.mark.parametrize("harm", ["cut", "flip", "empty"])
def test_damage_is_mended_with_a_warning(tmp_path, caplog, harm):
    with Store.open(tmp_path) as store:
        store.save("stage", "piece", "key", *GOOD)
        path = store.path("stage", "piece", "key")
        content = path.read_bytes()
        path.write_bytes({"cut": content[:-1], "flip": content[:-1] + b"\x99", "empty": b""}[harm])
        with pytest.raises(StoreError, match="damaged"):
            store.load("stage", "piece", "key")
        found = store.cached("stage", "piece", "key", lambda: GOOD)
        assert torch.equal(found.tensors["x"], GOOD[0]["x"])
        assert path.read_bytes() == content
    assert "is damaged" in caplog.text
    assert "computed again" in caplog.text


def test_damage_after_a_first_check_is_noticed_too(tmp_path):
    with Store.open(tmp_path) as store:
        store.save("stage", "piece", "key", *GOOD)
        assert store.has("stage", "piece", "key")
        path = store.path("stage", "piece", "key")
        content = path.read_bytes()
        path.write_bytes(content[:-1] + b"\x99")
        os.utime(path, ns=(1, 1))
        assert not store.has("stage", "piece", "key")


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_just_before_the_rename(tmp_path, moment):
    """The worst moments: everything is written, and the name is not there yet."""
    Store.open(tmp_path).close()
    child = os.fork()
    if not child:
        store = Store.open(tmp_path)
        kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        setattr(*((os, "fsync", kill) if moment == "fsync" else (Path, "replace", kill)))
        store.save("stage", "piece", "key", *GOOD)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.part"))) == 1
    assert not Store.reader(tmp_path).has("stage", "piece", "key")
    with Store.open(tmp_path) as store:
        assert len(list(tmp_path.rglob("*.part"))) == 0
        assert torch.equal(store.cached("stage", "piece", "key", lambda: GOOD).tensors["x"], GOOD[0]["x"])


def write_for_ever(folder, ready):
    store = Store.open(folder)
    os.write(ready, b"!")
    for n in itertools.count():
        # From numpy: a forked process must not touch torch's threads.
        values = torch.from_numpy(np.full(1_000_000, float(n)))
        store.save("stage", f"p{n % 3}", "key", {"x": values}, {"n": n})


def test_killed_at_random_moments(tmp_path):
    """Whatever is there afterwards is one whole writing, not a mixture."""
    draw, unfinished = random.Random(5), 0
    for _ in range(20):
        listen, ready = os.pipe()
        child = os.fork()
        if not child:
            write_for_ever(tmp_path, ready)
        os.read(listen, 1)
        time.sleep(draw.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(listen)
        os.close(ready)
        unfinished += len(list(tmp_path.rglob("*.part")))
        with Store.open(tmp_path) as store:
            for piece in ("p0", "p1", "p2"):
                exists = store.path("stage", piece, "key").exists()
                assert store.has("stage", piece, "key") == exists
                if exists:
                    found = store.load("stage", piece, "key")
                    assert (found.tensors["x"] == found.meta["n"]).all()
    assert unfinished, "no kill fell into a writing: the test shows nothing"


def test_a_full_disk_says_so_and_leaves_nothing(tmp_path):
    with Store.open(tmp_path / "work") as store:
        store.save("stage", "small", "key", {"x": torch.ones(10)}, {})
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(StoreError, match="free some space") as refusal:
                store.save("stage", "big", "key", {"x": torch.ones(1_000_000)}, {})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "\n" not in str(refusal.value)
        assert not store.has("stage", "big", "key")
        assert len(list(store.folder.rglob("*.part"))) == 0
        assert store.has("stage", "small", "key")

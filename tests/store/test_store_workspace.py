"""The workspace: what is kept comes back, what changed is made again, one owner at a time."""

import logging
import os
import pickle
import shutil
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from geoweaver.errors import StoreError
from geoweaver.store import Store, artifact_key
from geoweaver.store.lock import is_locked

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    values = torch.randn(shape, generator=torch.Generator().manual_seed(draw(st.integers(0, 999)))) * 9
    tensor = values.to(draw(st.sampled_from(DTYPES)))
    return tensor.mT if tensor.ndim >= 2 and draw(st.booleans()) else tensor


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "work") as store:
        yield store


@given(
    st.dictionaries(st.text(min_size=1, max_size=6), tensors(), max_size=4), st.dictionaries(st.text(), JSON)
)
@settings(max_examples=60)
def test_round_trip(tmp_path_factory, made, meta):
    made.pop("__metadata__", None)
    with Store.open(tmp_path_factory.mktemp("store") / "work") as store:
        digest = store.save("stage", "piece", "key", made, meta)
        found = store.load("stage", "piece", "key")
        foreign = load_file(store.path("stage", "piece", "key"))
    assert found.digest == digest
    assert found.meta == meta
    assert set(found.tensors) == set(foreign) == set(made)
    for name, tensor in made.items():
        for other in (found.tensors[name], foreign[name]):
            assert other.dtype == tensor.dtype
            assert torch.equal(other, tensor)


def test_tensors_that_share_memory_are_kept_apart(store):
    base = torch.arange(12.0)
    made = {"all": base, "part": base[3:7], "again": base, "wide": base[:1].expand(5)}
    store.save("stage", "piece", "key", made, {})
    found = store.load("stage", "piece", "key").tensors
    assert all(torch.equal(found[name], made[name]) for name in made)


def test_the_digest_is_the_contents_alone(store):
    a = store.save("one", "a", "key", {"x": torch.ones(3)}, {"n": 1})
    assert store.save("two", "b", "other", {"x": torch.ones(3)}, {"n": 1}) == a
    different = [({"x": torch.ones(3).double()}, {"n": 1}), ({"y": torch.ones(3)}, {"n": 1})]
    different += [({"x": torch.ones(3)}, {"n": 2}), ({"x": torch.ones(3, 1)}, {"n": 1})]
    assert a not in {store.save("three", "c", "key", *flat) for flat in different}


def test_finished_work_is_not_repeated_and_stale_work_is_not_used(store):
    made = []

    def compute():
        made.append(1)
        return {"x": torch.tensor([len(made)])}, {}

    base = ("priors", 1, {"size": 60}, {"frames": "aa"})
    for key in [artifact_key(*base), artifact_key(*base)]:
        assert store.cached("priors", "c0", key, compute).tensors["x"].item() == 1
    changes = [("priors", 2, *base[2:]), (*base[:2], {"size": 61}, base[3]), (*base[:3], {"frames": "ab"})]
    values = [
        store.cached("priors", "c0", artifact_key(*change), compute).tensors["x"].item() for change in changes
    ]
    assert values == [2, 3, 4]
    assert store.cached("priors", "c1", artifact_key(*base), compute).tensors["x"].item() == 5
    # Changing the option back costs nothing.
    assert store.cached("priors", "c0", artifact_key(*base), compute).tensors["x"].item() == 1


def test_an_artifact_renamed_to_another_key_is_not_used(store, caplog):
    store.save("stage", "piece", "a" * 32, {"x": torch.ones(1)}, {})
    store.path("stage", "piece", "a" * 32).rename(store.path("stage", "piece", "b" * 32))
    assert not store.has("stage", "piece", "b" * 32)
    assert "damaged" in caplog.text


def test_loaded_tensors_may_be_written_to_without_touching_the_file(store):
    store.save("stage", "piece", "key", {"x": torch.zeros(5000)}, {})
    store.load("stage", "piece", "key").tensors["x"].fill_(7)
    assert (store.load("stage", "piece", "key").tensors["x"] == 0).all()


def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_reading_one_frame_does_not_load_the_file(tmp_path):
    with Store.open(tmp_path) as store:
        store.save("stage", "piece", "key", {"x": torch.ones(64, 256 * 1024)}, {})
    with Store.open(tmp_path) as store:
        before = resident()
        frames = store.load("stage", "piece", "key").tensors["x"]
        assert frames[17].sum() == 256 * 1024
        assert resident() - before < 24
        assert frames.sum() == 64 * 256 * 1024
        assert resident() - before > 48


def test_missing_and_read_only(store, tmp_path):
    with pytest.raises(StoreError, match="missing"):
        store.load("stage", "piece", "key")
    store.save("stage", "piece", "key", {"x": torch.ones(2)}, {})
    reader = Store.reader(tmp_path / "work")
    assert reader.load("stage", "piece", "key").tensors["x"].sum() == 2
    with pytest.raises(StoreError, match="reading only"):
        reader.save("stage", "other", "key", {}, {})
    with pytest.raises(StoreError, match="reading only"):
        reader.clear()
    with pytest.raises(StoreError, match="no GeoWeaver workspace"):
        (tmp_path / "empty").mkdir()
        Store.reader(tmp_path / "empty")
    with pytest.raises(StoreError, match="nowhere"):
        Store.reader(tmp_path / "nowhere")


def test_a_closed_store_writes_no_more(tmp_path):
    with Store.open(tmp_path) as store:
        pass
    with pytest.raises(StoreError):
        store.save("stage", "piece", "key", {}, {})


def test_a_workers_copy_writes_under_the_owners_lock(store):
    copy = pickle.loads(pickle.dumps(store))
    copy.save("stage", "piece", "key", {"x": torch.ones(2)}, {})
    assert store.has("stage", "piece", "key")


def test_prune_and_clear(store):
    for key in ("aaaa", "bbbb"):
        for piece in ("c0", "c1"):
            store.save("stage", piece, key, {}, {})
    store.save("other", "c0", "aaaa", {}, {})
    assert store.prune("stage", ["bbbb"]) == 2
    assert store.has("stage", "c0", "bbbb")
    assert not store.has("stage", "c0", "aaaa")
    assert store.clear() == 3
    assert not store.has("other", "c0", "aaaa")


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", ".hidden", "a.b"])
def test_names_that_could_leave_the_folder_are_refused(store, name):
    with pytest.raises(ValueError, match="file name"):
        store.save("stage", name, "key", {}, {})


def test_a_moved_folder_goes_on(tmp_path):
    mask = "masks/a.png"
    old, new = tmp_path / "old", tmp_path / "far" / "new"
    key = artifact_key("stage", 1, {"mask": old / mask}, root=old)
    with Store.open(old / "work") as store:
        store.save("stage", "piece", key, {"x": torch.ones(2)}, {})
    new.parent.mkdir()
    shutil.move(old, new)
    with Store.open(new / "work") as store:
        assert store.has("stage", "piece", artifact_key("stage", 1, {"mask": new / mask}, root=new))
    assert not any(str(tmp_path).encode() in p.read_bytes() for p in new.rglob("*") if p.is_file())


def test_second_opener_is_refused_politely(store, tmp_path):
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()} on ") as refusal:
        Store.open(tmp_path / "work")
    assert "\n" not in str(refusal.value)
    child = os.fork()
    if not child:
        try:
            Store.open(tmp_path / "work")
        except StoreError as refused:
            os._exit(42 if f"process {os.getppid()} on " in str(refused) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    store.close()
    Store.open(tmp_path / "work").close()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    child = os.fork()
    if not child:
        Store.open(tmp_path / "work")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert str(child) in (tmp_path / "work" / ".lock").read_text()
    Store.open(tmp_path / "work").close()


def test_whether_somebody_works_in_a_folder_can_be_asked(tmp_path):
    lock = tmp_path / "work" / ".lock"
    assert not is_locked(lock)
    with Store.open(tmp_path / "work"):
        assert is_locked(lock)
    assert not is_locked(lock)


def test_file_systems_without_locks_are_used_with_a_warning(tmp_path, monkeypatch, caplog):
    import errno
    import fcntl

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    Store.open(tmp_path / "work").close()
    assert "no locks" in caplog.text


def test_foreign_folders_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match=r"thesis\.tex.*choose another folder"):
        Store.open(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ['{"geoweaver": "store", "format": 2}', "{", "[]", ""])
def test_another_versions_folder_is_refused(tmp_path, text):
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(StoreError, match="another version"):
        Store.open(tmp_path)


def test_folders_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "work", Path("/proc/geoweaver/work")):
        with pytest.raises(StoreError, match="cannot use") as refusal:
            Store.open(folder)
        assert "\n" not in str(refusal.value)
        assert str(folder) in str(refusal.value)


def test_a_folder_without_write_permission(tmp_path):
    (tmp_path / "work").mkdir(mode=0o555)
    child = os.fork()
    if not child:
        if os.geteuid() == 0:
            os.setuid(65534)  # Permissions do not bind the superuser.
        try:
            Store.open(tmp_path / "work")
        except StoreError as refused:
            os._exit(42 if "Permission denied" in str(refused) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42


def test_nothing_is_logged_on_the_good_way(store, caplog):
    caplog.set_level(logging.INFO)
    store.cached("stage", "piece", "key", lambda: ({"x": torch.ones(2)}, {}))
    assert caplog.text == ""

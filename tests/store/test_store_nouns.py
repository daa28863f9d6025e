"""Every noun made of tensors comes back value for value."""

from dataclasses import dataclass, fields, is_dataclass, replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoweaver.datatypes import (
    Camera,
    ChunkLayout,
    ChunkPrior,
    Correspondences,
    EdgeKind,
    Frames,
    FrameState,
    Matches,
    Observations,
    Reconstruction,
    StageReport,
    Trajectory,
    ViewGraph,
)
from geoweaver.errors import StoreError
from geoweaver.geometry import SE3, Sim3
from geoweaver.store import PriorStore, Store, cached_noun, cached_priors, flatten, restore


def same(a, b):
    """Equal to the last bit, type and nesting included; NaN equals NaN."""
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


def nouns(n, seed):
    g = torch.Generator().manual_seed(seed)

    def real(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    def whole(*shape):
        return torch.randint(0, 99, shape, generator=g)

    rigid, similar = SE3.exp(real(n, 6)), Sim3.exp(real(n, 7))
    report = StageReport("stage", (1.0, 0.5), (0.1, 0.2), rejected_edges=(3, 4), notes=("a note",))
    camera = Camera("OPENCV", (1.0, 2.0), 640, 480, True, (500.0, 500.0, 320.0, 240.0))
    flags = whole(n) > 50
    names = tuple(f"{i:04}.png" for i in range(n))
    return [
        rigid,
        similar,
        Matches(whole(n), real(n, 2), real(n, 2), real(n)),
        Correspondences(*(whole(n) for _ in range(3)), real(n, 2), real(n, 2), *(real(n) for _ in range(3))),
        ViewGraph(whole(n, 2), torch.full((n,), int(EdgeKind.LONG_RANGE))),
        Observations(whole(n), whole(n), rigid, real(n, 4), real(n).float(), (512, 288)),
        ChunkLayout(similar, whole(n)),
        FrameState(rigid, real(n), real(n), real(2, 2)),
        ChunkPrior(whole(n), real(n, 2, 3), real(n, 2, 3), SE3.identity(n), real(n, 4)),
        Frames(names, real(n), whole(n), flags, (camera, replace(camera, rectified=None)), (640, 480)),
        Reconstruction(
            names,
            real(n),
            rigid,
            real(n, 4),
            (4, 3),
            flags,
            real(n, 2),
            {1: "blur", 7: "lost"},
            (report, report),
        ),
        Trajectory(rigid, whole(n), names, None, flags),
        Trajectory(rigid, whole(n)),
    ]


@given(st.integers(0, 9), st.integers(0, 2**31))
@settings(max_examples=30)
def test_nouns_survive_the_walk(n, seed):
    for noun in nouns(n, seed):
        tensors, meta = flatten(noun)
        assert all(isinstance(t, torch.Tensor) for t in tensors.values())
        assert same(restore(type(noun), tensors, meta), noun)


def test_nouns_survive_the_disk(tmp_path):
    with Store.open(tmp_path) as store:
        for i, noun in enumerate(nouns(5, 3)):
            kept, digest = cached_noun(store, type(noun), "nouns", f"n{i}", "key", lambda noun=noun: noun)
            assert same(kept, noun)
            again, same_digest = cached_noun(store, type(noun), "nouns", f"n{i}", "key", fail)
            assert same(again, noun)
            assert digest == same_digest


def fail():
    raise AssertionError("computed again")


def test_field_names_are_the_tensors_names():
    observations = next(noun for noun in nouns(3, 0) if isinstance(noun, Observations))
    assert set(flatten(observations)[0]) == {
        "frame", "chunk", "cam_from_chunk.rotation", "cam_from_chunk.translation", "intrinsics", "confidence",
    }  # fmt: skip


def test_enums_lists_and_nested_optionals():
    @dataclass(frozen=True)
    class Odd:
        kind: EdgeKind
        parts: list[SE3]
        maybe: SE3 | None
        table: dict[str, SE3]

    odd = Odd(EdgeKind.CROSS_CHUNK, [SE3.identity(2)], SE3.identity(1), {"a": SE3.identity(3)})
    back = restore(Odd, *flatten(odd))
    assert back.kind is EdgeKind.CROSS_CHUNK
    assert isinstance(back.parts, list)
    assert same(back.maybe, odd.maybe)
    assert same(back.parts[0], odd.parts[0])
    assert same(back.table["a"], odd.table["a"])


def test_what_cannot_be_kept_is_named():
    frames = next(noun for noun in nouns(3, 0) if isinstance(noun, Frames))

    class Source:
        def read(self, frame):
            return None

    with pytest.raises(TypeError, match="pixels"):
        flatten(replace(frames, pixels=Source()))


def test_another_versions_noun_is_refused():
    tensors, meta = flatten(nouns(2, 0)[2])
    meta["noun"]["fields"]["score2"] = meta["noun"]["fields"].pop("score")
    with pytest.raises(StoreError, match="another version"):
        restore(Matches, tensors, meta)


def prior(frames, seed, size=(6, 8)):
    g = torch.Generator().manual_seed(seed)
    n = len(frames)
    depth = torch.rand(n, *size, generator=g) * 10
    depth[:, 0, 0] = 0
    confidence = torch.rand(n, *size, generator=g)
    camera = SE3.exp(torch.randn(n, 6, generator=g, dtype=torch.float64))
    return ChunkPrior(torch.tensor(frames), depth, confidence, camera, torch.rand(n, 4, generator=g))


def test_priors_are_read_chunk_by_chunk(tmp_path):
    """A chunk may become two sound pieces, or none; they are numbered in chunk order."""
    made = [[prior([0, 1, 2], 1)], [], [prior([2, 3], 2), prior([4, 5, 6], 3, (5, 9))]]
    with Store.open(tmp_path) as store:
        places = [(f"chunk-{k:04}", "key") for k in range(3)]
        for (piece, key), priors in zip(places, made, strict=True):
            cached_priors(store, "priors", piece, key, lambda priors=priors: priors)
        reader = PriorStore.index(store, "priors", places)
        assert len(reader) == 3
        for k, expected in enumerate([made[0][0], *made[2]]):
            found = reader.read(k)
            assert torch.equal(found.frame, expected.frame)
            assert same(found.cam_from_chunk, expected.cam_from_chunk)
            assert torch.equal(found.intrinsics, expected.intrinsics)
            assert torch.equal(found.depth == 0, expected.depth == 0)
            torch.testing.assert_close(found.depth, expected.depth, rtol=2.0**-11, atol=0)
            torch.testing.assert_close(found.confidence, expected.confidence, rtol=2.0**-11, atol=0)


def test_what_a_prior_said_is_read_again(tmp_path):
    """A frame that another chunk placed has no reason; what nobody could place keeps its own."""
    said = SimpleNamespace(priors=[prior([2, 3], 1)], reason={0: "blur", 4: "dark"}, notes=("little motion",))
    with Store.open(tmp_path) as store:
        cached_priors(store, "priors", "c0", "key", lambda: said)
        cached_priors(store, "priors", "c1", "key", lambda: [prior([4, 5], 2)])
        store.save("priors", "c2", "old", {}, {"parts": 0})
        places = [("c0", "key"), ("c1", "key"), ("c2", "old")]
        for _ in range(2):
            reader = PriorStore.index(store, "priors", places, ("focal 700",))
            assert reader.reason == {0: "blur"} and reader.notes == ("focal 700", "little motion")


def test_some_frames_of_a_prior(tmp_path):
    with Store.open(tmp_path) as store:
        cached_priors(store, "priors", "c0", "key", lambda: [prior(list(range(10, 20)), 4)])
        reader = PriorStore.index(store, "priors", [("c0", "key")])
        whole, some = reader.read(0), reader.read(0, torch.tensor([7, 2]))
        assert some.frame.tolist() == [17, 12]
        assert torch.equal(some.depth, whole.depth[[7, 2]])
        assert torch.equal(some.cam_from_chunk.rotation, whole.cam_from_chunk.rotation[[7, 2]])
        assert reader.read(0, slice(3, 4)).frame.tolist() == [13]


def test_a_field_that_came_later_gets_its_default():
    tensors, meta = flatten(StageReport("polish", notes=("a",)))
    del meta["noun"]["fields"]["doubts"]
    back = restore(StageReport, tensors, meta)
    assert (back.name, back.notes, back.doubts) == ("polish", ("a",), ())

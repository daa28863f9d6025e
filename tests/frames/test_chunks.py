"""Chunks: sizes, shared frames, moved borders, cameras."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.datatypes import Camera, Frames
from geoweaver.errors import ConfigError
from geoweaver.frames import chains, split_chunks, tie_strength_from_pairs

CAMERA = Camera("PINHOLE", (1.0, 1.0, 0.5, 0.5), 1, 1)


def sequence(camera: list[int], keyframe: list[bool] | None = None) -> Frames:
    n = len(camera)
    return Frames(
        names=tuple(str(i) for i in range(n)),
        timestamps=torch.arange(n).double(),
        camera=torch.tensor(camera, dtype=torch.int64),
        keyframe=torch.tensor(keyframe if keyframe is not None else [True] * n, dtype=torch.bool),
        cameras=(CAMERA,) * (max(camera, default=0) + 1),
        size=(1, 1),
    )


def test_papers_stride() -> None:
    chunks = split_chunks(sequence([0] * 150), fixed=True)
    assert [(c.frames[0], c.frames[-1]) for c in chunks] == [(0, 59), (59, 118), (118, 149)]
    assert [len(c) for c in split_chunks(sequence([0] * 120), fixed=True)] == [60, 60, 2]
    assert [len(c) for c in split_chunks(sequence([0] * 119), fixed=True)] == [60, 60]


def test_short_tail_is_merged() -> None:
    assert [len(c) for c in split_chunks(sequence([0] * 70))] == [70]
    assert [len(c) for c in split_chunks(sequence([0] * 90))] == [60, 31]


def test_border_moves_to_the_best_tied_frame() -> None:
    strength = torch.ones(150)
    strength[55], strength[40] = 9, 99  # the second is too far from the nominal place
    chunks = split_chunks(sequence([0] * 150), tie_strength=strength)
    assert chunks[0].frames[-1] == chunks[1].frames[0] == 55
    by_function = split_chunks(sequence([0] * 150), tie_strength=lambda frame: float(strength[frame]))
    assert by_function == chunks
    assert split_chunks(sequence([0] * 150), tie_strength=strength, fixed=True)[0].frames[-1] == 59


def test_without_ties_borders_stay() -> None:
    assert [c.frames[0] for c in split_chunks(sequence([0] * 237))] == [0, 59, 118, 177]


@given(
    camera=st.lists(st.integers(0, 2), max_size=150),
    size=st.integers(3, 40),
    fixed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_chunks_cover_all_keyframes_in_order(camera: list[int], size: int, fixed: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    keyframe = (torch.rand(len(camera), generator=generator) < 0.7).tolist()
    frames = sequence(camera, keyframe)
    chunks = split_chunks(
        frames, size, tie_strength=torch.rand(len(camera), generator=generator), fixed=fixed
    )
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert {i for c in chunks for i in c.frames} == {i for i, k in enumerate(keyframe) if k}
    for chunk in chunks:
        assert len({camera[i] for i in chunk.frames}) == 1
        assert list(chunk.frames) == sorted(set(chunk.frames))
        assert len(chunk) <= (size if fixed else size + int(0.15 * size) + size // 3 + 1)
    for one, two in pairwise(chunks):
        if camera[one.frames[0]] == camera[two.frames[0]]:
            assert set(one.frames) & set(two.frames) == {two.frames[0]} == {one.frames[-1]}
        else:
            assert not set(one.frames) & set(two.frames)


def test_several_shared_frames() -> None:
    chunks = split_chunks(sequence([0] * 25), size=10, shared=3, fixed=True)
    for one, two in pairwise(chunks):
        assert one.frames[-3:] == two.frames[:3]


def test_nothing_to_cut() -> None:
    assert split_chunks(sequence([])) == ()
    assert split_chunks(sequence([0, 0], [False, False])) == ()


@pytest.mark.parametrize(("size", "shared"), [(2, 1), (10, 5), (10, -1)])
def test_bad_sizes(size: int, shared: int) -> None:
    with pytest.raises(ConfigError, match="chunk-size"):
        split_chunks(sequence([0] * 9), size, shared)


def test_weaker_side_counts() -> None:
    strength = tie_strength_from_pairs([0, 1, 2], [1, 2, 0], [10.0, 3.0, 1.0], 4)
    assert strength.tolist() == [0, 3, 0, 0]


def test_frames_of_one_folder_follow_each_other_and_chunks_stay_of_one_camera() -> None:
    frames = replace(sequence([0, 0, 1, 1, 0, 0]), folder=torch.zeros(6, dtype=torch.int64))
    assert chains(frames) == [list(range(6))]
    assert [c.frames for c in split_chunks(frames)] == [(0, 1, 4, 5), (2, 3)]
    assert chains(sequence([0, 0, 1, 1, 0, 0])) == [[0, 1, 4, 5], [2, 3]]

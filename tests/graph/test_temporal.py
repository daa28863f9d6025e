"""Temporal edges: offsets, borders, cameras, kinds."""

import pytest
import torch

from geoweaver.datatypes import Chunk, EdgeKind
from geoweaver.errors import ConfigError
from geoweaver.graph.temporal import (
    TemporalConfig,
    frame_chains,
    mending_pairs,
    temporal_kind,
    temporal_pairs,
)

ONE = torch.zeros(400, dtype=torch.long)


def cut(frames: int, size: int = 60) -> list[Chunk]:
    starts = range(0, frames - 1, size - 1)
    return [Chunk(k, tuple(range(s, min(s + size, frames)))) for k, s in enumerate(starts)]


def pairs_of(tensor: torch.Tensor) -> set[tuple[int, int]]:
    return {(i, j) for i, j in tensor.tolist()}


def test_every_frame_has_its_doubling_neighbours() -> None:
    pairs = pairs_of(temporal_pairs(cut(200), ONE, TemporalConfig(border=())))
    assert pairs == {(i, i + o) for o in (1, 2, 4, 8) for i in range(200 - o)}


def test_borders_get_pairs_that_offsets_alone_do_not_give() -> None:
    chunks = cut(119)
    pairs = pairs_of(temporal_pairs(chunks, ONE, TemporalConfig()))
    assert chunks[0].frames[-1] == chunks[1].frames[0] == 59
    assert {(59 - a, 59 + b) for a in (1, 2, 4, 8) for b in (1, 2, 4, 8)} <= pairs


def test_a_border_without_a_shared_frame_is_crossed_too() -> None:
    chunks = [Chunk(0, tuple(range(10))), Chunk(1, tuple(range(10, 20)))]
    pairs = pairs_of(temporal_pairs(chunks, ONE, TemporalConfig(offsets=(1,), border=(1, 2))))
    assert {(9, 10), (8, 10), (9, 11), (8, 11)} <= pairs


def test_offsets_count_the_cameras_own_frames_and_never_mix_cameras() -> None:
    camera = torch.tensor([0, 1] * 10)
    chunks = [Chunk(0, tuple(range(0, 20, 2))), Chunk(1, tuple(range(1, 20, 2)))]
    assert frame_chains(chunks, camera) == [list(range(0, 20, 2)), list(range(1, 20, 2))]
    pairs = pairs_of(temporal_pairs(chunks, camera, TemporalConfig()))
    assert (
        (0, 2) in pairs and (0, 4) in pairs and (0, 8) in pairs and (0, 16) in pairs and (0, 6) not in pairs
    )
    assert all(camera[i] == camera[j] for i, j in pairs)


def test_keyframes_only_are_chained() -> None:
    chunks = [Chunk(0, (0, 3, 7)), Chunk(1, (7, 11, 20))]
    assert pairs_of(temporal_pairs(chunks, ONE, TemporalConfig(offsets=(1,), border=(1,)))) == {
        (0, 3), (3, 7), (7, 11), (11, 20), (3, 11),
    }  # fmt: skip


def test_kind_says_whether_a_chunk_holds_both() -> None:
    chunks = cut(119)
    kind = temporal_kind(torch.tensor([[57, 58], [58, 59], [59, 60], [58, 60]]), chunks)
    assert kind.tolist() == [EdgeKind.TEMPORAL] * 3 + [EdgeKind.CROSS_CHUNK]


def test_a_weak_link_is_surrounded_by_more_pairs() -> None:
    more = pairs_of(mending_pairs(torch.tensor([[20, 21]]), cut(60), ONE, TemporalConfig(mend=2)))
    assert more == {(19, 21), (19, 22), (20, 21), (20, 22)}


def test_offsets_without_the_next_frame_are_refused() -> None:
    with pytest.raises(ConfigError, match="among the offsets"):
        TemporalConfig(offsets=(2, 4))


def test_a_phone_that_is_turned_in_one_folder_makes_one_chain() -> None:
    """Upright, then across, then upright again: two cameras take turns in the folder."""
    upright, across = Chunk(0, (*range(10), *range(20, 30))), Chunk(1, tuple(range(10, 20)))
    assert frame_chains([upright, across], ONE) == [list(range(30))]
    pairs = pairs_of(temporal_pairs([upright, across], ONE, TemporalConfig()))
    assert {(9, 10), (19, 20), (5, 13)} <= pairs
    # the border that is crossed more densely would lie between frames 29 and 10
    assert all(j - i <= 8 for i, j in pairs)

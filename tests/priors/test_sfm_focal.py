"""One focal for all chunks of a camera."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.datatypes import Camera, Chunk
from geoweaver.priors.sfm_focal import FocalVote, focal_consensus, start_intrinsics, voting_chunks


@given(st.floats(200, 2000), st.lists(st.floats(-0.02, 0.02), min_size=3, max_size=6), st.floats(1.3, 5))
def test_one_dissenter_does_not_count(focal: float, offsets: list[float], wrong: float) -> None:
    votes = [FocalVote(focal * (1 + o), 60) for o in offsets] + [FocalVote(focal * wrong, 60)]
    assert focal_consensus(votes) == pytest.approx(focal, rel=0.021)


def test_no_two_agree() -> None:
    assert focal_consensus([FocalVote(400, 60), FocalVote(600, 60), FocalVote(900, 60)]) == 0
    assert focal_consensus([FocalVote(400, 60)]) == 0
    assert focal_consensus([]) == 0


def test_votes_are_spread_over_the_sequence() -> None:
    chunks = [Chunk(k, (k,)) for k in range(17)]
    assert [c.index for c in voting_chunks(chunks, 5)] == [0, 4, 8, 12, 16]
    assert len(voting_chunks(chunks[:3], 5)) == 3


def test_start_is_what_is_known_else_a_normal_lens() -> None:
    known = Camera("PINHOLE", (), 640, 480, rectified=(500.0, 501.0, 320.0, 240.0))
    assert start_intrinsics(known, (640, 480)) == (500.0, 501.0, 320.0, 240.0)
    assert start_intrinsics(Camera("PINHOLE", (), 640, 480), (640, 480)) == (768.0, 768.0, 320.0, 240.0)

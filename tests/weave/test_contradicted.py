"""A piece of the prior that fits its own matches and nothing around it: said, and left out."""

from dataclasses import replace
from functools import cache

import torch

from geoweaver.assembly.borders import contradicted_pieces
from geoweaver.assembly.trust import CONTRADICTED
from geoweaver.datatypes import Matches
from geoweaver.placement import place_frames, placed_by_prior
from tests.weave.test_placement import frames_of
from tests.weave.tiny import Tiny, assert_finite, ate, some_frames, tiny, woven

ASTRAY = range(9, 12)
OTHERS = [k for k in range(22) if k not in ASTRAY]


def walk(laps: float) -> Tiny:
    return tiny(frames=22, chunk=8, laps=laps, per_edge=80)


@cache
def changeling() -> Tiny:
    """Frames 9 to 11 are of another walk, and so are matches among them; those with others are right."""
    case, other = walk(0.25), walk(-0.5)
    assert torch.equal(case.graph.edges, other.graph.edges)
    inner = torch.isin(case.graph.edges, torch.tensor(ASTRAY)).all(1)
    rows = [(c.matches, keep[c.matches.edge]) for c, keep in ((case, ~inner), (other, inner))]
    columns = [
        torch.cat([getattr(m, name)[keep] for m, keep in rows])
        for name in ("edge", "pixel_i", "pixel_j", "score")
    ]
    order = torch.argsort(columns[0], stable=True)
    rest, piece = some_frames(case.priors[1], [0, 1, 5, 6, 7]), some_frames(other.priors[1], [2, 3, 4])
    priors = (case.priors[0], rest, case.priors[2], piece)
    return replace(case, priors=priors, matches=Matches(*(c[order] for c in columns)))


def test_what_the_frames_around_contradict_is_not_trusted() -> None:
    case = changeling()
    result = woven(case)
    assert_finite(result)
    assert [k for k, r in enumerate(result.trust.reason) if r == CONTRADICTED] == list(ASTRAY)
    assert result.trust.trusted[OTHERS].all()
    assert ate(result.state.cam_from_world[OTHERS], case.truth.cam_from_world[OTHERS]) < 0.1


def test_it_is_laid_on_the_way_between_its_neighbours() -> None:
    case = changeling()
    frames, result = frames_of(case), woven(case)
    seen = placed_by_prior(frames, result)
    assert seen.tolist() == [k not in ASTRAY for k in range(22)]
    placed = place_frames(frames, result, seen)
    assert all(placed.reason[k] == f"{CONTRADICTED}: the camera is interpolated" for k in ASTRAY)
    before = ate(result.state.cam_from_world, case.truth.cam_from_world)
    assert ate(placed.cam_from_world, case.truth.cam_from_world) < min(0.5 * before, 0.3)


def test_a_sound_walk_has_no_such_piece() -> None:
    assert not woven(walk(0.25)).trust.contradicted.any()


def pieces(*pairs: tuple[int, int, int, float, bool], frames: tuple[int, ...]) -> list[bool]:
    """Verdicts on pieces, from (piece, piece, matches, share that fits, neighbours in time)."""
    i, j, rows, fitting, near = (torch.tensor(column) for column in zip(*pairs, strict=True))
    ends = torch.stack([i, j], 1)
    return list(contradicted_pieces(ends, rows, fitting.double(), near, torch.tensor(frames), 20).tolist())


FIRM = (0, 1, 500, 0.9, True)


def test_the_smaller_piece_at_a_broken_border_is_doubted() -> None:
    assert pieces(FIRM, (1, 2, 500, 0.9, True), frames=(60, 8, 60)) == [False, False, False]
    assert pieces(FIRM, (1, 2, 500, 0.1, True), (0, 2, 300, 0.8, False), frames=(60, 8, 60)) == [
        False, True, False,
    ]  # fmt: skip


def test_what_only_a_doubted_piece_joins_is_doubted_too() -> None:
    assert pieces(FIRM, (1, 2, 500, 0.1, True), (1, 3, 500, 0.9, True), frames=(60, 8, 9, 7)) == [
        False, True, True, True,
    ]  # fmt: skip


def test_believed_loops_join_what_neighbours_do_not() -> None:
    assert pieces(FIRM, (1, 2, 300, 0.3, False), frames=(60, 60, 20)) == [False] * 3


def test_a_few_matches_or_none_break_no_border() -> None:
    assert pieces(FIRM, (1, 2, 19, 0.0, True), frames=(60, 60, 60)) == [False] * 3
    assert pieces(FIRM, (0, 0, 900, 0.1, True), frames=(60, 60)) == [False] * 2


def test_wrong_loops_alone_break_no_border() -> None:
    assert pieces(FIRM, (0, 1, 400, 0.2, False), frames=(60, 60)) == [False] * 2

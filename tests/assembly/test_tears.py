"""All matches, not only those that sampling left, tell where cameras do not hang together."""

from functools import cache

import torch

from geoweaver.assembly.tears import Evidence, TearConfig, contradicted_alone, gather_evidence, torn_frames
from geoweaver.datatypes import EdgeKind
from geoweaver.geometry import SE3
from tests.weave.tiny import Tiny, tiny

CONFIG = TearConfig()
FRAMES = 24


@cache
def walk() -> Tiny:
    return tiny(frames=FRAMES, chunk=12, laps=0.4, per_edge=80)


def put_elsewhere(cameras: SE3, first: int, last: int) -> SE3:
    """Some frames moved rigidly, as a wrong piece stands: sound in itself, and nowhere near the rest."""
    away = SE3.exp(torch.tensor([0.3, 0.0, -0.2, 0.0, 0.4, 0.1], dtype=torch.float64))
    rotation, translation = cameras.rotation.clone(), cameras.translation.clone()
    moved = cameras[first:last] @ away
    rotation[first:last], translation[first:last] = moved.rotation, moved.translation
    return SE3(rotation, translation)


def torn(cameras: SE3, tied: torch.Tensor | None = None, keep: torch.Tensor | None = None) -> list[int]:
    """Frames of the walk that its matches do not join to the rest, some edges left out."""
    case = walk()
    case = case if keep is None else case.without_edges(~keep)
    K = case.observations.intrinsics[:1].expand(FRAMES, 4)
    evidence = gather_evidence(case.graph.edges, case.matches, cameras, K, case.observations.size, CONFIG)
    long = case.graph.kind == int(EdgeKind.LONG_RANGE)
    every = torch.ones(FRAMES, dtype=torch.bool) if tied is None else tied
    group = torch.zeros(FRAMES, dtype=torch.long)
    found = torn_frames(case.graph.edges, long, evidence, group, every, CONFIG)
    return list(found.nonzero().squeeze(1).tolist())


def test_a_right_walk_is_whole() -> None:
    assert torn(walk().truth.cam_from_world) == []


def test_a_wrong_stretch_is_torn_off_and_the_rest_stays_joined_across_it() -> None:
    cameras = put_elsewhere(walk().truth.cam_from_world, 9, 12)
    assert torn(cameras) == [9, 10, 11]


def test_of_two_parts_the_smaller_is_torn() -> None:
    cameras = put_elsewhere(walk().truth.cam_from_world, 15, FRAMES)
    assert torn(cameras) == list(range(15, FRAMES))


def test_frames_that_nothing_ties_to_the_others_are_not_joined_to_them() -> None:
    edges = walk().graph.edges
    across = (edges < 15).any(1) & (edges >= 15).any(1)
    assert torn(walk().truth.cam_from_world, keep=~across) == list(range(15, FRAMES))


def test_one_claim_alone_joins_nothing_and_two_do() -> None:
    edges = torch.tensor([[a, a + 1] for a in range(9) if a != 4] + [[0, 9], [1, 8]])
    every = torch.ones(10, dtype=torch.bool)
    for claims, torn_off in ((1, 5), (2, 0)):
        agreeing = torch.full((len(edges),), 90)
        agreeing[len(edges) - 2 + claims :] = 0
        evidence = Evidence(torch.full((len(edges),), 100), agreeing)
        far = torch.arange(len(edges)) >= len(edges) - 2
        found = torn_frames(edges, far, evidence, torch.zeros(10, dtype=torch.long), every, CONFIG)
        assert int(found.sum()) == torn_off


def test_frames_that_have_no_say_are_not_judged() -> None:
    tied = torch.ones(FRAMES, dtype=torch.bool)
    tied[9:12] = False
    assert torn(put_elsewhere(walk().truth.cam_from_world, 9, 12), tied) == []
    assert torn(walk().truth.cam_from_world, torch.zeros(FRAMES, dtype=torch.bool)) == []


def test_a_single_frame_put_elsewhere_is_found_and_its_neighbours_stay() -> None:
    case = walk()
    cameras = put_elsewhere(case.truth.cam_from_world, 9, 10)
    K = case.observations.intrinsics[:1].expand(FRAMES, 4)
    evidence = gather_evidence(case.graph.edges, case.matches, cameras, K, case.observations.size, CONFIG)
    asked, trusted = torch.zeros(FRAMES, dtype=torch.bool), torch.ones(FRAMES, dtype=torch.bool)
    asked[8:11] = True
    wrong = contradicted_alone(case.graph.edges, evidence, asked, trusted, CONFIG)
    assert wrong.nonzero().squeeze(1).tolist() == [9]
    trusted[9] = False
    assert not contradicted_alone(case.graph.edges, evidence, asked, trusted, CONFIG).any()

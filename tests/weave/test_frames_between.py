"""Frames without matches stand in no mean: a clip at 60 frames a second ends as the same at 12."""

from dataclasses import replace

import torch

from geoweaver.datatypes import ViewGraph
from geoweaver.weave import WeaveConfig, Woven, weave
from tests.weave.tiny import Tiny, tiny, woven

SPACING = 5


def between_frames(case: Tiny) -> Woven:
    """The same keyframes and matches in a video that has more frames between them."""
    priors = tuple(replace(p, frame=SPACING * p.frame) for p in case.priors)
    graph = ViewGraph(SPACING * case.graph.edges, case.graph.kind)
    group = torch.zeros(SPACING * (len(case.truth) - 1) + 1, dtype=torch.long)
    observations = replace(case, priors=priors).observations
    return weave(observations, graph, case.matches, priors.__getitem__, group, False, WeaveConfig())


def test_frames_between_keyframes_weigh_nothing() -> None:
    case = tiny(frames=24, chunk=10, laps=0.3, per_edge=80)
    alone, among = woven(case), between_frames(case)
    for name in ("depth_scale", "depth_shift", "depth_bend"):
        change = getattr(alone.state, name) - getattr(among.state, name)[::SPACING]
        assert change.abs().max() < 1e-6, name
    assert (alone.state.focal_delta - among.state.focal_delta).abs().max() < 1e-4
    change = alone.state.cam_from_world.centre - among.state.cam_from_world.centre[::SPACING]
    assert change.abs().max() < 1e-6
    # the errors' signs are drawn by frame: sigmas agree but for chance
    ratio = among.trust.sigma[::SPACING][1:] / alone.trust.sigma[1:]
    assert 0.7 < float(ratio.median()) < 1.4

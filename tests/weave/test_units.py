"""The unit of length, the chunks' gauges and the order of an edge's ends are nobody's business."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from geoweaver.assembly.frame_problem import frame_problem
from geoweaver.assembly.frame_settings import FrameRefinementConfig
from geoweaver.geometry import SE3
from geoweaver.weave import Woven
from tests.assembly.test_problems import frame_setup, shaken
from tests.weave.tiny import Tiny, tiny, woven


@cache
def metres() -> tuple[Tiny, Woven]:
    """Depth in double precision: what float32 rounds away differs between units."""
    case = tiny(frames=22, chunk=8, laps=0.25, per_edge=80)
    case = replace(case, priors=tuple(replace(p, depth=p.depth.double()) for p in case.priors))
    return case, woven(case)


def in_unit(case: Tiny, per_chunk: list[float]) -> Tiny:
    """The same predictions with each chunk's lengths multiplied."""
    priors = [
        replace(
            p,
            depth=c * p.depth,
            cam_from_chunk=SE3(p.cam_from_chunk.rotation, c * p.cam_from_chunk.translation),
        )
        for c, p in zip(per_chunk, case.priors, strict=True)
    ]
    return replace(case, priors=tuple(priors))


@pytest.mark.parametrize("factors", [[1e-3] * 3, [1e3] * 3, [1e3, 1e-3, 7.0]], ids=["mm", "km", "mixed"])
def test_the_same_trajectory_in_every_unit(factors: list[float]) -> None:
    case, reference = metres()
    result = woven(in_unit(case, factors))
    ours, theirs = result.state.cam_from_world, reference.state.cam_from_world
    assert torch.allclose(ours.rotation, theirs.rotation, atol=1e-6)
    # the world's unit is the first chunk's median depth, whatever it is called
    size = theirs.centre.std(0).norm()
    assert float((ours.centre - theirs.centre).norm(dim=-1).max() / size) < 1e-6
    assert torch.allclose(result.state.depth_scale, reference.state.depth_scale, atol=1e-6)
    assert torch.allclose(result.trust.sigma, reference.trust.sigma, rtol=1e-3)
    assert result.trust.reason == reference.trust.reason
    assert result.tables.units[0] == pytest.approx(factors[0] * float(reference.tables.units[0]), rel=1e-9)


def test_an_edge_has_no_direction() -> None:
    """The 3D residual over the geometric mean of depths, and both ways in the images: i and j are alike."""
    _, start = frame_setup(0.02)
    m = start.matches
    turned = replace(
        m, observation_i=m.observation_j, observation_j=m.observation_i, pixel_i=m.pixel_j, pixel_j=m.pixel_i,
        depth_i=m.depth_j, depth_j=m.depth_i,
    )  # fmt: skip
    config, state = FrameRefinementConfig(), shaken(start.state, 0.02)
    for phase in config.phases:
        here = frame_problem(m, start.setup, config, phase).loss(state)
        there = frame_problem(turned, start.setup, config, phase).loss(state)
        assert here == pytest.approx(there, rel=1e-9)

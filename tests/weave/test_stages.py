"""`--stages`: what comes after the last stage that is run keeps what that stage left."""

from dataclasses import replace

import pytest
import torch

from geoweaver.stage_views import stage_views
from geoweaver.weave import WeaveConfig
from tests.weave.tiny import assert_finite, ate, tiny, woven


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_weave_may_end_after_any_stage(stages: int) -> None:
    case = tiny(frames=24, chunk=12, laps=0.6, per_edge=80)
    config = replace(WeaveConfig(), stages=stages)
    result = woven(case, config)
    assert_finite(result)
    assert (result.state.depth_bend is not None) == (stages == 3)
    same = torch.equal(result.state.cam_from_world.translation, result.start.cam_from_world.translation)
    assert same == (stages < 3)
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.5
    assert len(stage_views(result, config)) == 3
    assert int(result.trust.trusted.sum()) >= 20

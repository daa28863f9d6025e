"""The paper's own recipe, end to end."""

from dataclasses import replace

import pytest

from geoweaver.assembly.stopping import StopRule
from geoweaver.weave import input_layouts, paper_config
from tests.weave.tiny import assert_finite, ate, tiny, woven


@pytest.mark.slow
def test_the_paper_preset_runs_end_to_end() -> None:
    case, paper = tiny(frames=34, chunk=12), paper_config()
    few = StopRule(most=60, window=200, median_only=True)
    alignment = replace(paper.alignment, solver=replace(paper.alignment.solver, adam_rule=few))
    refinement = replace(paper.refinement, adam_rule=replace(few, most=150))
    result = woven(case, replace(paper, alignment=alignment, refinement=refinement))
    assert_finite(result)
    assert [r.name for r in result.reports[2:]] == ["coarse refinement", "fine refinement"]
    assert [r.iterations for r in result.reports[1:]] == [60, 150, 150]
    for report in result.reports[2:]:
        assert report.objective[-1] < report.objective[0]
    _, second = input_layouts(result)
    scales = second.world_from_chunk.scale / case.world_from_chunk.scale
    assert float((scales / scales.median() - 1).abs().max()) < 0.1
    # so few of Adam's steps need not improve on the start, but they must stay near it
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.2
    assert result.trust.trusted.any()

"""What run.json says of the whole: warnings, and the stages in their order."""

import torch

from geoweaver.clock import Lap
from geoweaver.datatypes import EdgeKind, StageReport, ViewGraph
from geoweaver.export.run_folder import _stages, warnings


def graph(far: int) -> ViewGraph:
    kind = torch.tensor([EdgeKind.TEMPORAL] * 50 + [EdgeKind.LONG_RANGE] * far)
    edges = torch.stack([torch.arange(len(kind)), torch.arange(len(kind)) + 400], 1)
    return ViewGraph(edges, kind)


def test_most_loops_rejected() -> None:
    rejected = torch.zeros(90, dtype=torch.bool)
    rejected[60:] = True
    (warning,) = warnings(graph(40), rejected)
    assert "30 of 40" in warning


def test_a_few_look_alikes_are_no_reason_to_warn() -> None:
    rejected = torch.zeros(90, dtype=torch.bool)
    rejected[80:] = True
    assert warnings(graph(40), rejected) == []
    assert warnings(graph(0), torch.ones(50, dtype=torch.bool)) == []


def test_the_weaves_own_stages_stand_behind_it() -> None:
    parts = [Lap(name, 1.0, None, ()) for name in ("priors", "weave", "exports")]
    listed = [stage["name"] for stage in _stages(parts, [StageReport("chunk alignment")])]
    assert listed == ["priors", "weave", "chunk alignment", "exports"]
    assert [stage["name"] for stage in _stages(parts[:1], [StageReport("a")])] == ["priors", "a"]


def test_reports_are_of_the_second_turn_where_there_is_one() -> None:
    parts = [Lap(name, 1.0, None, ()) for name in ("weave", "polish", "second weave", "second polish")]
    listed = [stage["name"] for stage in _stages(parts, [StageReport("a"), StageReport("bundle adjustment")])]
    assert listed == ["weave", "polish", "second weave", "a", "second polish", "bundle adjustment"]


def test_bundle_adjustment_stands_behind_the_polish() -> None:
    parts = [Lap(name, 1.0, None, ()) for name in ("weave", "polish", "exports")]
    reports = [StageReport("fine refinement"), StageReport("bundle adjustment")]
    listed = [stage["name"] for stage in _stages(parts, reports)]
    assert listed == ["weave", "fine refinement", "polish", "bundle adjustment", "exports"]

"""A map that most of its loops contradict is not handed over without a word."""

import torch

from geoweaver.datatypes import EdgeKind, ViewGraph
from geoweaver.export.run_folder import warnings


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

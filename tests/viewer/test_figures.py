"""Every figure shows what the run holds and can be written."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from geoweaver.viewer import figures
from tests.viewer.report_runs import made_run

EVERY = [
    figures.trajectory_figure, figures.convergence_figure, figures.residual_figure,
    figures.depth_scale_figure, figures.graph_figure,
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made_run(tmp_path_factory.mktemp("run"))


def labels(axes):
    return {text.get_text() for text in axes.get_legend().get_texts()}


@pytest.mark.parametrize("make", EVERY)
def test_figures_can_be_written(run, make):
    made = make(run)
    assert isinstance(made, Figure)
    file = io.BytesIO()
    made.savefig(file, format="svg")
    assert file.tell() > 5000


@pytest.mark.parametrize("make", EVERY)
def test_a_run_without_stages_and_edges(run, make):
    none = torch.zeros(0, dtype=torch.long)
    graph = replace(run.graph, edges=none.reshape(0, 2), kind=none)
    bare = replace(
        run, views=(), graph=graph, rejected=none.bool(), summary={}, result=replace(run.result, reports=())
    )
    make(bare).savefig(io.BytesIO(), format="svg")


def test_the_path_shows_trust_loops_and_the_reference(run):
    (axes,) = figures.trajectory_figure(run, run.result.cam_from_world.centre).axes
    assert {
        "trusted",
        "not trusted",
        "reference",
        "3 pairs believed",
        "1 pairs rejected",
        "chunk border",
    } <= labels(axes)
    doubted = next(line for line in axes.lines if line.get_label() == "not trusted")
    assert len(doubted.get_xdata()) == 4


def test_convergence_shows_each_stage(run):
    (axes,) = figures.convergence_figure(run).axes
    assert labels(axes) == {r.name for r in run.result.reports}


def test_residuals_end_at_the_share_that_is_finite(run):
    made = figures.residual_figure(run)
    assert len(made.axes) == 4
    for line in made.axes[0].lines:
        assert line.get_ydata()[-1] == pytest.approx(0.99, abs=0.01)
    first, _, last = (np.asarray(line.get_ydata()) for line in made.axes[0].lines)
    assert (last >= first - 1e-9).all()


def test_formulas_in_names_are_text(run):
    strange = replace(run.result.reports[0], name="_a$b$c_{")
    made = figures.convergence_figure(
        replace(run, summary={}, result=replace(run.result, reports=(strange,)))
    )
    made.savefig(io.BytesIO(), format="svg")
    assert len(labels(made.axes[0])) == 1

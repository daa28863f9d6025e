"""The report's parts: words, pictures, cloud, axes, distributions."""

from itertools import pairwise

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoweaver.formats.ply import PlyCloud
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import so3_exp
from geoweaver.geometry.upright import up_direction
from geoweaver.results import DepthMap
from geoweaver.viewer.figures_data import (
    chunk_borders,
    distribution,
    median_error,
    objective_traces,
    page_axes,
    stage_centres,
)  # fmt: skip
from geoweaver.viewer.report_cloud import report_cloud
from geoweaver.viewer.report_html import Html, json_script, packed, tag
from geoweaver.viewer.report_pictures import chosen_frames, depth_picture, picture_strip
from geoweaver.viewer.report_scene import ceiling
from geoweaver.viewer.report_words import counted, doubts, duration, ranges, size
from tests.synth.pillar_room import walk
from tests.viewer.report_runs import made_run


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (42.4, "42 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_sizes_and_counts():
    assert [size(x) for x in (12, 4e5, 812_000_000, 3.456e9)] == ["12 bytes", "400 kB", "812 MB", "3.46 GB"]
    assert [counted(1, "frame"), counted(1200, "frame")] == ["1 frame", "1,200 frames"]


@given(st.sets(st.integers(0, 60)))
def test_ranges_name_every_frame_once(frames):
    named = []
    for part in filter(None, ranges(frames).split(", ")):
        first, _, last = part.partition(" to ")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(frames)


@given(st.text(), st.text())
def test_text_is_never_markup(text, value):
    made = tag("p", text, title=value)
    assert made.count("<") == 2 and made.count(">") == 2 and made.count('"') == 2
    assert tag("div", tag("b", "x")) == "<div><b>x</b></div>" and isinstance(made, Html)
    assert json_script("data", [text]).count("<") == 2


def test_attributes():
    assert (
        tag("input", type="range", min=0, checked=False, hidden=True, id=None)
        == '<input type="range" min="0" hidden>'
    )
    assert packed(np.array([1, 2]), "u2") == "AQACAA=="


def test_doubts_are_grouped_by_kind_of_reason(tmp_path):
    found = doubts(made_run(tmp_path))
    assert [d.frames for d in found] == [(7, 8, 9), (20,)]


def test_chosen_frames_are_few_and_hold_the_untrusted(tmp_path):
    run = made_run(tmp_path, frames=700, doubted=tuple(range(100, 300)))
    frames = chosen_frames(run)
    assert len(frames) <= 200 and frames == sorted(set(frames)) and frames[0] == 0 and frames[-1] == 699
    assert sum(not run.result.trusted[f] for f in frames) >= 50
    assert max(b - a for a, b in pairwise(frames)) <= 6


def test_a_strip_is_three_pictures(tmp_path):
    run = made_run(tmp_path)
    strip = picture_strip(run, 2)
    shown = cv2.imdecode(np.frombuffer(strip.data, np.uint8), cv2.IMREAD_COLOR)
    assert shown.shape == (strip.height, strip.width, 3) == (108, 576, 3)
    assert not picture_strip(run, 20).has_depth


def test_near_is_bright_and_unknown_is_grey():
    depth = torch.tensor([[1.0, 2, 4, 0]]).repeat(4, 1)
    shown = depth_picture(DepthMap(depth, torch.ones(4, 4), torch.ones(4))).astype(int)
    near, middle, far, unknown = shown[0]
    assert near.sum() > middle.sum() > far.sum()
    assert np.ptp(unknown) == 0


def test_a_cloud_is_thinned_evenly_and_loses_what_flew_away(tmp_path):
    run = made_run(tmp_path)
    dense = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(1))
    dense[:15_000] *= 0.1  # three quarters in a thousandth of the room
    dense[-20:] += 1e4
    thin = report_cloud(run, PlyCloud(dense), [], most=2000)
    assert 1000 < len(thin) <= 2000 and thin.found == 20_000
    assert thin.points.max() < 5
    assert (thin.points < 0.1).all(-1).float().mean() < 0.3


def test_points_know_a_frame_that_saw_them(tmp_path):
    run = made_run(tmp_path)
    lifted = report_cloud(run, None, [0, 12])
    assert set(lifted.frame.tolist()) == {0, 12}
    seen = run.depths.points(0)[500:3000].float()
    floating = 0.8 * seen[1000:1001] + 0.2 * run.result.cam_from_world[0].centre.float()
    found = report_cloud(run, PlyCloud(torch.cat([seen, floating])), [0])
    assert len(found) == len(seen) + 1
    assert (found.frame[:-1] == 0).float().mean() > 0.99
    assert found.frame[-1] == -1


def test_the_page_is_turned_with_the_world():
    path = walk(40)
    turned = SE3(path.rotation @ so3_exp(torch.tensor([0.4, -1.0, 2.0]).double()).mT, path.translation)
    axes = page_axes(turned)
    assert torch.allclose(axes @ axes.mT, torch.eye(3).double(), atol=1e-9) and torch.linalg.det(axes) > 0
    assert torch.allclose(axes[2], up_direction(turned))


def test_one_camera_has_axes():
    axes = page_axes(walk(1))
    assert torch.allclose(axes @ axes.mT, torch.eye(3).double(), atol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_a_room_is_opened_below_its_roof(unit):
    generator = torch.Generator().manual_seed(0)
    floor = torch.rand(4000, 3, generator=generator).double() * torch.tensor([8.0, 8.0, 0.0])
    roof = floor + torch.tensor([0, 0, 3.0])
    centres = torch.stack(
        [torch.linspace(1, 7, 30), torch.full((30,), 4.0), torch.full((30,), 1.6)], -1
    ).double()
    assert ceiling(unit * floor, unit * centres) is None
    cut = ceiling(unit * torch.cat([floor, roof]), unit * centres)
    assert 1.6 * unit < cut < 3 * unit


def test_a_street_that_climbs_has_no_ceiling():
    at = torch.rand(4000, 2, generator=torch.Generator().manual_seed(0)).double() * torch.tensor([10.0, 2.0])
    both = torch.cat([torch.cat([at, torch.full((4000, 1), h).double()], 1) for h in (0.0, 1.0)])
    x = torch.linspace(0, 10, 50).double()
    centres = torch.stack([x, torch.ones_like(x), torch.full_like(x, 0.6)], 1)
    climb = torch.tensor([0.0, 0.0, 0.5]).double()
    assert ceiling(both, centres) is not None
    assert ceiling(both + both[:, :1] * climb, centres + centres[:, :1] * climb) is None


def test_distributions_count_what_is_not_finite():
    errors = torch.tensor([0.1, 1.0, 10.0, torch.inf, torch.nan]).double()
    found = distribution("x", errors, torch.logspace(-2, 2, 81, dtype=torch.float64))
    assert found.share[-1] == pytest.approx(0.6) and found.share[0] == 0
    assert bool((found.share.diff() >= 0).all()) and bool((found.density >= 0).all())
    assert median_error(errors) == 10.0


def test_the_density_adds_up_to_all_matches():
    errors = torch.randn(5000, generator=torch.Generator().manual_seed(0)).double().exp()
    found = distribution("x", errors, torch.logspace(-2, 2, 81, dtype=torch.float64))
    assert float(found.density.sum()) * 4 / 80 == pytest.approx(1, abs=0.01)
    assert float(found.at[found.density.argmax()]) == pytest.approx(1, rel=0.4)


def test_traces_follow_each_other_and_borders_are_found(tmp_path):
    run = made_run(tmp_path)
    assert [t.first for t in objective_traces(run)] == [0, 5, 16]
    assert chunk_borders(run) == [12, 24]


def test_stages_are_moved_into_the_final_world(tmp_path):
    run = made_run(tmp_path)
    first, _, last = (centres for _, centres in stage_centres(run))
    final = run.result.cam_from_world.centre
    assert torch.allclose(last, final, atol=1e-9)
    assert 1e-3 < float((first - final).norm(dim=-1).mean()) < 0.1

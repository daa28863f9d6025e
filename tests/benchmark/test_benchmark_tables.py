"""The tables have the paper's form: its scores, its panels, its averages, and say plainly what is missing."""

import re

import pytest

from geoweaver.benchmark.paper_suites import MIP_NERF, TANKS
from geoweaver.benchmark.plan import METHODS, OWN
from geoweaver.benchmark.published import PUBLISHED, PUBLISHED_STAGES
from geoweaver.benchmark.suites import SUITES
from geoweaver.benchmark.tables import LABELS, as_markdown, mean


def row(scene: str, method: str = "geoweaver", **scores) -> dict:
    told = {"auc3": 50.0, "auc5": 60.0, "auc30": 90.0, "ate": 0.1, "rre_deg": 1.0, "frames": 9, "matched": 9}
    return {"scene": scene, "method": method, "status": "done", **told, **scores}


def cells(page: str, first: str) -> list[list[str]]:
    """The lines of the page's tables that begin with a word, cell by cell."""
    lines = [line for line in page.splitlines() if re.match(rf"\| {re.escape(first)} *\|", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_a_line_per_method_two_scores_per_scene_and_the_average_last():
    rows = [row(name, auc3=10.0 * k, ate=0.01 * k) for k, name in enumerate(TANKS)]
    page = as_markdown("tanks-and-temples", rows, TANKS, ("geoweaver",))
    (head,) = cells(page, "Method")
    assert head[:3] == ["Method", "Barn AUC↑", "Barn ATE↓"] and head[-2:] == ["Average AUC↑", "Average ATE↓"]
    assert len(head) == 1 + 2 * 7
    (ours,) = cells(page, "GeoWeaver")
    assert ours[1:5] == ["0.0", "0.000", "10.0", "0.010"] and ours[-2:] == ["25.0", "0.025"]
    (paper,) = cells(page, "GeoWeaver, as the paper prints it")
    assert paper[1:3] == ["52.8", "0.047"] and paper[-2:] == ["72.9", "0.023"]


def test_spires_show_rotations_as_the_paper_does():
    page = as_markdown("oxford-spires", [row("keble-04", rre_deg=0.5)], ("keble-04",), ("geoweaver",))
    (head,), (ours,) = cells(page, "Method"), cells(page, "GeoWeaver")
    assert head[1:3] == ["keble-04 RRE↓", "keble-04 ATE↓"] and ours[1:3] == ["0.500", "0.100"]


def test_nine_scenes_are_two_panels_of_five():
    page = as_markdown("mip-nerf-360", [row(name) for name in MIP_NERF], MIP_NERF, ("geoweaver",))
    one, two = cells(page, "Method")
    assert len(one) == len(two) == 11 and one[-1] == "garden ATE↓" and two[-1] == "Average ATE↓"


def test_an_average_over_some_scenes_says_so():
    rows = [row("Barn", auc3=20.0), row("Truck", auc3=40.0)]
    rows += [{"scene": "Ignatius", "method": "geoweaver", "status": "failed", "reason": "a | b"}]
    rows += [{"scene": n, "method": None, "status": "not found", "reason": "no images"} for n in TANKS[1:3]]
    scenes = ("Barn", "Caterpillar", "Courthouse", "Ignatius", "Truck")
    page = as_markdown("tanks-and-temples", rows, scenes, ("geoweaver",))
    (ours,) = cells(page, "GeoWeaver")
    assert ours[3] == "not found" and ours[7] == "failed" and ours[-2] == "30.0 (2 of 5)"
    assert mean(rows, "geoweaver", "auc3") == (30.0, 2) and mean(rows, "colmap", "auc3") == (None, 0)
    assert cells(page, "Caterpillar")[0][1:3] == ["-", "not found"]
    assert "- Caterpillar: not found: no images" in page
    assert "- Ignatius, GeoWeaver: failed: a | b" in page


def test_the_ablation_has_the_papers_form():
    rows = [row("Barn", m, ate=0.3 / k, auc3=20.0 * k) for k, m in enumerate(OWN[1:], 1)]
    page = as_markdown("tanks-and-temples", rows, ("Barn",), OWN[1:])
    lines = cells(page, "✓")
    assert [line[:3] for line in lines] == [["✓", "–", "–"], ["✓", "✓", "–"], ["✓", "✓", "✓"]]
    assert [line[3:5] for line in lines] == [["0.300", "20.0"], ["0.150", "40.0"], ["0.100", "60.0"]]
    assert [line[5:] for line in lines] == [["0.674", "24.4"], ["0.075", "43.8"], ["0.023", "72.9"]]
    assert "Seq. Init." not in as_markdown("tanks-and-temples", rows, ("Barn",), ("geoweaver",))


def test_every_line_of_a_table_has_as_many_cells():
    rows = [row("a", m, seconds=3.2, peak_mib=7.0, absrel=0.1, total=9, trusted=8) for m in METHODS]
    rows += [{"scene": "b|c", "method": None, "status": "not found", "reason": "gone"}]
    page = as_markdown("folder", rows, ("a", "b|c"), METHODS)
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
    assert set(LABELS) == set(METHODS)


@pytest.mark.parametrize("suite", PUBLISHED)
def test_published_scenes_are_the_suites_own(suite, tmp_path):
    assert set(PUBLISHED[suite]) == {*SUITES[suite].find(tmp_path, False), "Average"}
    assert set(PUBLISHED_STAGES) <= set(PUBLISHED)

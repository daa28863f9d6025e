"""Figures of paths that have little to do with each other come with a warning, others without."""

import json

import pytest
from tum_walks import save, walk


def test_two_unrelated_walks(evaluate, tmp_path, reference):
    other = save(tmp_path / "other.tum", walk(seed=5))
    result = evaluate(other, reference, "--json")
    assert result.returncode == 0
    told = json.loads(result.stdout)["warnings"]
    assert len(told) == 1 and "do not resemble each other" in told[0]
    assert result.stderr.count("\n") == 1 and "other.tum" in result.stderr and told[0] in result.stderr


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_length_does_not_matter(scores, tmp_path, unit):
    truth, other = walk(), walk(seed=5)
    for rows in (truth, other):
        rows[:, 1:4] *= unit
    reference = save(tmp_path / "reference.tum", truth)
    assert "resemble" in scores(save(tmp_path / "other.tum", other), reference)["warnings"][0]
    truth[:, 1:4] += unit * walk(seed=7)[:, 1:4] * 0.02
    assert "warnings" not in scores(save(tmp_path / "near.tum", truth), reference)


def test_hardly_any_common_frames(evaluate, scores, tmp_path, reference):
    rows = walk()
    rows[4:, 0] += 1000
    late = save(tmp_path / "late.tum", rows)
    (told,) = scores(late, reference)["warnings"]
    assert "only 4 frames" in told and "(20)" in told and "by time" in told
    table = evaluate(late, reference)
    assert table.stderr == f"WARNING: {late}: {told}\n" and "warnings" not in table.stdout


def test_few_frames_that_all_have_a_partner_are_no_reason(scores, tmp_path, reference):
    assert "warnings" not in scores(save(tmp_path / "few.tum", walk()[:4]), reference)


def test_of_several_estimates_the_doubtful_one_is_named(scores, tmp_path, estimate, reference):
    other = save(tmp_path / "other.tum", walk(seed=5))
    good, bad = scores(estimate, other, reference)
    assert "warnings" not in good and bad["warnings"]

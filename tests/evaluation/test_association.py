import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scored_walks import trajectory, walk

from geoweaver.errors import DegenerateError
from geoweaver.evaluation import associate


def pairs(association):
    return list(zip(association.estimate.tolist(), association.reference.tolist(), strict=True))


def timed(times):
    return trajectory(walk(len(times)), times=times)


def named(*names, times=None):
    return trajectory(walk(len(names)), names=names, times=times)


def test_names_come_first_even_if_times_disagree():
    result = associate(named("b.jpg", "a.jpg", times=[0, 1]), named("a.jpg", "b.jpg", times=[0, 1]))
    assert result.by == "name"
    assert pairs(result) == [(1, 0), (0, 1)]


def test_one_side_without_names_goes_by_time():
    result = associate(named("b.jpg", "a.jpg", times=[5, 6]), timed([4.0, 5.001, 6.0]))
    assert result.by == "time"
    assert pairs(result) == [(0, 1), (1, 2)]


def test_one_side_without_times_goes_by_index():
    strided = trajectory(walk(3), times=[0, 5, 10], index=[0, 5, 10])
    result = associate(strided, trajectory(walk(8)))
    assert result.by == "index"
    assert pairs(result) == [(0, 0), (1, 5)]


@pytest.mark.parametrize(
    "other",
    [("images/1.jpg", "images/2.jpg"), ("1.png", "2.png"), ("./a/1.png", "./a/2.png"), ("1", "2")],
)
def test_folders_and_endings_of_names_need_not_agree(other):
    assert pairs(associate(named("1.jpg", "2.jpg", "3.jpg"), named(*other))) == [(0, 0), (1, 1)]


def test_equal_base_names_in_two_folders_are_not_mixed_up():
    estimate = named("left/1.jpg", "right/1.jpg")
    reference = named("right/1.png", "left/1.png", "left/2.png")
    assert pairs(associate(estimate, reference)) == [(1, 0), (0, 1)]


def test_ambiguous_base_names_do_not_match():
    with pytest.raises(DegenerateError, match="no image name"):
        associate(named("left/1.jpg", "right/1.jpg"), named("1.jpg", "2.jpg"))


def test_each_frame_is_used_once_and_the_closest_wins():
    result = associate(timed([1.004, 1.001, 2.0]), timed([1.0, 1.5, 2.0]), max_time_diff=0.01)
    assert pairs(result) == [(1, 0), (2, 2)]


def test_a_frame_whose_nearest_is_taken_gets_the_next():
    assert pairs(associate(timed([1.0, 1.3]), timed([1.2, 1.9]), max_time_diff=1)) == [(1, 0), (0, 1)]


def test_equal_stamps_pair_in_file_order():
    rig = [0.0, 0.0, 1.0, 1.0, 1.0]
    assert pairs(associate(timed(rig), timed(rig))) == [(i, i) for i in range(5)]


def test_unsorted_times():
    assert pairs(associate(timed([3.0, 1.0, 2.0]), timed([2.0, 3.0, 1.0]))) == [(2, 0), (0, 1), (1, 2)]


stamps = st.lists(st.integers(0, 60), min_size=1, max_size=12)


@given(stamps, stamps, st.integers(0, 20))
def test_time_matching_is_the_greedy_one(a, b, tolerance):
    a, b = [t / 8 for t in a], [t / 8 for t in b]
    tolerance = tolerance / 8
    candidates = sorted(
        (abs(s - t), i, j) for i, s in enumerate(a) for j, t in enumerate(b) if abs(s - t) <= tolerance
    )
    greedy = []
    for difference, i, j in candidates:
        if all(i != k and j != m for _, k, m in greedy):
            greedy.append((difference, i, j))
    if not greedy:
        with pytest.raises(DegenerateError):
            associate(timed(a), timed(b), tolerance)
        return
    result = associate(timed(a), timed(b), tolerance)
    assert len(set(result.estimate.tolist())) == len(set(result.reference.tolist())) == len(result)
    differences = [abs(a[i] - b[j]) for i, j in pairs(result)]
    # ties may be broken either way: the largest difference and the smallest are what both agree on
    assert max(differences) <= tolerance
    assert min(differences) == greedy[0][0]
    free_a = set(range(len(a))) - set(result.estimate.tolist())
    free_b = set(range(len(b))) - set(result.reference.tolist())
    assert all(abs(a[i] - b[j]) > tolerance for i in free_a for j in free_b), "a pair was left over"


def test_thousands_of_equal_stamps_and_a_huge_tolerance_stay_quick():
    times = torch.from_numpy(np.random.default_rng(0).integers(0, 50, 3000).astype(float))
    assert len(associate(timed(times), timed(times.flip(0)), 1e9)) == 3000


@pytest.mark.parametrize(
    ("estimate", "reference", "words"),
    [
        (timed([0.0, 1.0, 2.0]), timed([1e9, 1e9 + 1]), "one clock and unit"),
        (named("a", "b"), named("c", "d"), "no image name"),
        (trajectory(walk(2), index=[0, 1]), trajectory(walk(2), index=[7, 8]), "no index"),
    ],
)
def test_nothing_in_common_is_said(estimate, reference, words):
    with pytest.raises(DegenerateError, match=words) as caught:
        associate(estimate, reference)
    assert "\n" not in str(caught.value)

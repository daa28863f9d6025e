import pytest
import torch

from geoweaver.errors import DegenerateError, InputError
from geoweaver.evaluation.depth import DepthFrame, at_size, score_depth


def depth(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_the_equations_by_hand():
    frame = DepthFrame(depth([2.0, 3.0], [5.0, 1.0]), depth([1.0, 4.0], [5.0, 2.0]))
    scores = score_depth([frame])
    assert scores.absrel == pytest.approx((1 / 1 + 1 / 4 + 0 + 1 / 2) / 4)
    assert scores.sqrel == pytest.approx((1 / 1 + 1 / 4 + 0 + 1 / 2) / 4)
    scores = score_depth([frame], scale=2.0)
    assert scores.absrel == pytest.approx((3 / 1 + 2 / 4 + 5 / 5 + 0) / 4)
    assert scores.sqrel == pytest.approx((9 / 1 + 4 / 4 + 25 / 5 + 0) / 4)


def test_invalid_reference_and_non_positive_prediction_are_left_out():
    nan, inf = float("nan"), float("inf")
    frame = DepthFrame(
        depth([1.1, 9.0, 9.0, nan, -1.0, 0.0, inf]), depth([1.0, 0.0, nan, 1.0, 1.0, 1.0, 1.0])
    )
    scores = score_depth([frame])
    assert scores.absrel == pytest.approx(0.1)
    assert scores.coverage == pytest.approx(1 / 5)


def test_frames_are_pooled_by_pixel():
    few = DepthFrame(depth([2.0, 0.0], [0.0, 0.0]), depth([1.0, 1.0], [1.0, 1.0]))
    many = DepthFrame(depth([1.0, 1.0], [1.0, 1.0]), depth([1.0, 1.0], [1.0, 1.0]))
    scores = score_depth(iter([few, many]))
    assert scores.absrel == pytest.approx(1 / 5)
    assert scores.frames == 2
    assert scores.coverage == pytest.approx(5 / 8)


def test_one_scale_for_the_sequence_unless_medians_are_asked_for():
    truth = depth([1.0, 2.0, 3.0])
    frames = [DepthFrame(2 * truth, truth), DepthFrame(4 * truth, truth)]
    assert score_depth(frames, scale=0.5).absrel == pytest.approx(0.5)
    assert score_depth(frames, scale=0.5, align="median").absrel == pytest.approx(0)


def test_medians_are_of_valid_pixels_and_of_even_counts_the_mean():
    frame = DepthFrame(depth([1.0, 3.0, 0.0]), depth([2.0, 6.0, 100.0]))
    assert score_depth([frame], align="median").absrel == pytest.approx(0)


def test_the_confident_half():
    frame = DepthFrame(depth([1.0, 1.0, 2.0, 3.0]), torch.ones(1, 4).double(), depth([0.9, 0.8, 0.1, 0.2]))
    scores = score_depth([frame])
    assert scores.absrel == pytest.approx(3 / 4)
    assert scores.absrel_confident == pytest.approx(0)
    assert "absrel_confident" not in score_depth([DepthFrame(frame.predicted, frame.reference)]).row()


def test_half_precision_is_summed_in_double():
    truth = torch.full((200, 300), 1.0)
    scores = score_depth([DepthFrame(torch.full((200, 300), 1.5).half(), truth)])
    assert scores.absrel == pytest.approx(0.5, rel=1e-12)


def test_another_size_of_the_same_view():
    small = depth([1.0, 2.0], [3.0, 4.0])
    large = at_size(small, 6, 6)
    assert large.tolist() == [[1, 1, 1, 2, 2, 2]] * 3 + [[3, 3, 3, 4, 4, 4]] * 3
    assert torch.equal(at_size(large, 2, 2), small)
    assert at_size(depth([1.0, 2, 3], [4, 5, 6], [7, 8, 9]), 2, 2).tolist() == [[1, 3], [7, 9]]
    assert score_depth([DepthFrame(small, at_size(small, 6, 6))]).absrel == 0


def test_another_view_is_refused():
    with pytest.raises(InputError, match="field of view"):
        score_depth([DepthFrame(torch.ones(4, 4), torch.ones(4, 6))])


def test_nothing_to_compare_is_said():
    with pytest.raises(DegenerateError, match="no pixel of 1 depth maps"):
        score_depth([DepthFrame(torch.zeros(4, 4), torch.ones(4, 4))])

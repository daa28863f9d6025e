import pytest
import torch

from geoweaver.errors import ConfigError, DegenerateError
from geoweaver.evaluation import cloud as cloud_module
from geoweaver.evaluation import score_cloud


def points(count, seed=0):
    return torch.rand(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_by_hand():
    estimate = torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]], dtype=torch.float64)
    reference = torch.tensor([[0.0, 0.1, 0], [1, 0, 0.3], [1, 9, 0], [1, 0, 0]], dtype=torch.float64)
    scores = score_cloud(estimate, reference, threshold=0.2)
    assert scores.accuracy == pytest.approx((0.1 + 0 + 4) / 3)
    assert scores.completeness == pytest.approx((0.1 + 0.3 + 9 + 0) / 4)
    assert scores.precision == pytest.approx(200 / 3)
    assert scores.recall == pytest.approx(50)
    assert scores.fscore == pytest.approx(2 * (200 / 3) * 50 / (200 / 3 + 50))


def test_brute_force_and_blocks(monkeypatch):
    estimate, reference = points(157), points(211, seed=1)
    monkeypatch.setattr(cloud_module, "_BLOCK", 50)
    distances = torch.cdist(estimate, reference)
    scores = score_cloud(estimate, reference, 0.1)
    assert scores.accuracy == pytest.approx(float(distances.min(1).values.mean()))
    assert scores.completeness == pytest.approx(float(distances.min(0).values.mean()))
    assert scores.precision == pytest.approx(100 * float((distances.min(1).values <= 0.1).double().mean()))


def test_a_part_is_accurate_but_not_complete():
    reference = points(1000)
    scores = score_cloud(reference[reference[:, 0] < 0.5], reference, 1e-9)
    assert scores.precision == 100 and scores.accuracy == 0
    assert 40 < scores.recall < 60 and scores.completeness > 0.05


def test_nothing_near_scores_zero():
    assert score_cloud(points(10), points(10) + 100, 0.1).fscore == 0


def test_subsampling_is_repeatable_and_close():
    estimate, reference = points(20000), points(20000, seed=1)
    full = score_cloud(estimate, reference, 0.05)
    some = [score_cloud(estimate, reference, 0.05, max_points=5000) for _ in range(2)]
    assert some[0] == some[1]
    assert some[0].recall == pytest.approx(full.recall, abs=10)
    assert some[0].accuracy > full.accuracy, "fewer reference points are farther away"


@pytest.mark.parametrize(
    ("estimate", "reference", "threshold", "error"),
    [
        (points(0), points(3), 0.1, DegenerateError),
        (points(3), points(3) * float("nan"), 0.1, DegenerateError),
        (points(3), points(3), 0.0, ConfigError),
        (points(3), points(3), float("nan"), ConfigError),
    ],
)
def test_what_cannot_be_scored_is_said(estimate, reference, threshold, error):
    with pytest.raises(error):
        score_cloud(estimate, reference, threshold)


def test_what_is_near_some_camera_is_told_by_the_median_depth():
    cameras = torch.tensor([[0.0, 0, 0], [10, 0, 0]], dtype=torch.float64)
    places = torch.tensor([[1.9, 0, 0], [2.1, 0, 0], [8.1, 0, 0]], dtype=torch.float64)
    assert cloud_module.near_cameras(places, cameras, median_depth=0.5).tolist() == [True, False, True]

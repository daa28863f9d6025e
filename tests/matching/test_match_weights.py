"""Weights: the model's confidence scale does not matter, unusable values weigh nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoweaver.matching.weights import (
    Normalisation,
    confidence_quantiles,
    match_probability,
    match_weight,
    normalised_confidence,
)


def confidence_map(seed: int = 0) -> torch.Tensor:
    return torch.rand(40, 60, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1


def gamma(confidence: torch.Tensor, how: Normalisation) -> torch.Tensor:
    quantiles = confidence_quantiles(confidence.numpy(), np.ones(confidence.shape))
    values = [normalised_confidence(c, quantiles, how == "rank", 4.0) for c in confidence.flatten().tolist()]
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("how", ["median", "rank"])
@settings(max_examples=20)
@given(factor=st.floats(1e-6, 1e6))
def test_a_models_scale_does_not_matter(how: Normalisation, factor: float) -> None:
    assert torch.allclose(gamma(confidence_map(), how), gamma(factor * confidence_map(), how), atol=0.01)


def test_rank_survives_any_monotone_scale_and_median_does_not() -> None:
    plain, bent = confidence_map(), confidence_map().exp() ** 3 + 1
    assert torch.allclose(gamma(plain, "rank"), gamma(bent, "rank"), atol=0.02)
    assert not torch.allclose(gamma(plain, "median"), gamma(bent, "median"), atol=0.2)


@pytest.mark.parametrize("how", ["median", "rank"])
def test_constant_confidence_is_typical_everywhere(how: Normalisation) -> None:
    assert torch.allclose(gamma(torch.full((8, 9), 7.0), how), torch.ones(72, dtype=torch.float64))


@pytest.mark.parametrize("how", ["median", "rank"])
def test_gamma_grows_with_confidence_and_is_typically_one(how: Normalisation) -> None:
    values = gamma(confidence_map(), how)
    assert (values[confidence_map().flatten().argsort()].diff() >= 0).all()
    assert abs(float(values.median()) - 1) < 0.02


def test_unusable_confidence_is_worth_nothing_and_spoils_nothing() -> None:
    spoiled = confidence_map()
    spoiled[0, :4] = torch.tensor([torch.nan, -1.0, 0.0, -torch.inf], dtype=torch.float64)
    values = gamma(spoiled, "median")
    assert (values[:4] == 0).all() and values.isfinite().all()
    assert torch.allclose(values[4:], gamma(confidence_map(), "median")[4:], rtol=0.02)


def test_unknown_depth_has_no_say_in_what_is_typical() -> None:
    confidence = confidence_map()
    depth = torch.zeros_like(confidence)
    depth[:20] = 1
    halves = torch.cat([confidence[:20], 100 * confidence[20:]])
    plain, loud = (confidence_quantiles(c.numpy(), depth.numpy()) for c in (confidence, halves))
    assert (plain == loud).all()


def test_one_very_sure_pixel_is_held_back() -> None:
    spiky = confidence_map()
    spiky[0, 0] = 1e9
    assert gamma(spiky, "median").max() == 4


def test_no_usable_confidence_at_all_is_no_error() -> None:
    assert (gamma(torch.zeros(3, 3), "median") == 0).all()
    assert (gamma(torch.full((3, 3), torch.nan), "rank") == 0).all()


def test_weight_is_score_times_the_geometric_mean() -> None:
    sides = [(True, True), (True, False), (False, True), (False, False)]
    assert [match_weight(0.5, 4.0, 1.0, *known) for known in sides] == [1.0, 2.0, 0.5, 0.0]


def test_probabilities_sum_to_one_and_follow_the_weight() -> None:
    assert [match_probability(w, 4.0) for w in (1.0, 0.0, 3.0)] == [0.25, 0.0, 0.75]
    assert match_probability(0.0, 0.0) == 0.0


def test_a_score_that_is_no_number_weighs_nothing() -> None:
    scores = (float("nan"), float("inf"), -1.0)
    assert [match_weight(score, 1.0, 1.0, True, True) for score in scores] == [0.0, 0.0, 0.0]

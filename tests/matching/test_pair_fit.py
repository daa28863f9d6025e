"""The quick robust similarity: right with outliers, unit-free, never a collapse."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoweaver.geometry import Sim3
from geoweaver.geometry.so3 import rotation_angle
from geoweaver.matching.pair_fit import fit_similarity, relative_distance
from geoweaver.matching.sampling import random_triples


def seen_points(count: int, rng: np.random.Generator) -> torch.Tensor:
    """Points in front of a camera."""
    depth = rng.uniform(1, 5, count)
    return torch.from_numpy(np.c_[rng.uniform(-0.6, 0.6, (count, 2)) * depth[:, None], depth])


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.floats(0, 0.6), st.floats(-6, 6))
def test_recovers_a_similarity_among_outliers(seed: int, share: float, log_unit: float) -> None:
    rng = np.random.default_rng(seed)
    source = seen_points(400, rng)
    tangent = torch.from_numpy(rng.normal(size=7) * [0.3, 0.2, 0.3, 0.1, 0.1, 0.1, 0.2])
    truth = Sim3.exp(tangent)
    target = truth.act(source)
    wrong = torch.from_numpy(rng.random(400)) < share
    target = torch.where(wrong[:, None], seen_points(400, rng), target)
    target = target * torch.from_numpy(1 + 0.01 * rng.normal(size=(400, 1)))
    unit = 10.0**log_unit
    triples = random_triples(rng, 400, 128)
    found = fit_similarity(source.numpy(), (target * unit).numpy(), np.ones(400), triples, 0.2)
    fit = Sim3(torch.tensor(found[0]).double(), *(torch.from_numpy(part) for part in found[1:]))
    assert abs(float(fit.scale / truth.scale / unit) - 1) < 0.02
    assert float(rotation_angle(fit.rotation @ truth.rotation.mT)) < 0.02
    assert float((fit.translation / unit - truth.translation).norm()) < 0.06


def test_a_collapsed_similarity_explains_nothing() -> None:
    rng = np.random.default_rng(0)
    source, target = seen_points(50, rng).numpy(), seen_points(50, rng).numpy()
    collapsed = 1e-6, np.eye(3), target.mean(0)
    assert (relative_distance(collapsed, source, target) > 0.2).all()
    assert (relative_distance((1e6, np.eye(3), -1e6 * target.mean(0)), target, source) > 0.2).all()


def test_points_on_a_line_or_in_one_place_give_finite_numbers() -> None:
    triples = random_triples(np.random.default_rng(0), 10, 16)
    line = np.arange(1.0, 11)[:, None] * np.array([0.1, 0.2, 1])
    for points in (line, np.ones((10, 3))):
        fit = fit_similarity(points, 2 * points, np.ones(10), triples, 0.2)
        assert all(np.isfinite(part).all() for part in fit)


def test_triples_are_three_different_rows() -> None:
    triples = np.sort(random_triples(np.random.default_rng(0), 4, 500), -1)
    assert (np.diff(triples) > 0).all() and triples.min() == 0 and triples.max() == 3
    assert len(np.unique(triples, axis=0)) == 4

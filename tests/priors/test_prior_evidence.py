"""A prediction is believed for what it explains: true, still and wrong ones, and where nobody can tell."""

import math
from dataclasses import replace

import pytest
import torch
from painted_wall import FOCAL, SIZE, ReadFeatures, Walk, sideways

from geoweaver.datatypes import ChunkPrior
from geoweaver.features import no_features
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import so3_exp
from geoweaver.priors.evidence import believed, unexplained_motion


@pytest.fixture(scope="module")
def taken() -> Walk:
    return sideways(9)


def true_prior(taken: Walk) -> ChunkPrior:
    n = len(taken.images)
    depth = torch.from_numpy(taken.depth)
    lens = torch.tensor([FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2], dtype=torch.float64)
    return ChunkPrior(torch.arange(n), depth, torch.ones_like(depth), taken.cam_from_world, lens.expand(n, 4))


def left(prior: ChunkPrior, taken: Walk) -> float:
    return unexplained_motion(prior, ReadFeatures(taken), SIZE)


def test_the_truth_explains_all_motion(taken: Walk) -> None:
    prior = true_prior(taken)
    assert left(prior, taken) < 0.05
    assert believed(prior, ReadFeatures(taken), SIZE) is prior


def test_any_unit_and_any_size_of_depth_map_will_do(taken: Walk) -> None:
    prior = true_prior(taken)
    cameras = SE3(prior.cam_from_chunk.rotation, prior.cam_from_chunk.translation * 1000)
    small = prior.depth[:, ::2, ::2] * 1000
    halved = replace(
        prior, depth=small, confidence=small, cam_from_chunk=cameras, intrinsics=prior.intrinsics / 2
    )
    assert left(halved, taken) < 0.1


def test_a_rough_prediction_is_still_believed(taken: Walk) -> None:
    prior = true_prior(taken)
    noise = 1 + 0.15 * torch.randn(prior.depth.shape, generator=torch.Generator().manual_seed(0))
    rough = replace(
        prior, depth=prior.depth * noise, intrinsics=prior.intrinsics * torch.tensor([1.08, 1.08, 1, 1])
    )
    assert left(rough, taken) < 0.4


def test_a_camera_at_rest_explains_nothing(taken: Walk) -> None:
    prior = true_prior(taken)
    still = replace(prior, cam_from_chunk=SE3.identity(len(prior)))
    assert left(still, taken) == pytest.approx(1, abs=0.01)
    doubted = believed(still, ReadFeatures(taken), SIZE)
    assert (doubted.confidence == 0).all() and torch.equal(doubted.depth, still.depth)


def test_wild_cameras_are_not_believed(taken: Walk) -> None:
    prior = true_prior(taken)
    wild = so3_exp(torch.randn(len(prior), 3, generator=torch.Generator().manual_seed(0)).double())
    cameras = SE3(wild, prior.cam_from_chunk.translation)
    assert left(replace(prior, cam_from_chunk=cameras), taken) > 1


def test_where_nothing_moves_or_shows_nobody_can_tell(taken: Walk) -> None:
    prior = true_prior(taken)
    assert math.isnan(unexplained_motion(prior, lambda frame: no_features(), SIZE))
    read = ReadFeatures(taken)
    assert math.isnan(unexplained_motion(prior, lambda frame: read(0), SIZE))
    one = ChunkPrior(*(getattr(prior, n)[:1] for n in ChunkPrior.__dataclass_fields__))
    assert believed(one, read, SIZE) is one

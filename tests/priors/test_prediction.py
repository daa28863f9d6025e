"""The contract of every adapter: one scale of confidence, masks honoured, nothing that is no camera."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import SIZE, make_scene
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.priors import Prediction, as_priors
from geoweaver.priors.prediction import contract_confidence, sound_cameras
from geoweaver.priors.views import network_size, network_size_of_area

ROWS = (0, 1, 2, 3)


def prediction(seed: int = 0) -> Prediction:
    scene = make_scene(seed)
    small = (30, 20)
    return Prediction(
        scene.depth_at(small).float(), scene.doubt_at(small).exp().float(), scene.cam_from_world,
        scene.intrinsics_at(small).expand(4, 4).clone(), torch.ones(4, dtype=torch.bool),
    )  # fmt: skip


@dataclass(frozen=True)
class RightHalf:
    """Only the right half of each image shows the static world."""

    def read(self, frame: int) -> np.ndarray:
        return np.broadcast_to(np.arange(SIZE[0]) >= SIZE[0] // 2, (SIZE[1], SIZE[0]))


@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 100))
def test_confidence_is_the_same_on_every_scale(scale: float, seed: int) -> None:
    told = prediction(seed)
    assert told.confidence is not None
    plain, scaled = (contract_confidence(told.confidence * s, told.depth) for s in (1.0, scale))
    assert torch.allclose(plain, scaled, atol=1e-5)
    assert plain.min() >= 0 and plain.max() <= 1
    assert abs(float(plain.median()) - 0.5) < 0.01


def test_more_confident_stays_more_confident() -> None:
    told = prediction()
    assert told.confidence is not None
    out = contract_confidence(told.confidence, told.depth).flatten()
    assert (out[told.confidence.flatten().argsort()].diff() >= 0).all()


def test_confidence_compares_the_frames_of_a_chunk() -> None:
    """Their means elect the canonical observation: a frame that is surer as a whole must stay so."""
    prior = as_priors(prediction(), make_scene(0).frames(), ROWS)[0]
    means = prior.confidence.mean((1, 2))
    assert (means.diff() > 0.05).all()


@pytest.mark.parametrize("value", [0.0, 1.0, 1e30])
def test_a_constant_confidence_says_typical(value: float) -> None:
    depth = torch.ones(2, 3, 4)
    assert torch.allclose(contract_confidence(torch.full((2, 3, 4), value), depth), torch.tensor(0.5))
    assert torch.allclose(contract_confidence(None, depth), torch.tensor(0.5))


def test_strange_confidences_stay_in_range() -> None:
    strange = torch.tensor([[[float("nan"), float("inf"), -1.0, 2.0, 3.0]]])
    out = contract_confidence(strange, torch.ones(1, 1, 5))
    assert out.isfinite().all() and out[0, 0, 0] == 0 and out[0, 0, 2] == 0 and out[0, 0, 1] > 0.99


def test_masked_and_impossible_depth_is_unknown() -> None:
    told = prediction()
    depth = told.depth.clone()
    depth[0, 0, 20], depth[1, 1, 21], depth[2, 2, 22] = float("nan"), float("inf"), -3
    prior = as_priors(replace(told, depth=depth), make_scene(0).frames(masks=RightHalf()), ROWS)[0]
    assert (prior.depth[:, :, :15] == 0).all() and (prior.confidence[:, :, :15] == 0).all()
    for place in ((0, 0, 20), (1, 1, 21), (2, 2, 22)):
        assert prior.depth[place] == 0 and prior.confidence[place] == 0
    assert (prior.depth[3, :, 15:] > 0).all()


def _broken(told: Prediction, how: str) -> Prediction:
    rotation, translation = told.cam_from_chunk.rotation.clone(), told.cam_from_chunk.translation.clone()
    intrinsics, sound, depth = told.intrinsics.clone(), told.sound.clone(), told.depth.clone()
    if how == "nan":
        rotation[1, 0, 0] = float("nan")
    elif how == "infinite":
        translation[1, 2] = float("inf")
    elif how == "mirror":
        rotation[1] *= -1
    elif how == "squeezed":
        rotation[1] *= 0.5
    elif how == "no field of view":
        intrinsics[1, :2] = 5e7
    elif how == "behind":
        intrinsics[1, 0] *= -1
    elif how == "off axis":
        intrinsics[1, 2] = 500
    elif how == "said so":
        sound[1] = False
    elif how == "no depth":
        depth[1] = 0
    return replace(
        told, depth=depth, cam_from_chunk=SE3(rotation, translation), intrinsics=intrinsics, sound=sound
    )


HOW = [
    "nan",
    "infinite",
    "mirror",
    "squeezed",
    "no field of view",
    "behind",
    "off axis",
    "said so",
    "no depth",
]


@pytest.mark.parametrize("how", HOW)
def test_what_is_no_camera_is_left_out(how: str) -> None:
    prior = as_priors(_broken(prediction(), how), make_scene(0).frames(), ROWS)[0]
    assert prior.frame.tolist() == [0, 2, 3]


def test_without_a_single_camera_there_is_no_piece() -> None:
    told = prediction()
    assert as_priors(replace(told, sound=torch.zeros(4).bool()), make_scene(0).frames(), ROWS) == []


def test_views_without_a_common_world_are_pieces_of_their_own() -> None:
    priors = as_priors(replace(prediction(), separate=True), make_scene(0).frames(), ROWS)
    assert [p.frame.tolist() for p in priors] == [[0], [1], [2], [3]]


def test_half_precision_rotations_are_cameras_and_come_out_straight() -> None:
    told = prediction()
    rough = SE3(told.cam_from_chunk.rotation.bfloat16().float(), told.cam_from_chunk.translation.float())
    assert bool(sound_cameras(rough, told.intrinsics, (30, 20)).all())
    R: Tensor = as_priors(replace(told, cam_from_chunk=rough), make_scene(0).frames(), ROWS)[
        0
    ].cam_from_chunk.rotation
    assert R.dtype == torch.float64 and (R @ R.mT - torch.eye(3).double()).abs().max() < 1e-9


@given(width=st.integers(20, 4000), height=st.integers(20, 4000))
def test_networks_get_whole_patches_of_about_the_images_shape(width: int, height: int) -> None:
    for size in (network_size((width, height), 504), network_size_of_area((width, height), 255_000)):
        assert all(side % 14 == 0 and side >= 14 for side in size)
    assert max(network_size((width, height), 504)) == 504
    area = network_size_of_area((width, height), 255_000)
    assert area[0] * area[1] <= 255_000


def test_sizes_are_those_of_the_published_preprocessing() -> None:
    assert network_size((512, 288), 504) == (504, 280)
    assert network_size((540, 360), 504) == (504, 336)
    assert network_size_of_area((512, 512), 255_000) == (504, 504)

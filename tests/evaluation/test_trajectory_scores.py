import math

import pytest
import torch
from evo.core import metrics
from evo.core.trajectory import PosePath3D
from hypothesis import given, settings
from hypothesis import strategies as st
from scored_walks import moved, shaken, similarity, trajectory, walk

from geoweaver.errors import DegenerateError
from geoweaver.evaluation import align, frame_errors, score_trajectory
from geoweaver.evaluation.alignment import aligned_cameras
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry import SE3


def evo_scores(estimate, reference):
    """ATE and RRE by evo, from cam_from_world."""
    paths = [PosePath3D(poses_se3=list(c.inverse().matrix().numpy().copy())) for c in (estimate, reference)]
    paths[0].align(paths[1], correct_scale=True)
    result = []
    for relation in (metrics.PoseRelation.translation_part, metrics.PoseRelation.rotation_angle_deg):
        ape = metrics.APE(relation)
        ape.process_data((paths[1], paths[0]))
        result.append(ape)
    return result[0].get_statistic(metrics.StatisticsType.rmse), result[1].get_statistic(
        metrics.StatisticsType.mean
    )


def check_against_evo(estimate, reference):
    scores = score_trajectory(trajectory(estimate), trajectory(reference))
    ate, rre = evo_scores(estimate, reference)
    assert scores.ate == pytest.approx(ate, rel=1e-9)
    assert scores.rre_deg == pytest.approx(rre, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(4, 60),
    st.integers(0, 2**31),
    st.floats(-3, 1),
    st.floats(-4, 0.3),
    st.floats(-2, 2),
)
def test_agrees_with_evo(frames, seed, position, angle, scale):
    reference = walk(frames, seed)
    estimate = moved(
        shaken(reference, seed + 1, 10**position, 10**angle), similarity(seed % 1000, scale=10**scale)
    )
    check_against_evo(estimate, reference)


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["indoor_walk", "street_loop", "drone_room"])
@pytest.mark.parametrize(("position", "angle"), [(0.01, 1e-3), (1.0, 0.1)])
def test_agrees_with_evo_on_real_paths(realdata, name, position, angle):
    reference = read_trajectory(realdata / name / "groundtruth.tum").cam_from_world
    check_against_evo(moved(shaken(reference, 3, position, angle), similarity(scale=12.0)), reference)


def test_a_moved_copy_is_without_error():
    reference = walk(40)
    scores = score_trajectory(trajectory(moved(reference, similarity(scale=0.25))), trajectory(reference))
    assert scores.ate < 1e-12
    assert scores.rre_deg < 1e-12
    assert scores.scale == pytest.approx(4, rel=1e-12)
    assert scores.auc3 == pytest.approx(100, abs=1e-9)


def test_aligned_cameras_are_the_equations():
    estimate, reference = shaken(walk(20)), walk(20)
    transform = align(estimate, reference)
    aligned = aligned_cameras(transform, estimate)
    assert torch.allclose(aligned.centre, transform.act(estimate.centre), atol=1e-12)
    assert torch.allclose(aligned.rotation, estimate.rotation @ transform.rotation.mT)


def test_small_rotations_are_true():
    reference = walk(30)
    angle = 1e-7
    turn = SE3.exp(torch.tensor([0, 0, 0, 0, math.radians(angle), 0], dtype=torch.float64))
    turned = SE3(
        turn.rotation @ reference.rotation, (turn.rotation @ reference.translation[..., None])[..., 0]
    )
    errors = frame_errors(turned, reference, align(turned, reference))
    assert errors.rotation_deg.tolist() == pytest.approx([angle] * 30, rel=1e-5)


def test_per_frame_errors_single_out_the_bad_frame():
    reference = walk(50)
    matrices = reference.translation.clone()
    matrices[17] += 3
    errors = frame_errors(SE3(reference.rotation, matrices), reference, align(reference, reference))
    assert int(errors.translation.argmax()) == 17
    assert errors.translation[17] == pytest.approx(math.sqrt(27))


def test_far_from_the_origin():
    reference = walk(50)
    far = SE3(
        reference.rotation,
        reference.translation
        - (reference.rotation @ torch.tensor([5e5, 4e6, 100.0], dtype=torch.float64)[:, None])[..., 0],
    )
    near = score_trajectory(trajectory(shaken(reference)), trajectory(reference))
    shifted = score_trajectory(trajectory(shaken(reference)), trajectory(far))
    assert shifted.ate == pytest.approx(near.ate, rel=1e-7)
    assert shifted.auc3 == pytest.approx(near.auc3, rel=1e-6)


def standing(frames):
    """Turning on the spot, away from the origin."""
    rotation = walk(frames).rotation
    return SE3(rotation, -(rotation @ torch.tensor([3.1, -2.2, 7.3], dtype=torch.float64)[:, None])[..., 0])


def straight(frames):
    rotation = walk(frames).rotation
    centre = torch.arange(frames, dtype=torch.float64)[:, None] * torch.tensor(
        [1.0, 2, 3], dtype=torch.float64
    )
    return SE3(rotation, -(rotation @ centre[..., None])[..., 0])


@pytest.mark.parametrize(
    ("estimate", "reference", "words"),
    [
        (walk(2), walk(2), "only 2 common frames"),
        (walk(1), walk(9), "only 1 common frame"),
        (standing(9), walk(9), "of the estimate stand at one place"),
        (walk(9), standing(9), "of the reference stand at one place"),
        (straight(9), walk(9), "on one line"),
    ],
)
def test_what_cannot_be_aligned_is_said(estimate, reference, words):
    with pytest.raises(DegenerateError, match=words) as caught:
        score_trajectory(trajectory(estimate), trajectory(reference))
    assert "\n" not in str(caught.value)


def test_trusted_only_scores_the_trusted():
    reference = walk(30)
    translation = reference.translation.clone()
    translation[::5] += 10
    trusted = torch.ones(30, dtype=torch.bool)
    trusted[::5] = False
    estimate = trajectory(SE3(reference.rotation, translation), trusted=trusted)
    every = score_trajectory(estimate, trajectory(reference))
    sure = score_trajectory(estimate, trajectory(reference), trusted_only=True)
    ignoring = score_trajectory(estimate, trajectory(reference), "ignore", trusted_only=True)
    assert every.ate > 1 and every.matched == 30
    assert sure.ate < 1e-12 and sure.matched == 24 and sure.frames == 30
    assert sure.auc3 == pytest.approx(100 * 24 * 23 / (30 * 29))
    assert ignoring.auc3 == pytest.approx(100)


def test_nothing_trusted_is_said():
    with pytest.raises(DegenerateError, match="no frame is trusted"):
        score_trajectory(
            trajectory(walk(9), trusted=torch.zeros(9, dtype=torch.bool)),
            trajectory(walk(9)),
            trusted_only=True,
        )


def test_silence_about_trust_means_all():
    scores = score_trajectory(trajectory(shaken(walk(9))), trajectory(walk(9)), trusted_only=True)
    assert scores.matched == 9

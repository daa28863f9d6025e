import math

import numpy as np
import pytest
import torch
from scored_walks import moved, shaken, similarity, trajectory, walk

from geoweaver.evaluation import pair_errors_deg, pose_auc, score_trajectory
from geoweaver.evaluation.pose_auc import MAX_PAIRS, ordered_pairs
from geoweaver.geometry import SE3


def brute_errors(estimate, reference, missing=()):
    """Pair errors by the supplement's equations, with plain loops over ordered pairs."""
    est, ref = estimate.matrix().numpy(), reference.matrix().numpy()
    errors = []
    for i in range(len(ref)):
        for j in range(len(ref)):
            if i == j:
                continue
            if i in missing or j in missing:
                errors.append(np.inf)
                continue
            a, b = ref[j] @ np.linalg.inv(ref[i]), est[j] @ np.linalg.inv(est[i])
            cosine = (np.trace(a[:3, :3] @ b[:3, :3].T) - 1) / 2
            rotation = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
            t = abs(a[:3, 3] @ b[:3, 3]) / (np.linalg.norm(a[:3, 3]) * np.linalg.norm(b[:3, 3]))
            errors.append(max(rotation, np.degrees(np.arccos(np.clip(t, -1, 1)))))
    return errors


def brute_force(estimate, reference, theta, missing=()):
    """The area under the recall curve, by sorting the errors."""
    errors = brute_errors(estimate, reference, missing)
    area = before = 0.0
    for recalled, error in enumerate(sorted(e for e in errors if e <= theta)):
        area += (error - before) * recalled / len(errors)
        before = error
    area += (theta - before) * sum(e <= theta for e in errors) / len(errors)
    return 100 * area / theta


@pytest.mark.parametrize(("position", "angle"), [(0.005, 0.01), (0.05, 0.02), (0.5, 0.3)])
def test_equals_brute_force_on_30_frames(position, angle):
    reference = walk(30)
    estimate = moved(shaken(reference, 5, position, angle), similarity())
    scores = score_trajectory(trajectory(estimate), trajectory(reference))
    for theta, score in ((3, scores.auc3), (5, scores.auc5), (30, scores.auc30)):
        assert score == pytest.approx(brute_force(estimate, reference, theta), rel=1e-6)
    assert 0 < scores.auc30 < 100


def test_every_pair_equals_brute_force():
    reference = walk(30)
    estimate = moved(shaken(reference, 5), similarity())
    expected = brute_errors(estimate, reference)
    assert pair_errors_deg(estimate, reference).tolist() == pytest.approx(expected, rel=1e-6)


def test_missing_frames_fail_all_their_pairs():
    reference = walk(30)
    estimate = shaken(reference)
    kept = [i for i in range(30) if i not in (3, 4, 20)]
    part = trajectory(estimate[kept], times=[float(i) for i in kept])
    whole = trajectory(reference, times=[float(i) for i in range(30)])
    failed = score_trajectory(part, whole)
    ignored = score_trajectory(part, whole, "ignore")
    assert failed.frames == ignored.frames == 30
    assert failed.matched == ignored.matched == 27
    assert failed.auc5 == pytest.approx(brute_force(estimate, reference, 5, missing=(3, 4, 20)), rel=1e-6)
    assert ignored.auc5 == pytest.approx(brute_force(estimate[kept], reference[kept], 5), rel=1e-6)
    assert failed.auc5 < ignored.auc5
    assert failed.ate == ignored.ate


def test_frames_that_the_reference_lacks_do_not_matter():
    reference = walk(30)
    estimate = trajectory(shaken(reference), times=[float(i) for i in range(30)])
    part = trajectory(reference[:20], times=[float(i) for i in range(20)])
    scores = score_trajectory(estimate, part)
    assert scores.frames == scores.matched == 20
    assert scores.auc5 == pytest.approx(brute_force(shaken(reference)[:20], reference[:20], 5), rel=1e-6)


def test_pairs_are_all_ordered_ones_in_row_major_order():
    for n in (1, 2, 5):
        assert ordered_pairs(n).tolist() == [[i, j] for i in range(n) for j in range(n) if i != j]


def test_142_frames_are_sampled_and_141_are_not():
    assert len(ordered_pairs(141)) == 141 * 140 <= MAX_PAIRS
    assert len(ordered_pairs(142)) == MAX_PAIRS < 142 * 141


def test_the_sample_is_the_documented_one():
    n = 200
    everything = [(i, j) for i in range(n) for j in range(n) if i != j]
    chosen = np.random.default_rng(42).choice(n * (n - 1), 20000, replace=False)
    assert [tuple(p) for p in ordered_pairs(n).tolist()] == [everything[k] for k in chosen]
    assert len(set(map(tuple, ordered_pairs(n).tolist()))) == 20000


def test_sampled_score_is_the_mean_over_the_sample():
    reference = walk(200)
    estimate = shaken(reference)
    errors = pair_errors_deg(estimate, reference)
    i, j = ordered_pairs(200)[777].tolist()
    alone = pair_errors_deg(estimate[[i, j]], reference[[i, j]])
    assert errors[777] == pytest.approx(float(alone[0]), rel=1e-9)
    expected = 100 * np.maximum(0, 1 - errors.numpy() / 5).mean()
    assert score_trajectory(trajectory(estimate), trajectory(reference)).auc5 == pytest.approx(expected)


def test_many_frames_need_little_memory():
    pairs = ordered_pairs(100_000)
    assert pairs.shape == (MAX_PAIRS, 2)
    assert int(pairs.max()) < 100_000
    assert bool((pairs[:, 0] != pairs[:, 1]).all())
    assert len(pair_errors_deg(walk(5000), walk(5000))) == MAX_PAIRS


def test_a_similarity_does_not_change_the_errors():
    reference = walk(20)
    estimate = shaken(reference)
    plain = pair_errors_deg(estimate, reference)
    assert torch.allclose(pair_errors_deg(moved(estimate, similarity()), reference), plain, rtol=1e-9)


def test_the_sign_of_the_translation_does_not_matter():
    reference = walk(12)
    mirrored = SE3(reference.rotation, -reference.translation)
    assert float(pair_errors_deg(mirrored, reference).max()) < 1e-9


def test_order_matters():
    errors = pair_errors_deg(shaken(walk(5)), walk(5))
    assert error_of(errors, 5, 0, 1) != pytest.approx(error_of(errors, 5, 1, 0), rel=1e-3)


def turned(cameras, frame, radians):
    """One camera turned about its own centre."""
    rotation = cameras.rotation.clone()
    turn = SE3.exp(torch.tensor([0, 0, 0, radians, 0, 0], dtype=torch.float64)).rotation
    rotation[frame] = turn @ rotation[frame]
    return SE3(rotation, -(rotation @ cameras.centre[..., None]).squeeze(-1))


def test_small_angles_are_true():
    reference, angle = walk(2, step=100.0), 1e-7
    errors = pair_errors_deg(turned(reference, 0, math.radians(angle)), reference)
    assert errors.tolist() == pytest.approx([angle, angle], rel=1e-5)


def test_small_translation_angles_are_true():
    reference = SE3(torch.eye(3, dtype=torch.float64).repeat(2, 1, 1), torch.zeros(2, 3, dtype=torch.float64))
    truth, guess = reference.translation.clone(), reference.translation.clone()
    angle = 1e-7
    truth[1, 0] = guess[1, 0] = 1.0
    guess[1, 1] = math.tan(math.radians(angle))
    errors = pair_errors_deg(SE3(reference.rotation, guess), SE3(reference.rotation, truth))
    assert errors.tolist() == pytest.approx([angle, angle], rel=1e-5)


def place(cameras, frame, like):
    """One camera put where another one stands, with its own view."""
    centre = cameras.centre.clone()
    centre[frame] = centre[like]
    return SE3(cameras.rotation, -(cameras.rotation @ centre[..., None]).squeeze(-1))


def error_of(errors, frames, i, j):
    return float(errors[ordered_pairs(frames).tolist().index([i, j])])


def test_no_translation_in_the_reference_counts_by_rotation_alone():
    reference = place(walk(12), 4, like=7)
    estimate = shaken(reference, position=0.3)
    for i, j in ((4, 7), (7, 4)):
        relative = [c.rotation[j] @ c.rotation[i].T for c in (estimate, reference)]
        cosine = (torch.trace(relative[0] @ relative[1].T) - 1) / 2
        expected = math.degrees(math.acos(float(cosine)))
        assert error_of(pair_errors_deg(estimate, reference), 12, i, j) == pytest.approx(expected, rel=1e-6)


def test_no_translation_far_from_the_origin_is_still_none():
    offset = torch.tensor([4.2e6, 1.7e5, 4.7e6], dtype=torch.float64)
    reference = place(walk(12), 4, like=7)
    centre = reference.centre + offset
    centre[4] = centre[7]
    far = SE3(reference.rotation, -(reference.rotation @ centre[..., None]).squeeze(-1))
    assert error_of(pair_errors_deg(reference, far), 12, 4, 7) < 1e-6


def test_no_translation_in_the_estimate_alone_fails():
    estimate = place(walk(12), 4, like=7)
    assert error_of(pair_errors_deg(estimate, walk(12)), 12, 4, 7) == 90
    assert error_of(pair_errors_deg(estimate, estimate), 12, 4, 7) == pytest.approx(0, abs=1e-9)


def test_an_estimate_that_stands_still_scores_nothing():
    still = SE3(walk(12).rotation, torch.zeros(12, 3, dtype=torch.float64))
    assert pose_auc(pair_errors_deg(still, walk(12)), 30) == 0


def test_half_turns_are_true():
    reference = walk(2, step=100.0)
    errors = pair_errors_deg(turned(reference, 0, math.pi - 1e-9), reference)
    assert errors.tolist() == pytest.approx([180 - math.degrees(1e-9)] * 2, abs=1e-10)


def test_auc_of_known_errors():
    errors = torch.tensor([0.0, 1.5, 3.0, torch.inf], dtype=torch.float64)
    assert pose_auc(errors, 3) == pytest.approx(37.5)
    assert pose_auc(errors, 6) == pytest.approx(100 * (1 + 0.75 + 0.5) / 4)

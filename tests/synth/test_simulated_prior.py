"""The simulated prior: exact where it should be, and each knob does what it says,
measured against the truth."""

import math
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from pillar_room import room
from scipy.stats import spearmanr

from geoweaver.datatypes import Chunk
from geoweaver.errors import DegenerateError
from geoweaver.geometry import SE3, world_camera
from geoweaver.geometry.so3 import rotation_angle, so3_log
from geoweaver.synth.simulated_depth import REGION, depth_edges
from geoweaver.synth.simulated_prior import PriorNoise, SimulatedChunk, simulate_chunk, simulate_prior
from geoweaver.synth.simulated_truth import SceneTruth, consecutive_chunks, scene_truth

torch.set_num_threads(1)
TRUTH = room(frames=100, laps=1.0)
CHUNKS = consecutive_chunks(100)
EXACT = PriorNoise.exact()


def made(seeds: int = 1, chunk: Chunk = CHUNKS[0], **knobs: float) -> list[SimulatedChunk]:
    """One chunk of an otherwise exact prior with these knobs, for several seeds."""
    return [simulate_chunk(TRUTH, chunk, replace(EXACT, **knobs), seed) for seed in range(seeds)]


def true_depth(simulated: SimulatedChunk, truth: SceneTruth = TRUTH) -> torch.Tensor:
    """What the depth would be without any error but the drift of the scale."""
    depth = torch.stack([truth.depth_of(int(f)) for f in simulated.prior.frame])
    return depth / simulated.world_from_chunk.scale * simulated.log_scale.exp()[:, None, None]


def log_error(simulated: SimulatedChunk) -> torch.Tensor:
    """log(predicted / true) per pixel, nan where there is no depth."""
    depth = simulated.prior.depth.double()
    return torch.where(depth > 0, (depth / true_depth(simulated)).log(), torch.nan)


def camera_error(simulated: SimulatedChunk) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotation vectors (degrees) and centres (chunk's median depths, camera axes) relative to the truth."""
    truth = TRUTH.cam_from_world[simulated.prior.frame]
    placed = world_camera(simulated.world_from_chunk, simulated.prior.cam_from_chunk)
    unit = torch.stack([TRUTH.depth_of(int(f)) for f in simulated.prior.frame]).median()
    return so3_log(placed.rotation @ truth.rotation.mT).rad2deg(), (
        placed @ truth.inverse()
    ).translation / unit


def test_exact_prior_is_the_truth_in_the_chunks_gauge() -> None:
    for chunk in CHUNKS:
        simulated = simulate_chunk(TRUTH, chunk, EXACT, 3)
        turn, shift = camera_error(simulated)
        assert turn.abs().max() < 1e-9 and shift.abs().max() < 1e-9
        assert torch.nan_to_num(log_error(simulated), 1).abs().max() < 1e-6
        torch.testing.assert_close(
            simulated.prior.intrinsics, TRUTH.depth_intrinsics[simulated.prior.frame], rtol=1e-12, atol=0
        )


def test_depth_intrinsics_are_those_of_the_depth_maps() -> None:
    k, (width, height) = TRUTH.depth_intrinsics[0], TRUTH.depth_size
    assert k.tolist() == pytest.approx([400 * 96 / 512, 400 * 54 / 288, width / 2, height / 2])


@pytest.mark.parametrize("noise", [EXACT, PriorNoise.default()])
def test_shared_frame_differs_by_the_gauge_alone_only_if_exact(noise: PriorNoise) -> None:
    one, two = (simulate_chunk(TRUTH, chunk, noise, 0) for chunk in CHUNKS)
    assert int(one.prior.frame[-1]) == int(two.prior.frame[0])
    a, b = one.prior.depth[-1].double(), two.prior.depth[0].double()
    ratio = (a / b)[(a > 0) & (b > 0)]
    gauge = two.world_from_chunk.scale / one.world_from_chunk.scale
    assert abs(gauge.log()) > 0.01
    placed = [world_camera(s.world_from_chunk, s.prior.cam_from_chunk[at]) for s, at in ((one, -1), (two, 0))]
    turn = float(rotation_angle(placed[0].rotation @ placed[1].rotation.mT))
    if noise == EXACT:
        torch.testing.assert_close(ratio, gauge.expand_as(ratio), rtol=1e-6, atol=0)
        assert turn < 1e-9
    else:
        assert (ratio / ratio.median()).log().std() > 0.005
        assert turn > 1e-4


def test_chunks_depend_on_seed_and_index_alone() -> None:
    noise = PriorNoise.hard()
    in_order = list(simulate_prior(TRUTH, CHUNKS, noise, 5))
    alone = simulate_chunk(TRUTH, CHUNKS[1], noise, 5).prior
    assert torch.equal(in_order[1].depth, alone.depth)
    assert torch.equal(in_order[1].confidence, alone.confidence)
    assert torch.equal(in_order[1].cam_from_chunk.translation, alone.cam_from_chunk.translation)
    other = simulate_chunk(TRUTH, CHUNKS[1], noise, 6).prior
    assert not torch.allclose(other.depth, alone.depth)


def test_the_unit_of_length_does_not_matter() -> None:
    noise = PriorNoise.hard()
    metres, millimetres = (
        simulate_chunk(room(40, unit=u), Chunk(2, tuple(range(40))), noise, 1) for u in (1.0, 1000.0)
    )
    torch.testing.assert_close(metres.prior.depth, millimetres.prior.depth, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        metres.prior.cam_from_chunk.translation,
        millimetres.prior.cam_from_chunk.translation,
        rtol=0,
        atol=1e-9,
    )


def test_gauge_knobs() -> None:
    still = made(gauge_scale=0.0, gauge_turn=0.0, gauge_shift=0.0)[0]
    first = still.prior.cam_from_chunk[0]
    assert rotation_angle(first.rotation) < 1e-9 and first.translation.norm() < 1e-9
    assert float(still.prior.depth.median()) == pytest.approx(1, rel=1e-3)
    scales = torch.stack([s.prior.depth.median() for s in made(30, Chunk(0, (0, 1)), gauge_scale=0.3)])
    assert 0.2 < float(scales.log().std()) < 0.42


def test_scale_drift_moves_depth_and_steps_together() -> None:
    runs = made(16, scale_drift=0.05, gauge_scale=0.0)
    drift = torch.stack([s.log_scale for s in runs])
    assert 0.03 < float(drift.std()) < 0.08
    assert drift.median(dim=1).values.abs().max() < 1e-9
    assert (drift.diff(dim=1).abs() < 0.02).all()
    run = runs[0]
    depth = torch.stack([TRUTH.depth_of(int(f)) for f in run.prior.frame]) / run.world_from_chunk.scale
    torch.testing.assert_close((run.prior.depth / depth).log().mean((1, 2)), run.log_scale, rtol=0, atol=1e-5)
    placed = world_camera(run.world_from_chunk, run.prior.cam_from_chunk).centre
    step = placed.diff(dim=0).norm(dim=1) / TRUTH.cam_from_world.centre[:60].diff(dim=0).norm(dim=1)
    expected = 0.5 * (run.log_scale[1:] + run.log_scale[:-1])
    torch.testing.assert_close(step.log(), expected, rtol=0, atol=1e-9)


def test_bend_turns_cameras_and_path_smoothly_away_from_the_middle() -> None:
    errors = [camera_error(s) for s in made(16, bend=1.0)]
    turn = torch.stack([t for t, _ in errors])
    shift = torch.stack([c for _, c in errors])
    assert 0.7 < float(turn.std()) < 2.0
    assert turn[:, 30].abs().max() < 1e-9 and shift[:, 30].abs().max() < 1e-9
    assert turn.diff(dim=1).abs().max() < 0.6
    assert shift[:, -1].norm(dim=1).mean() > 0.005


@pytest.mark.parametrize(("knob", "which", "size"), [("turn_jitter", 0, 0.3), ("shift_jitter", 1, 0.02)])
def test_jitter_has_the_stated_std_in_each_frame(knob: str, which: int, size: float) -> None:
    errors = [camera_error(s) for s in made(6, **{knob: size})]
    own = torch.stack([e[which] for e in errors])
    assert float(own.std()) == pytest.approx(size, rel=0.12)
    assert torch.stack([e[1 - which] for e in errors]).abs().max() < (0.02 if which == 0 else 1e-6)
    neighbours = np.corrcoef(own[:, 1:].flatten(), own[:, :-1].flatten())[0, 1]
    assert abs(neighbours) < 0.15


def test_stray_frames_are_few_and_gross() -> None:
    turn = torch.cat([camera_error(s)[0].norm(dim=1) for s in made(10, stray_frames=0.1)])
    stray = turn > 1e-6
    assert 0.05 < float(stray.double().mean()) < 0.16
    assert turn[stray].median() > 4


def test_focal_errors_are_shared_by_sequence_chunk_and_frame() -> None:
    def factor(chunk: Chunk, seed: int, **knobs: float) -> torch.Tensor:
        prior = simulate_chunk(TRUTH, chunk, replace(EXACT, **knobs), seed).prior
        torch.testing.assert_close(prior.intrinsics[:, 2:], TRUTH.depth_intrinsics[prior.frame, 2:])
        return (prior.intrinsics[:, :2] / TRUTH.depth_intrinsics[prior.frame, :2]).log()

    small = [Chunk(k, (0, 1, 2)) for k in range(20)]
    shared = torch.stack([factor(c, 0, focal_shared=0.05) for c in small[:3]])
    assert shared.std() < 1e-12 and shared.abs().max() > 1e-4
    own = torch.stack([factor(c, 0, focal_chunk=0.05) for c in small])
    assert own.std(dim=1).max() < 1e-12 and 0.03 < float(own[:, 0, 0].std()) < 0.075
    frame = factor(CHUNKS[0], 0, focal_frame=0.05)
    assert 0.038 < float(frame[:, 0].std()) < 0.063
    torch.testing.assert_close(frame[:, 0], frame[:, 1], rtol=0, atol=1e-12)


def test_affine_depth_error_has_the_stated_sizes() -> None:
    runs = made(4, depth_scale=0.03, depth_shift=0.02)
    fits = []
    for run in runs:
        truth, predicted = true_depth(run), run.prior.depth.double()
        for t, p in zip(truth, predicted, strict=True):
            a, b = np.polyfit(t.flatten().numpy(), p.flatten().numpy(), 1)
            assert np.abs(a * t.numpy() + b - p.numpy()).max() < 1e-4
            fits.append((math.log(a), b / float(t.median())))
    assert np.std(fits, axis=0) == pytest.approx([0.03, 0.02], rel=0.15)


def test_smooth_error_is_large_scale_and_lives_some_frames() -> None:
    error = log_error(made(smooth=0.03)[0]).numpy()
    assert error.std() == pytest.approx(0.03, rel=0.02)

    def alike(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.corrcoef(a.flatten(), b.flatten())[0, 1])

    assert alike(error[:, :, 1:], error[:, :, :-1]) > 0.99
    assert abs(alike(error[:, :, 48:], error[:, :, :48])) < 0.3
    assert alike(error[1:], error[:-1]) > 0.9
    assert abs(alike(error[30:], error[:30])) < 0.3


def test_fine_error_is_white() -> None:
    error = log_error(made(fine=0.01)[0]).numpy()
    assert error.std() == pytest.approx(0.01, rel=0.02)
    assert abs(np.corrcoef(error[:, :, 1:].flatten(), error[:, :, :-1].flatten())[0, 1]) < 0.01


def test_flying_pixels_hang_between_near_and_far() -> None:
    run = made(flying=0.4)[0]
    truth, predicted = true_depth(run).float(), run.prior.depth
    edge, near, far = depth_edges(truth, EXACT.edge_ratio)
    moved = (predicted / truth - 1).abs() > 1e-4
    assert edge.sum() > 1000
    assert not (moved & ~edge).any()
    assert float(moved[edge].double().mean()) == pytest.approx(0.4, abs=0.05)
    assert (predicted[moved] >= near[moved] * 0.9999).all() and (
        predicted[moved] <= far[moved] * 1.0001
    ).all()


def test_invalid_share_in_blobs_with_low_confidence() -> None:
    run = made(invalid=0.1)[0]
    missing = run.prior.depth == 0
    assert missing.double().mean((1, 2)).tolist() == pytest.approx([0.1] * 60, abs=2e-3)
    assert float((missing[:, :, 1:] & missing[:, :, :-1]).double().mean()) > 0.085
    assert run.prior.confidence[missing].mean() < 2 < run.prior.confidence[~missing].median()


def test_confidently_wrong_frames_and_regions() -> None:
    clean = made()[0]
    frames = made(wrong_frames=0.3, wrong_size=0.2)[0]
    regions = made(wrong_regions=0.3, wrong_size=0.2)[0]
    assert torch.equal(frames.prior.confidence, clean.prior.confidence)
    assert torch.equal(regions.prior.confidence, clean.prior.confidence)
    off = log_error(frames).abs()
    wrong = off.amax((1, 2)) > 1e-3
    assert 0.12 < float(wrong.double().mean()) < 0.5
    assert off[wrong].min() > 0.0999 and off.max() < 0.2001
    part = (log_error(regions).abs() > 1e-3).double().mean((1, 2))
    assert part[part > 0].tolist() == pytest.approx([REGION] * int((part > 0).sum()), abs=1e-3)
    assert 0.12 < float((part > 0).double().mean()) < 0.5


@pytest.mark.parametrize(
    ("noise", "least", "most"), [(PriorNoise.default(), 0.6, 0.95), (PriorNoise.hard(), 0.4, 0.9)]
)
def test_confidence_ranks_the_error_mostly(noise: PriorNoise, least: float, most: float) -> None:
    for seed in range(3):
        run = simulate_chunk(TRUTH, CHUNKS[0], noise, seed)
        confidence, error = run.prior.confidence, log_error(run).abs()
        assert confidence.isfinite().all() and (confidence > 1).all()
        valid = ~error.isnan()
        assert least < spearmanr(confidence[valid], -error[valid])[0] < most


def test_every_knob_is_documented_and_hard_is_harder() -> None:
    default, hard = PriorNoise.default(), PriorNoise.hard()
    errors = [f.name for f in fields(PriorNoise) if getattr(EXACT, f.name) == 0]
    assert len(errors) >= 17
    assert all(getattr(hard, name) > getattr(default, name) for name in errors)


def test_a_chunk_that_sees_only_sky_is_refused() -> None:
    empty = scene_truth(
        SE3.identity(3),
        torch.tensor([50.0, 50, 32, 24]),
        (64, 48),
        lambda o, d: torch.full((len(o),), torch.inf),
    )
    with pytest.raises(DegenerateError, match="only sky"):
        simulate_chunk(empty, Chunk(0, (0, 1, 2)), EXACT, 0)


def test_chunks_share_one_frame_and_cover_all() -> None:
    for frames in (1, 59, 60, 61, 119, 300):
        chunks = consecutive_chunks(frames)
        assert {f for c in chunks for f in c.frames} == set(range(frames))
        assert all(a.frames[-1] == b.frames[0] for a, b in pairwise(chunks))
        assert all(2 <= len(c) <= 60 for c in chunks) or frames == 1

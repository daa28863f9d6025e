"""The loss is the paper's: against plain sums, finite differences, and what it must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import intrinsic_matrix, intrinsics_from_matrix
from geoweaver.models import GPMOutput
from geoweaver.models.camera_head import decode_cameras, encode_cameras
from geoweaver.training.batch import Batch
from geoweaver.training.losses import (
    camera_points,
    camera_terms,
    clip_points,
    front_loss,
    geometry_loss,
    rotation_loss,
    translation_loss,
)
from geoweaver.training.scale import clip_scale
from geoweaver.training.settings import LossWeights

WEIGHTS = LossWeights(local=0.7, overall=1.3, camera=0.4, translation=3.0, alpha=0.2, huber=0.1)
HEIGHT, WIDTH = 4, 6


def cameras(views: int, rng: torch.Generator, size: float = 0.3) -> SE3:
    return SE3.exp(size * torch.randn(1, views, 6, generator=rng, dtype=torch.float64))


def truth(views: int = 3, seed: int = 0, holes: bool = True) -> Batch:
    rng = torch.Generator().manual_seed(seed)
    depth = 2 + 3 * torch.rand(1, views, HEIGHT, WIDTH, generator=rng, dtype=torch.float64)
    if holes:
        depth[0, 0, 0, :3] = 0
    K = torch.tensor([5.0, 5.5, WIDTH / 2, HEIGHT / 2], dtype=torch.float64).expand(1, views, 4)
    images = torch.zeros(1, views, 3, HEIGHT, WIDTH, dtype=torch.float64)
    return Batch(images, depth, cameras(views, rng).matrix()[..., :3, :], K)


def guess(views: int = 3, seed: int = 1) -> GPMOutput:
    rng = torch.Generator().manual_seed(seed)
    shape = (1, views, HEIGHT, WIDTH)
    depth = torch.exp(0.3 * torch.randn(shape, generator=rng, dtype=torch.float64))
    confidence = 1 + torch.exp(torch.randn(shape, generator=rng, dtype=torch.float64))
    K = torch.tensor([6.0, 5.0, WIDTH / 2, HEIGHT / 2], dtype=torch.float64).expand(1, views, 4)
    pose = cameras(views, rng).matrix()[..., :3, :]
    return GPMOutput(depth, confidence, pose, intrinsic_matrix(K))


def perfect(batch: Batch, scale: float, world: SE3) -> GPMOutput:
    """The truth in another unit and another world, with a confidence of 1."""
    pose = SE3.from_matrix(batch.cam_from_world) @ world
    pose = SE3(pose.rotation, pose.translation * scale)
    depth = torch.where(batch.depth > 0, batch.depth, 1.0) * scale
    return GPMOutput(
        depth, torch.ones_like(depth), pose.matrix()[..., :3, :], intrinsic_matrix(batch.intrinsics)
    )


@settings(max_examples=20)
@given(st.floats(1e-3, 1e3), st.integers(0, 100))
def test_the_truth_in_any_unit_and_any_world_costs_nothing(scale: float, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    world = SE3.exp(torch.randn(6, generator=rng, dtype=torch.float64))
    losses = front_loss(perfect(truth(seed=seed), scale, world), truth(seed=seed), WEIGHTS)
    assert abs(float(losses.local)) < 1e-9 and abs(float(losses.overall)) < 1e-9
    assert float(losses.translation) < 1e-12
    assert float(losses.rotation) < 1.5e-3  # the arc cosine's margin


@settings(max_examples=20)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_no_unit_of_length_matters(true_unit: float, guessed_unit: float) -> None:
    batch, output = truth(), guess()
    pose = batch.cam_from_world.clone()
    pose[..., 3] *= true_unit
    other = replace(batch, depth=batch.depth * true_unit, cam_from_world=pose)
    pose = output.cam_from_world.clone()
    pose[..., 3] *= guessed_unit
    scaled = replace(output, depth=output.depth * guessed_unit, cam_from_world=pose)
    a, b = front_loss(output, batch, WEIGHTS).row(), front_loss(scaled, other, WEIGHTS).row()
    assert a == pytest.approx(b, rel=1e-9)


def test_the_sums_are_the_papers() -> None:
    """Every equation once more, in plain loops."""
    batch, output = truth(), guess()
    depth, pose = batch.depth[0].numpy(), batch.cam_from_world[0].numpy()
    views = range(len(depth))
    pixels = [(v, y, x) for v in views for y in range(HEIGHT) for x in range(WIDTH)]

    def point(z: float, K: np.ndarray, y: int, x: int) -> np.ndarray:
        return z * np.linalg.inv(K) @ [x + 0.5, y + 0.5, 1]

    K_true, K_guess = intrinsic_matrix(batch.intrinsics)[0].numpy(), output.intrinsics[0].numpy()
    X = {p: point(depth[p], K_true[p[0]], *p[1:]) for p in pixels if depth[p] > 0}
    unit = np.mean([np.linalg.norm(x) for x in X.values()])
    X = {p: x / unit for p, x in X.items()}
    raw = {p: point(float(output.depth[0][p]), K_guess[p[0]], *p[1:]) for p in X}
    s = float(
        clip_scale(
            camera_points(output.depth, torch.tensor([6.0, 5.0, 3, 2]).double().expand(1, 3, 4)),
            camera_points(batch.depth, batch.intrinsics) / unit, batch.depth > 0,
        )
    )  # fmt: skip

    def matrices(poses: np.ndarray, scale: float) -> list[np.ndarray]:
        return [np.vstack([np.c_[T[:, :3], scale * T[:, 3]], [0, 0, 0, 1]]) for T in poses]

    T_true, T_guess = matrices(pose, 1 / unit), matrices(output.cam_from_world[0].numpy(), s)

    def geo(moved: bool) -> float:
        total = 0.0
        for p, x in X.items():
            x_hat, c = s * raw[p], float(output.confidence[0][p])
            if moved:
                x = (T_true[0] @ np.linalg.inv(T_true[p[0]]) @ [*x, 1])[:3]
                x_hat = (T_guess[0] @ np.linalg.inv(T_guess[p[0]]) @ [*x_hat, 1])[:3]
            total += c * np.abs(x_hat - x).sum() - WEIGHTS.alpha * np.log(c)
        return total / len(pixels)

    rot = trans = 0.0
    for i in views:
        for j in views:
            if i != j:
                A, B = T_guess[j] @ np.linalg.inv(T_guess[i]), T_true[j] @ np.linalg.inv(T_true[i])
                rot += np.arccos(np.clip((np.trace(A[:3, :3].T @ B[:3, :3]) - 1) / 2, -1, 1))
                e = np.abs(A[:3, 3] - B[:3, 3])
                trans += np.where(e < 0.1, e**2 / 2, 0.1 * (e - 0.05)).mean()
    rot, trans = rot / 6, trans / 6
    losses = front_loss(output, batch, WEIGHTS)
    assert float(losses.local) == pytest.approx(geo(False))
    assert float(losses.overall) == pytest.approx(geo(True))
    assert float(losses.rotation) == pytest.approx(rot) and float(losses.translation) == pytest.approx(trans)
    total = 0.7 * geo(False) + 1.3 * geo(True) + 0.4 * (rot + 3.0 * trans)
    assert float(losses.total) == pytest.approx(total)


def test_unknown_pixels_have_no_say() -> None:
    batch, output = truth(), guess()
    depth = output.depth.clone().requires_grad_()
    front_loss(replace(output, depth=depth), batch, WEIGHTS).total.backward()
    known = batch.depth > 0
    assert bool((depth.grad[~known] == 0).all()) and bool((depth.grad[known] != 0).any())
    changed = torch.where(known, output.depth, 17.0)
    for broken in (0.0, -1.0, float("nan"), float("inf")):
        other = replace(batch, depth=torch.where(known, batch.depth, broken))
        a, b = front_loss(output, batch, WEIGHTS), front_loss(replace(output, depth=changed), other, WEIGHTS)
        assert a.row() == b.row()


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("still", [True, False])
def test_degenerate_clips_have_finite_gradients(views: int, empty: bool, still: bool) -> None:
    batch = truth(views)
    if empty:
        batch = replace(batch, depth=torch.zeros_like(batch.depth))
    if still:
        batch = replace(batch, cam_from_world=torch.eye(3, 4).double().expand(1, views, 3, 4))
    encoding = torch.zeros(1, views, 9, dtype=torch.float64)
    encoding[..., 6], encoding[..., 7:] = 1, 1.0
    encoding.requires_grad_()
    log_depth = torch.zeros(1, views, HEIGHT, WIDTH, dtype=torch.float64, requires_grad=True)
    pose, K = decode_cameras(encoding, (HEIGHT, WIDTH))
    output = GPMOutput(log_depth.exp(), 1 + log_depth.exp(), pose, K)
    losses = front_loss(output, batch, WEIGHTS)
    losses.total.backward()
    assert all(np.isfinite(value) for value in losses.row().values())
    assert bool(encoding.grad.isfinite().all()) and bool(log_depth.grad.isfinite().all())
    parts = losses.row()
    if empty:
        assert parts["local"] == parts["overall"] == parts["translation"] == 0
        assert bool((log_depth.grad == 0).all())
    if views == 1:
        assert parts["rotation"] == parts["translation"] == 0


def test_gradients_agree_with_finite_differences() -> None:
    """Through points, cameras and confidence from what the heads say; s* is a constant of the step."""
    batch = truth()
    points = camera_points(batch.depth, batch.intrinsics) / 3
    pose = SE3.from_matrix(batch.cam_from_world)
    start = guess()
    encoding = encode_cameras(start.cam_from_world, start.intrinsics, (HEIGHT, WIDTH))

    def loss(log_depth: Tensor, log_confidence: Tensor, encoding: Tensor) -> tuple[Tensor, ...]:
        decoded, K = decode_cameras(encoding, (HEIGHT, WIDTH))
        local = camera_points(log_depth.exp(), intrinsics_from_matrix(K))
        confidence = 1 + log_confidence.exp()
        guessed = SE3.from_matrix(decoded)
        near = geometry_loss(local, points, confidence, batch.depth > 0, 0.2)
        far = geometry_loss(
            clip_points(local, guessed), clip_points(points, pose), confidence, batch.depth > 0, 0.2
        )
        return near, far, *camera_terms(guessed, pose, 0.1)

    inputs = (start.depth.log(), (start.confidence - 1).log(), encoding)
    assert torch.autograd.gradcheck(loss, tuple(x.detach().requires_grad_() for x in inputs), atol=1e-7)


def test_the_whole_loss_falls_along_its_gradient() -> None:
    """With the scale estimated anew on both sides: at its own optimum s* has no first-order say."""
    batch, output = truth(holes=False), guess()
    log_depth = output.depth.log().requires_grad_()
    flat = LossWeights(local=1, overall=0, camera=0, alpha=0)
    even = torch.ones_like(output.depth)

    def loss(x: Tensor) -> Tensor:
        return front_loss(replace(output, depth=x.exp(), confidence=even), batch, flat).total

    (slope,) = torch.autograd.grad(loss(log_depth), log_depth)
    step = 1e-3 * slope / slope.norm()
    assert bool(loss(log_depth - step) < loss(log_depth))


def test_the_scale_is_the_best_one() -> None:
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(1, 1, 5, 7, 3, generator=rng, dtype=torch.float64)
    x[..., 2] = x[..., 2].abs() + 0.5
    y = 2.5 * x + 0.3 * torch.randn(x.shape, generator=rng, dtype=torch.float64)
    y[..., 2] = y[..., 2].abs() + 0.5
    y[0, 0, 0] *= 40  # outliers
    valid = torch.ones(x.shape[:-1], dtype=torch.bool)

    def cost(s: float) -> float:
        return float(((s * x - y).abs() / y[..., 2:].clamp_min(0.1)).sum())

    best = float(clip_scale(x, y, valid))
    assert all(cost(best) <= cost(s) + 1e-9 for s in np.linspace(0.5, 6, 2000))
    assert float(clip_scale(x, y, ~valid)) == 1


def test_confidence_settles_at_alpha_over_the_error() -> None:
    """c e - alpha log c is least at c = alpha / e: large errors ask for little confidence."""
    point = torch.zeros(1, 1, 1, 2, 3, dtype=torch.float64)
    wanted = torch.tensor([0.02, 0.1], dtype=torch.float64)
    off = point.clone()
    off[0, 0, 0, :, 0] = wanted
    c = (0.2 / wanted)[None, None, None].requires_grad_()
    valid = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    geometry_loss(off, point, c, valid, 0.2).sum().backward()
    assert torch.allclose(c.grad, torch.zeros_like(c), atol=1e-12)


def test_angles_and_penalties_by_hand() -> None:
    quarter = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert float(rotation_loss(quarter, torch.eye(3))) == pytest.approx(np.pi / 2, abs=1e-6)
    move = translation_loss(torch.tensor([0.06, 0.0, 1.0]), torch.zeros(3), 0.1)
    assert float(move) == pytest.approx((0.06**2 / 2 + 0.1 * (1 - 0.05)) / 3)


def test_a_model_without_cameras_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be trained"):
        front_loss(replace(guess(), cam_from_world=None), truth(), WEIGHTS)

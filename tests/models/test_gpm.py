"""The GPM's behaviour beyond the reference: sizes, blocks, precision, training, metres."""

import pytest
import torch
from da3_layout import TINY, tiny_state
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from geoweaver.errors import ConfigError, InputError
from geoweaver.models import GPM, GPMOutput, build_gpm, load_gpm
from geoweaver.models.families import config_from_mapping
from geoweaver.models.gpm import in_metres, metric_depth, push_sky_back
from geoweaver.models.vit import Tap, reference_order, restore_views, take_views

_MONO = TINY | {"alt_start": -1}


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return load_gpm(TINY, tiny_state())


def _images(scenes: int, views: int, height: int, width: int) -> Tensor:
    return torch.randn(scenes, views, 3, height, width, generator=torch.Generator().manual_seed(views))


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))
def test_any_number_of_views_and_any_multiple_of_14(views: int, rows: int, columns: int) -> None:
    network = build_gpm(TINY)
    with torch.inference_mode():
        output = network(_images(1, views, 14 * rows, 14 * columns), rays=True)
    assert output.depth.shape == output.confidence.shape == (1, views, 14 * rows, 14 * columns)
    assert output.ray.shape == (1, views, 8 * rows, 8 * columns, 6)
    assert output.cam_from_world.shape == (1, views, 3, 4) and output.intrinsics.shape == (1, views, 3, 3)
    assert bool((output.depth > 0).all()) and bool((output.confidence >= 1).all())


@pytest.mark.parametrize(("height", "width"), [(15, 28), (28, 20), (0, 14)])
def test_other_sizes_are_refused_with_the_nearest_that_fits(
    network: nn.Module, height: int, width: int
) -> None:
    with pytest.raises(InputError, match=r"multiples of 14; resize to \d+ x \d+"):
        network(_images(1, 2, height, width))


def test_scenes_of_a_batch_do_not_see_each_other(network: nn.Module) -> None:
    images = _images(2, 4, 28, 42)
    with torch.inference_mode():
        both, alone = network(images), network(images[1:])
    torch.testing.assert_close(both.depth[1:], alone.depth, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both.cam_from_world[1:], alone.cam_from_world, rtol=1e-4, atol=1e-5)


def test_the_heads_blocks_change_nothing(network: nn.Module) -> None:
    images = _images(1, 5, 28, 42)
    with torch.inference_mode():
        whole = network(images, rays=True)
        network.head.view_block = 2
        blocks = network(images, rays=True)
    network.head.view_block = 8
    torch.testing.assert_close(whole.depth, blocks.depth, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(whole.ray, blocks.ray, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_half_precision_stays_close_and_returns_float32(network: nn.Module, precision: torch.dtype) -> None:
    images = _images(1, 2, 56, 70)
    with torch.inference_mode():
        exact = network(images)
        network.precision = precision
        rough = network(images)
    network.precision = None
    assert rough.depth.dtype == torch.float32
    error = (rough.depth / exact.depth).log().abs()
    assert 0 < error.mean() < 0.05, "half precision must be in use, and do little harm"


def test_known_cameras_need_intrinsics_and_an_encoder(network: nn.Module) -> None:
    images, cameras = _images(1, 2, 28, 28), torch.eye(3, 4).expand(1, 2, 3, 4)
    with pytest.raises(InputError, match="need intrinsics"):
        network(images, cameras)
    bare = GPM(config_from_mapping(TINY | {"pose_conditioning": False}))
    with pytest.raises(ConfigError, match="no camera encoder"):
        bare(images, cameras, torch.eye(3).expand(1, 2, 3, 3))


def test_unknown_reference_strategy_is_named(network: nn.Module) -> None:
    with pytest.raises(ConfigError, match=r"'best'.*saddle_balanced"):
        network(_images(1, 3, 14, 14), reference_view="best")


@given(
    st.integers(1, 3),
    st.integers(2, 7),
    st.sampled_from(["first", "middle", "saddle_balanced", "saddle_sim_range"]),
)
def test_reference_view_moves_to_the_front_and_back(scenes: int, views: int, strategy: str) -> None:
    token = torch.randn(scenes, views, 8, generator=torch.Generator().manual_seed(views))
    order = reference_order(token, strategy)
    rest = order[:, 1:]
    assert bool((rest.diff(dim=1) > 0).all()), "the others keep their order"
    tap = Tap(take_views(token, order)[:, :, None], take_views(token, order))
    restored = restore_views(tap, order)
    assert torch.equal(restored.camera, token) and torch.equal(restored.patches[:, :, 0], token)
    if strategy == "middle":
        assert bool((order[:, 0] == views // 2).all())


def test_balanced_reference_is_the_middling_view() -> None:
    # Two odd ones out at either end of every measure; the third lies between them.
    token = torch.tensor([[[1.0, 0, 0, 0], [3.0, 3, 3, 2.9], [2.0, 1.5, 0.2, 0.1]]])
    assert reference_order(token, "saddle_balanced")[0].tolist() == [2, 0, 1]


@pytest.mark.parametrize("head", ["mlp", "transformer"])
def test_both_camera_heads_train(head: str) -> None:
    torch.manual_seed(0)
    network = build_gpm(TINY | {"camera_head": head})
    images = _images(1, 3, 28, 42)
    output = network(images, rays=True)
    (output.depth.log().square().mean() + output.cam_from_world.square().sum() + output.ray.sum()).backward()
    gradients = [p.grad for p in network.cam_dec.parameters() if p.grad is not None]
    assert gradients and all(bool(g.isfinite().all()) for g in gradients)
    fov = output.pose_encoding[..., 7:].detach()
    assert bool(((fov > 0.5) & (fov < 1.6)).all()), "an untrained head starts from a plausible lens"


def test_transformer_head_lets_views_talk() -> None:
    network = build_gpm(TINY | {"camera_head": "transformer"})
    feature = torch.randn(1, 3, 128)
    changed = feature.clone()
    changed[:, 2] += 1
    assert not torch.equal(network.cam_dec(feature)[:, 0], network.cam_dec(changed)[:, 0])


def test_recomputing_activations_changes_no_gradient() -> None:
    network = load_gpm(TINY, tiny_state())
    images = _images(1, 2, 28, 28)
    network(images).depth.sum().backward()
    weight = network.backbone["pretrained"].blocks[4].attn.qkv.weight
    expected, weight.grad = weight.grad, None
    network.backbone["pretrained"].recompute = True
    network(images).depth.sum().backward()
    torch.testing.assert_close(weight.grad, expected, rtol=1e-4, atol=1e-6)


def test_monocular_network_has_sky_and_no_cameras() -> None:
    network = build_gpm(_MONO)
    with torch.inference_mode():
        pair, single = network(_images(1, 2, 28, 42)), network(_images(1, 2, 28, 42)[:, :1])
    assert pair.cam_from_world is None and pair.intrinsics is None and pair.confidence is None
    assert pair.sky.shape == pair.depth.shape and bool((pair.sky >= 0).all())
    torch.testing.assert_close(pair.sky[:, :1], single.sky, rtol=1e-5, atol=1e-6)


def test_sky_goes_to_the_far_end_of_the_ground() -> None:
    depth = torch.arange(1.0, 101).reshape(1, 1, 10, 10)
    sky = torch.zeros_like(depth)
    sky[..., :2, :] = 0.9
    far = push_sky_back(depth, sky)
    assert bool((far[..., :2, :] == 99).all()) and torch.equal(far[..., 2:, :], depth[..., 2:, :])
    assert torch.equal(push_sky_back(depth, torch.ones_like(depth)).unique(), torch.tensor([99.0]))


def test_metres_come_from_the_confident_ground() -> None:
    torch.manual_seed(0)
    depth = torch.rand(1, 2, 8, 8) + 1
    confidence = torch.full_like(depth, 5.0)
    confidence[..., :3, :] = 1.5
    metric = 2.5 * depth
    metric[..., :3, :] = 77.0
    sky = torch.zeros_like(depth)
    sky[..., 7:, :] = 1.0
    cameras = torch.cat([torch.eye(3), torch.ones(3, 1)], 1).expand(1, 2, 3, 4)
    output = in_metres(GPMOutput(depth, confidence, cameras), metric, sky)
    torch.testing.assert_close(output.depth[..., :7, :], 2.5 * depth[..., :7, :])
    torch.testing.assert_close(output.cam_from_world[..., 3], torch.full((1, 2, 3), 2.5))
    assert bool((output.confidence[..., 7:, :] == 1).all())
    assert float(output.depth[..., 7:, :].max()) <= float(2.5 * depth.max())


def test_metric_depth_stands_for_a_focal_of_300() -> None:
    K = torch.diag_embed(torch.tensor([[[500.0, 700.0, 1.0]]]))
    assert torch.equal(metric_depth(torch.ones(1, 1, 2, 2), K), torch.full((1, 1, 2, 2), 2.0))

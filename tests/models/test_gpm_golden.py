"""The GPM against reference outputs of Depth Anything 3 with the same weights."""

import pytest
import torch
from da3_layout import TINY, golden, tiny_state
from torch import Tensor, nn

from geoweaver.models import load_gpm

_PAIRS = {
    "depth": "depth",
    "confidence": "depth_conf",
    "ray": "ray",
    "ray_confidence": "ray_conf",
    "pose_encoding": "pose_enc",
    "cam_from_world": "extrinsics",
    "intrinsics": "intrinsics",
}


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return load_gpm(TINY, tiny_state())


@pytest.fixture(scope="module")
def reference() -> dict[str, Tensor]:
    return golden("da3_tiny.npz")


def _options(case: str, reference: dict[str, Tensor]) -> dict[str, object]:
    if case == "v4first":
        return {"reference_view": "first"}
    if case == "cond":
        return {"cam_from_world": reference["cond/ext"][..., :3, :], "intrinsics": reference["cond/ixt"]}
    return {}


@pytest.mark.parametrize("case", ["v1", "v2", "v4", "v4first", "cond"])
def test_agrees_with_the_reference(case: str, network: nn.Module, reference: dict[str, Tensor]) -> None:
    with torch.inference_mode():
        output = network(reference[f"{case}/in"], rays=True, **_options(case, reference))
    for ours, theirs in _PAIRS.items():
        expected = reference[f"{case}/{theirs}"]
        # The median, not the mean: views whose field of view is 0 have focal lengths of millions of pixels.
        scale = expected.abs().clamp_min(float(expected.abs().median()))
        if ours == "intrinsics":
            scale = expected.abs().clamp_min(1.0)
        error = ((getattr(output, ours) - expected).abs() / scale).max()
        # CPUs round differently: 9e-6 on one, 1.4e-5 on the next
        assert error < 1e-4, f"{ours}: {error:.1e} relative"


def test_four_views_choose_another_reference_than_the_first(reference: dict[str, Tensor]) -> None:
    assert not torch.allclose(reference["v4/depth"], reference["v4first/depth"], rtol=1e-3)


def test_last_features_agree(network: nn.Module, reference: dict[str, Tensor]) -> None:
    with torch.inference_mode():
        taps = network.backbone["pretrained"](reference["v4/in"], (3, 5, 7, 9))
    torch.testing.assert_close(taps[-1].patches, reference["v4/feat_last"], rtol=1e-4, atol=1e-5)


def test_rays_cost_nothing_unless_asked_for(network: nn.Module, reference: dict[str, Tensor]) -> None:
    ran: list[str] = []
    hooks = [
        module.register_forward_hook(lambda *_, name=name: ran.append(name))
        for name, module in network.head.named_modules()
        if "_aux" in name
    ]
    with torch.inference_mode():
        plain = network(reference["v2/in"])
        assert not ran and plain.ray is None and plain.ray_confidence is None
        network(reference["v2/in"], rays=True)
    for hook in hooks:
        hook.remove()
    # The shared norm answers to its first name; of the four levels only the last may run.
    levels = {n.split(".")[2] for n in ran if "output_conv" in n and not n.endswith("output_conv2_aux.0.2")}
    assert levels == {"3"}
    torch.testing.assert_close(plain.depth, reference["v2/depth"], rtol=1e-4, atol=1e-5)

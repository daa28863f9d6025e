"""SALAD against reference descriptors, and its published layout."""

from pathlib import Path

import pytest
import torch
from da3_layout import backbone_shapes, golden
from torch import Tensor

from geoweaver.errors import FormatError, InputError
from geoweaver.models import Salad, SaladConfig, load_salad
from geoweaver.models.salad import SaladAggregator, transport
from geoweaver.models.vit import ViTConfig

_TINY = SaladConfig(ViTConfig(48, 2, 2, norm_eps=1e-6), clusters=8, cluster_dim=16, token_dim=24)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", ["small", "square"])
def test_agrees_with_the_reference(case: str, precision: torch.dtype) -> None:
    reference = golden("salad_tiny.npz")
    weights = {k.removeprefix(f"{case}/w/"): v for k, v in reference.items() if k.startswith(f"{case}/w/")}
    aggregator = SaladAggregator(48, 8, 16, 24)
    aggregator.load_state_dict(weights)
    aggregator = aggregator.to(precision)
    with torch.inference_mode():
        found = aggregator(reference[f"{case}/patch"].to(precision), reference[f"{case}/cls"].to(precision))
    tolerance = 1e-9 if precision == torch.float64 else 1e-6
    assert float((found - reference[f"{case}/descriptor"]).abs().max()) < tolerance


def test_transport_gives_every_patch_away_once() -> None:
    score = torch.randn(2, 8, 99, dtype=torch.float64)
    share = transport(score, torch.tensor(1.0))
    assert bool((share >= 0).all()) and bool((share.sum(1) <= 1).all())
    assert float(share.sum()) == pytest.approx(2 * 8, rel=0.05)


def _published() -> dict[str, Tensor]:
    """dino_salad.ckpt's names and shapes."""
    backbone = {
        k.replace("backbone.pretrained.", "backbone.model."): v
        for k, v in backbone_shapes(768, 12, -1, False).items()
    }
    aggregator = {
        "token_features.0.weight": (512, 768), "token_features.0.bias": (512,),
        "token_features.2.weight": (256, 512), "token_features.2.bias": (256,),
        "cluster_features.0.weight": (512, 768, 1, 1), "cluster_features.0.bias": (512,),
        "cluster_features.3.weight": (128, 512, 1, 1), "cluster_features.3.bias": (128,),
        "score.0.weight": (512, 768, 1, 1), "score.0.bias": (512,),
        "score.3.weight": (64, 512, 1, 1), "score.3.bias": (64,),
        "dust_bin": (),
    }  # fmt: skip
    shapes = backbone | {f"aggregator.{k}": v for k, v in aggregator.items()}
    shapes["backbone.model.mask_token"] = (1, 768)
    return {key: torch.empty(shape, device="meta") for key, shape in shapes.items()}


def test_published_names_load_without_remainder() -> None:
    network = load_salad(_published())
    assert network.config.descriptor_dim == 8448
    with pytest.raises(FormatError, match=r"aggregator\.extra"):
        load_salad(_published() | {"aggregator.extra": torch.zeros(1)})
    with pytest.raises(FormatError, match=r"missing: aggregator\.dust_bin"):
        load_salad({k: v for k, v in _published().items() if not k.endswith("dust_bin")})


def test_file_gives_unit_descriptors_at_any_size(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(Salad(_TINY).state_dict(), tmp_path / "dino_salad.ckpt")
    network = load_salad(tmp_path / "dino_salad.ckpt", _TINY)
    for height, width in [(56, 56), (42, 98)]:
        with torch.inference_mode():
            images = torch.randn(3, 3, height, width)
            descriptor = network(images)
            single = network(images[1:2])
        assert descriptor.shape == (3, 24 + 8 * 16)
        torch.testing.assert_close(descriptor.norm(dim=-1), torch.ones(3))
        torch.testing.assert_close(descriptor[1:2], single, rtol=1e-4, atol=1e-5)


def test_images_with_too_few_patches_are_refused() -> None:
    with pytest.raises(InputError, match="more than 8 patches"):
        Salad(_TINY)(torch.zeros(1, 3, 28, 56))
    with pytest.raises(InputError, match="multiples of 14"):
        Salad(_TINY)(torch.zeros(1, 3, 100, 100))

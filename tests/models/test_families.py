"""Sizes, names and shapes of the published families."""

import pytest
import torch
from da3_layout import PUBLISHED, TINY, meta_state

from geoweaver.errors import ConfigError, FormatError
from geoweaver.models import FAMILIES, GPM, NestedGPM, build_gpm, load_gpm
from geoweaver.models.families import NESTED, config_as_mapping, config_from_mapping, family_name

_MILLIONS = {
    "da3-small": {"backbone": 22.06, "head": 3.87, "cam_dec": 1.19, "cam_enc": 7.18},
    "da3-base": {"backbone": 86.58, "head": 15.39, "cam_dec": 4.74, "cam_enc": 28.66},
    "da3-large": {"backbone": 304.37, "head": 47.23, "cam_dec": 8.41, "cam_enc": 50.93},
    "da3metric-large": {"backbone": 304.37, "head": 29.80},
}
_TOTALS = {"da3-small": 34.30, "da3-base": 135.37, "da3-large": 410.94, "da3metric-large": 334.17}
_TENSORS = {"da3-small": 443, "da3-large": 643, "da3metric-large": 406}


@pytest.mark.parametrize("family", _MILLIONS)
def test_parameter_counts(family: str) -> None:
    with torch.device("meta"):
        network = build_gpm(family)
    parts = {name: sum(p.numel() for p in part.parameters()) / 1e6 for name, part in network.named_children()}
    assert parts == pytest.approx(_MILLIONS[family], abs=0.0051)
    assert sum(p.numel() for p in network.parameters()) / 1e6 == pytest.approx(_TOTALS[family], abs=0.0051)


@pytest.mark.parametrize("family", _TENSORS)
def test_number_of_named_tensors(family: str) -> None:
    with torch.device("meta"):
        assert len(build_gpm(family).state_dict()) == _TENSORS[family]


@pytest.mark.parametrize("prefix", ["model.", "", "module.model."])
@pytest.mark.parametrize("family", PUBLISHED)
def test_published_names_load_without_remainder(family: str, prefix: str) -> None:
    network = load_gpm(family, meta_state(family, prefix))
    assert not network.training


@pytest.mark.parametrize("family", [f for f in PUBLISHED if f != "da3mono-large"])
def test_weights_of_another_family_are_called_by_their_name(family: str) -> None:
    other = "da3-base" if family != "da3-base" else "da3-small"
    with pytest.raises(FormatError, match=rf"weights are of .*{family}.*, not of {other}"):
        load_gpm(other, meta_state(family))


def test_nested_joins_giant_and_metric() -> None:
    with torch.device("meta"):
        network = build_gpm("DA3NESTED-GIANT-LARGE-1.1")
    assert network.da3.config == FAMILIES["da3-giant"] and network.da3_metric.config.metric


def _tiny_nested() -> NestedGPM:
    torch.manual_seed(0)
    return NestedGPM(config_from_mapping(TINY), config_from_mapping(TINY | {"alt_start": -1})).eval()


def test_nested_runs_in_metres() -> None:
    network, images = _tiny_nested(), torch.randn(1, 2, 3, 28, 28)
    with torch.inference_mode():
        ours, shape = network(images), network.da3(images)
    ratio = ours.cam_from_world[..., 3] / shape.cam_from_world[..., 3]
    torch.testing.assert_close(ratio, ratio.mean().expand_as(ratio), rtol=1e-3, atol=0)
    assert ours.sky is not None


def test_a_view_without_a_focal_does_not_spoil_the_metres() -> None:
    network, images = _tiny_nested(), torch.randn(1, 2, 3, 28, 28)
    decode = network.da3.cam_dec.forward

    def blind_in_view_1(feature: torch.Tensor) -> torch.Tensor:
        encoding = decode(feature).clone()
        encoding[:, 1, 7:] = 0
        return encoding

    with torch.inference_mode():
        sound = network(images).depth.mean()
        network.da3.cam_dec.forward = blind_in_view_1
        assert 0.2 < float(network(images).depth.mean() / sound) < 5


@pytest.mark.parametrize("name", ["da3-small", "DA3-SMALL", "depth-anything/DA3-LARGE-1.1", NESTED.upper()])
def test_names_of_the_hub_are_understood(name: str) -> None:
    assert family_name(name) in {*FAMILIES, NESTED}


def test_unknown_family_is_an_error_with_the_choice() -> None:
    with pytest.raises(ConfigError, match=r"'da3-huge'.*da3-small"):
        build_gpm("da3-huge")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": 1}, "unknown keys.*colour"),
        ({"taps": [1, 2, 3]}, "four entries"),
        ({"taps": [3, 5, 7, 10]}, "within its 10 blocks"),
        ({"taps": 3}, "lists of numbers"),
        ({"dim": "64"}, "whole numbers"),
        ({"heads": 0}, "positive"),
        ({"heads": 3}, "not a multiple"),
        ({"camera_head": "magic"}, "mlp, transformer"),
    ],
)
def test_bad_configs_are_errors_that_say_why(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_gpm(TINY | change)


def test_missing_sizes_are_named() -> None:
    with pytest.raises(ConfigError, match="lacks: depth, heads"):
        build_gpm({k: v for k, v in TINY.items() if k not in ("depth", "heads")})


def test_config_survives_json() -> None:
    for config in FAMILIES.values():
        assert config_from_mapping(config_as_mapping(config)) == config


def test_families_give_the_networks_they_name() -> None:
    with torch.device("meta"):
        assert isinstance(build_gpm("da3-giant"), GPM)
        assert build_gpm("da3-giant").backbone["pretrained"].blocks[0].mlp.w12.weight.shape == (8192, 1536)

"""The defaults are the paper's numbers; what it leaves open is what decision 30 says."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tiny_training import TINY, tiny_network

from geoweaver.errors import ConfigError
from geoweaver.training.optimiser import freeze_untrained, make_optimiser, rate_share, set_rates
from geoweaver.training.settings import PAPER_DEVICES, STAGES, LossWeights, TrainConfig

ROOT = Path(__file__).parents[2]


def test_the_papers_numbers() -> None:
    one, two = STAGES[1], STAGES[2]
    assert one.views == (4, 4) and two.views == (2, 16)
    assert one.iterations == two.iterations == 100_000
    assert two.frames_per_device == 16 and PAPER_DEVICES == 8
    for stage in (one, two):
        assert stage.encoder_rate == 1e-6 and stage.head_rate == 1e-5
    assert isinstance(make_optimiser(tiny_network(), one), torch.optim.AdamW)
    assert (one.stage, two.stage) == (1, 2)


def test_what_the_paper_leaves_open_is_written_down() -> None:
    """Each number of ours stands in the decision's table."""
    text = (ROOT / "docs/decisions/0027-training.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text, re.MULTILINE))
    config, loss = TrainConfig(), LossWeights()
    for name, stated in table.items():
        value = getattr(loss if hasattr(loss, name) else config, name)
        assert stated == (", ".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"), name
    assert {"local", "overall", "camera", "translation", "alpha", "huber"} <= table.keys()
    assert {"weight_decay", "betas", "warmup", "gradient_norm", "long_side", "aspects"} <= table.keys()


def test_rates_rise_then_fall_as_a_cosine() -> None:
    config = TrainConfig(iterations=1000, warmup=0.1)
    shares = [rate_share(config, step) for step in range(1000)]
    assert shares[0] < 0.02 and shares[100] == 1 and max(shares) == 1
    assert all(a < b for a, b in pairwise(shares[:101])) and all(a > b for a, b in pairwise(shares[100:]))
    assert shares[550] == pytest.approx(0.5) and shares[-1] < 1e-4
    assert rate_share(replace(config, warmup=0.0), 0) == 1


def test_encoder_and_heads_learn_at_their_own_rates() -> None:
    network = tiny_network(config=replace(TINY, pose_conditioning=True))
    freeze_untrained(network)
    optimiser = make_optimiser(network, replace(TrainConfig(), warmup=0.0))
    set_rates(optimiser, replace(TrainConfig(), warmup=0.0), 0)
    rate = {id(p): g["lr"] for g in optimiser.param_groups for p in g["params"]}
    decay = {id(p): g["weight_decay"] for g in optimiser.param_groups for p in g["params"]}
    for name, parameter in network.named_parameters():
        if name.startswith("cam_enc.") or "_aux" in name:
            assert not parameter.requires_grad and id(parameter) not in rate, name
        else:
            assert rate[id(parameter)] == (1e-6 if name.startswith("backbone.") else 1e-5), name
            assert decay[id(parameter)] == (0.05 if parameter.ndim > 1 else 0), name


@pytest.mark.parametrize(
    "wrong",
    [{"views": (0, 4)}, {"views": (2, 17)}, {"views": (5, 4)}, {"aspects": (0.0, 1.0)},
     {"aspects": (0.5, 1.5)}, {"long_side": 13}, {"iterations": 0}, {"warmup": 1.0}, {"head_rate": -1.0}],
)  # fmt: skip
def test_impossible_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(ConfigError):
        replace(TrainConfig(), **wrong)

"""Priors by name."""

from pathlib import Path

import pytest

from geoweaver.errors import ConfigError
from geoweaver.priors import PRIORS, PriorModel, SfmPrior, find_prior


def test_every_registered_prior_is_a_prior(tmp_path: Path) -> None:
    for name, make in PRIORS.items():
        assert isinstance(make("" if name == "sfm" else str(tmp_path)), PriorModel), name


def test_the_sfm_prior_is_found_by_name() -> None:
    assert isinstance(find_prior("sfm"), SfmPrior)


@pytest.mark.parametrize("name", ["", "nothing", "sfm:weights.safetensors"])
def test_a_wrong_name_says_what_there_is(name: str) -> None:
    with pytest.raises(ConfigError, match="sfm"):
        find_prior(name)

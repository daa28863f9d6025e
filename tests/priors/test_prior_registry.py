"""Priors by name."""

import pytest

from geoweaver.errors import ConfigError
from geoweaver.priors import PRIORS, PriorModel, SfmPrior, find_prior


def test_every_registered_prior_is_a_prior() -> None:
    assert all(isinstance(find_prior(name), PriorModel) for name in PRIORS)


def test_the_sfm_prior_is_found_by_name() -> None:
    assert isinstance(find_prior("sfm"), SfmPrior)


@pytest.mark.parametrize("name", ["", "nothing", "sfm:weights.safetensors"])
def test_a_wrong_name_says_what_there_is(name: str) -> None:
    with pytest.raises(ConfigError, match="sfm"):
        find_prior(name)

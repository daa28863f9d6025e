"""Priors by name: one visible line each; users may also install an entry point or pass their own object."""

from collections.abc import Callable
from importlib.metadata import entry_points

from geoweaver.errors import ConfigError
from geoweaver.priors.protocol import PriorModel

ENTRY_POINTS = "geoweaver.priors"


def _sfm(path: str) -> PriorModel:
    from geoweaver.priors.sfm import SfmPrior

    if path:
        raise ConfigError(f"the sfm prior needs no weights: give --prior sfm without {path!r}")
    return SfmPrior()


PRIORS: dict[str, Callable[[str], PriorModel]] = {"sfm": _sfm}
"""Name to factory; the factory gets what follows the colon in --prior NAME:PATH, or an empty string."""


def find_prior(name: str) -> PriorModel:
    """A prior by the name that users give it: NAME or NAME:PATH."""
    key, _, path = name.partition(":")
    if key in PRIORS:
        return PRIORS[key](path)
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if key not in installed:
        known = ", ".join(sorted({*PRIORS, *installed}))
        raise ConfigError(f"there is no prior {key!r}: choose one of {known}")
    prior = installed[key].load()(path)
    if not isinstance(prior, PriorModel):
        raise ConfigError(f"the installed prior {key!r} has no prepare() and predict(): update its package")
    return prior

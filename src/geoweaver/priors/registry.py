"""Priors by name: one visible line each; users may also install an entry point or pass their own object."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from geoweaver.errors import ConfigError, InputError
from geoweaver.priors.protocol import PriorModel

ENTRY_POINTS = "geoweaver.priors"


def _sfm(path: str) -> PriorModel:
    from geoweaver.priors.sfm import SfmPrior

    if path:
        raise ConfigError(f"the sfm prior needs no weights: give --prior sfm without {path!r}")
    return SfmPrior()


def _network(module: str, path: str) -> PriorModel:
    from geoweaver.priors.network import NetworkPrior

    return NetworkPrior(module, path)


def _da3(name: str, path: str) -> PriorModel:
    return _network("da3", f"{name}:{path}" if path else name)


def _saved(path: str) -> PriorModel:
    from geoweaver.priors.saved import SavedPrior

    if not path:
        raise ConfigError("the saved prior needs its folder: give --prior saved:FOLDER (docs/priors.md)")
    if not Path(path).is_dir():
        raise InputError(f"{path}: no such folder of saved priors: check --prior saved:FOLDER")
    return SavedPrior(Path(path))


PRIORS: dict[str, Callable[[str], PriorModel]] = {
    "sfm": _sfm,
    "gpm": partial(_network, "gpm"),
    "da3-small": partial(_da3, "da3-small"),
    "da3-base": partial(_da3, "da3-base"),
    "da3-large": partial(_da3, "da3-large"),
    "da3-giant": partial(_da3, "da3-giant"),
    "da3-nested": partial(_da3, "da3-nested"),
    "da3-metric": partial(_da3, "da3-metric"),
    "da3-mono": partial(_da3, "da3-mono"),
    "vggt": partial(_network, "vggt"),
    "pi3": partial(_network, "pi3"),
    "pi3x": partial(_network, "pi3x"),
    "mapanything": partial(_network, "mapanything"),
    "saved": _saved,
}
"""Name to factory; the factory gets what follows the colon in --prior NAME:PATH, or an empty string."""


def find_prior(name: str, *, poses: Path | None = None, device: str = "auto") -> PriorModel:
    """A prior by the name that users give it, NAME or NAME:PATH; known cameras for those that take them."""
    from geoweaver.priors.network import NetworkPrior

    prior = _find(name)
    if isinstance(prior, NetworkPrior):
        # hours before it is needed: a wrong path or a missing package shows now
        prior.source.locate(prior.path)
        return replace(prior, poses=poses, device=device)
    if poses is not None:
        raise ConfigError(f"the prior {name} takes no known cameras: choose gpm, a da3, pi3x or mapanything")
    return prior


def _find(name: str) -> PriorModel:
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

"""Sources by name, as `--data NAME:PATH[@WEIGHT]` calls them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from geoweaver.errors import ConfigError, InputError
from geoweaver.training.datasets.blendedmvs import open_blendedmvs
from geoweaver.training.datasets.dynamicreplica import open_dynamicreplica
from geoweaver.training.datasets.hypersim import open_hypersim
from geoweaver.training.datasets.rendered import open_rendered
from geoweaver.training.datasets.scannet import open_scannet
from geoweaver.training.datasets.scene import Scene
from geoweaver.training.datasets.tartanair import open_tartanair
from geoweaver.training.datasets.transforms import open_folder

SOURCES: dict[str, Callable[[Path], list[Scene]]] = {
    "folder": open_folder,
    "render": open_rendered,
    "scannet": open_scannet,
    "hypersim": open_hypersim,
    "tartanair": open_tartanair,
    "blendedmvs": open_blendedmvs,
    "dynamicreplica": open_dynamicreplica,
}


@dataclass(frozen=True)
class Source:
    """Scenes of one origin and how often they are drawn."""

    name: str
    scenes: Sequence[Scene]
    weight: float = 1.0


def open_sources(specs: Sequence[str]) -> list[Source]:
    """The sources that a user named."""
    if not specs:
        raise ConfigError(f"training needs data: give --data NAME:PATH, NAME one of {', '.join(SOURCES)}")
    return [_open(spec) for spec in specs]


def _open(spec: str) -> Source:
    match = re.fullmatch(r"(\w+):(.+?)(?:@([^@/]+))?", spec)
    if match is None or match[1] not in SOURCES:
        raise ConfigError(f"--data {spec!r}: give NAME:PATH[@WEIGHT], NAME one of {', '.join(SOURCES)}")
    scenes = [scene for scene in SOURCES[match[1]](Path(match[2])) if len(scene)]
    if not scenes:
        raise InputError(f"{match[2]}: no scene has a frame with depth: check the folder")
    return Source(spec, scenes, _weight(match[3], spec))


def _weight(text: str | None, spec: str) -> float:
    try:
        weight = float(text or 1)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise ConfigError(f"--data {spec!r}: the weight after @ must be a positive number")
    return weight

"""Depth Anything 3's published checkpoints as priors: by short name, from the model hub's cache or a path."""

from pathlib import Path

from geoweaver.errors import InputError
from geoweaver.models import load_gpm_folder
from geoweaver.models.checkpoint import describe
from geoweaver.models.families import family_name
from geoweaver.models.hub import fetch, find
from geoweaver.priors.gpm import gpm_size, wrap_gpm
from geoweaver.priors.network import Network, Source
from geoweaver.store import file_digest

PUBLISHED = {
    "da3-small": "da3-small",
    "da3-base": "da3-base",
    "da3-large": "da3-large-1.1",
    "da3-giant": "da3-giant-1.1",
    "da3-metric": "da3metric-large",
    "da3-mono": "da3mono-large",
    "da3-nested": "da3nested-giant-large-1.1",
}
"""What users write, and the checkpoint that it means."""


def locate_da3(named: str) -> tuple[str, str]:
    """NAME or NAME:PATH to NAME:FOLDER, downloaded where its licence asks for nothing."""
    name, _, path = named.partition(":")
    folder = Path(path) if path else _cached(PUBLISHED[name])
    load_gpm_folder(folder, family_name(PUBLISHED[name]), device="meta")
    _, weights = describe(folder)
    return f"{name}:{folder}", f"{name} {file_digest(weights)}"


def _cached(checkpoint: str) -> Path:
    """The hub's cache first: who has fetched a checkpoint has read its licence then."""
    try:
        return fetch(checkpoint, accept_licence=True, offline=True)
    except InputError:
        if find(checkpoint).free:
            return fetch(checkpoint)
        raise InputError(
            f"{checkpoint} is not wholly in the local cache, and not free for all uses "
            f"({find(checkpoint).licence}): read its licence, then  "
            f"geoweaver models fetch {checkpoint} --accept-licence"
        ) from None


def load_da3(located: str, device: str) -> Network:
    name, _, folder = located.partition(":")
    return wrap_gpm(load_gpm_folder(Path(folder), family_name(PUBLISHED[name])), device)


SOURCE = Source(gpm_size, locate_da3, load_da3, takes_cameras=True)

"""Published checkpoints: what there is, under which licence, and how it gets into the local cache."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.models.checkpoint import CONFIG_FILE, WEIGHTS_FILE, build_gpm, describe, load_gpm, recognise
from geoweaver.models.families import GPMConfig
from geoweaver.models.salad import load_salad
from geoweaver.models.weights import State, plain_names, read_state, sha256

_APACHE = "Apache-2.0"
_NON_COMMERCIAL = "CC-BY-NC-4.0"
_SALAD = "salad"


@dataclass(frozen=True)
class Published:
    """One checkpoint that users can fetch."""

    name: str
    licence: str
    note: str
    repository: str = ""
    """On the model hub; empty where `url` is a plain download."""
    url: str = ""

    @property
    def free(self) -> bool:
        """True where the licence asks nothing before commercial use."""
        return self.licence == _APACHE


def _da3(name: str, licence: str, note: str) -> Published:
    return Published(name, licence, note, repository=f"depth-anything/{name.upper()}")


CATALOGUE: dict[str, Published] = {
    entry.name: entry
    for entry in (
        _da3("da3-small", _APACHE, "any number of views, 34 M parameters"),
        _da3("da3-base", _APACHE, "any number of views, 135 M parameters"),
        _da3("da3-large-1.1", _NON_COMMERCIAL, "any number of views, 411 M parameters, retrained"),
        _da3("da3-large", _NON_COMMERCIAL, "first release of da3-large-1.1"),
        _da3("da3-giant-1.1", _NON_COMMERCIAL, "any number of views, 1.3 G parameters, retrained"),
        _da3("da3-giant", _NON_COMMERCIAL, "first release of da3-giant-1.1"),
        _da3("da3metric-large", _APACHE, "one view, metres, sky; 334 M parameters"),
        _da3("da3mono-large", _APACHE, "one view, relative depth, sky; 334 M parameters"),
        _da3("da3nested-giant-large-1.1", _NON_COMMERCIAL, "giant and metric in one, in metres, retrained"),
        _da3("da3nested-giant-large", _NON_COMMERCIAL, "first release of da3nested-giant-large-1.1"),
        Published(
            _SALAD,
            "GPL-3.0",
            "image retrieval on DINOv2-B, 88 M parameters",
            url="https://github.com/serizba/salad/releases/download/v1.0.0/dino_salad.ckpt",
        ),
    )
}


def find(name: str) -> Published:
    """The catalogue's entry of a name, in any case, with or without its organisation."""
    plain = name.rsplit("/", 1)[-1].lower()
    if plain not in CATALOGUE:
        raise ConfigError(f"unknown model {name!r}: choose one of {', '.join(CATALOGUE)}")
    return CATALOGUE[plain]


def fetch(
    name: str, *, accept_licence: bool = False, revision: str | None = None, offline: bool = False
) -> Path:
    """The checkpoint's place in the local cache, downloaded if it is not there yet."""
    entry = find(name)
    if not (entry.free or accept_licence):
        raise ConfigError(
            f"{entry.name} is published under {entry.licence}, which limits what you may do with it: "
            "read the licence, then repeat with --accept-licence"
        )
    if entry.url:
        if revision:
            raise ConfigError(f"{entry.name} is one released file and has no revisions: leave out --revision")
        return _fetch_file(entry, offline)
    return _fetch_snapshot(entry, revision, offline)


def _fetch_snapshot(entry: Published, revision: str | None, offline: bool) -> Path:
    """Through huggingface_hub: cached, resumed, and offline where HF_HUB_OFFLINE=1 says so."""
    import huggingface_hub
    from huggingface_hub import errors

    try:
        folder = huggingface_hub.snapshot_download(
            entry.repository,
            revision=revision,
            local_files_only=offline,
            allow_patterns=[CONFIG_FILE, WEIGHTS_FILE, "LICENSE*", "README.md"],
        )
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise InputError(
            f"{entry.name} is not in the local cache and the model hub was not reached; go online first"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(f"{entry.repository} has no revision {revision!r} on the model hub") from error
    except failures() as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{entry.repository} cannot be fetched: {words}; try again, or check the name"
        ) from error
    return _whole(Path(folder), entry)


def _whole(folder: Path, entry: Published) -> Path:
    """A download that was cut off leaves a folder with the small files alone."""
    if not (folder / WEIGHTS_FILE).exists():
        raise InputError(
            f"{entry.name} is only in part in the local cache ({folder}): {WEIGHTS_FILE} is missing; "
            f"go online, geoweaver models fetch {entry.name}  goes on where it stopped"
        )
    return folder


def failures() -> tuple[type[Exception], ...]:
    """What huggingface_hub raises where it cannot fetch; some of it only in some versions."""
    from huggingface_hub import errors

    names = (
        "EntryNotFoundError",
        "RevisionResolutionError",
        "CachedRepoTreeNotFoundError",
        "XetDownloadError",
    )
    newer = [getattr(errors, name) for name in names if hasattr(errors, name)]
    return errors.HTTPError, errors.HFValidationError, OSError, *newer


def _fetch_file(entry: Published, offline: bool) -> Path:
    """A released file, into torch's own cache of checkpoints."""
    target = Path(torch.hub.get_dir()) / "checkpoints" / entry.url.rsplit("/", 1)[-1]
    if target.exists():
        return target
    if offline:
        raise InputError(f"{entry.name} is not in the local cache ({target}); fetch it while online")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Downloads beside the target and renames, so a cut-off file never takes its place.
        torch.hub.download_url_to_file(entry.url, str(target))
    except OSError as error:
        raise InputError(f"{entry.url} cannot be fetched: {error}; download it to {target}") from error
    return target


def info(path: Path) -> dict[str, Any]:
    """What a checkpoint is, from its names and shapes alone."""
    config, weights = describe(path)
    return _facts(config, weights, read_state(weights))


def _facts(config: str | GPMConfig | None, weights: Path, state: State) -> dict[str, Any]:
    return {
        "weights": str(weights),
        "model": _kind(config, state),
        "tensors": len(state),
        "parameters": sum(value.numel() for value in state.values()),
        "dtypes": ", ".join(sorted({str(value.dtype).removeprefix("torch.") for value in state.values()})),
        "bytes": weights.stat().st_size,
    }


def _kind(config: str | GPMConfig | None, state: State) -> str:
    if isinstance(config, str):
        return config
    if config is not None:
        return f"gpm (dim {config.dim}, depth {config.depth}, camera head {config.camera_head})"
    if _is_salad(state):
        return _SALAD
    return " or ".join(recognise(plain_names(state))) or "unknown"


def _is_salad(state: State) -> bool:
    return "aggregator.dust_bin" in state


def verify(path: Path) -> dict[str, Any]:
    """As `info`, with the digest, of a checkpoint that loads whole and is what the hub published."""
    config, weights = describe(path)
    digest = sha256(weights)
    _check_digest(weights, digest)
    state = read_state(weights)
    names = recognise(plain_names(state))
    if _is_salad(state):
        load_salad(state)
    elif config is not None or names:
        load_gpm(config or names[0], state)
    else:
        raise FormatError(f"{weights}: the weights fit no known network; add the model's {CONFIG_FILE}")
    return _facts(config, weights, state) | {"sha256": digest, "loads": True}


def _check_digest(weights: Path, digest: str) -> None:
    """The hub's cache names every large file by its SHA-256."""
    stored = weights.resolve().name
    if re.fullmatch(r"[0-9a-f]{64}", stored) and stored != digest:
        raise FormatError(
            f"{weights}: its content is not what the model hub published; delete it and fetch again"
        )


def parameter_count(config: str | GPMConfig) -> int:
    """How many numbers a GPM learns; shared ones count once."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_gpm(config).parameters())

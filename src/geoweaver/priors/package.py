"""Networks of packages that users install themselves: imported when needed, one line where missing."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError

from geoweaver.errors import ConfigError, FormatError, InputError, pip_install
from geoweaver.models.hub import failures
from geoweaver.models.weights import name_some, read_state
from geoweaver.priors.memory import Footprint, vit_footprint
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views
from geoweaver.store import digest_of, file_digest

log = logging.getLogger(__name__)

_FREE = "Apache-2.0"
LICENCES = {
    "facebook/VGGT-1B": "the VGGT licence, not for commercial use",
    "facebook/VGGT-1B-Commercial": "the VGGT licence, for commercial use after an application",
    "yyfz233/Pi3": "CC-BY-NC-4.0, not for commercial use",
    "yyfz233/Pi3X": "CC-BY-NC-4.0, not for commercial use",
    "facebook/map-anything": "CC-BY-NC, not for commercial use",
    "facebook/map-anything-apache": _FREE,
}
"""Of the published weights, by their names on the model hub."""
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")


@dataclass(frozen=True)
class PackageNetwork:
    """A user's installed model, how to ask it, and how to read its answer."""

    model: Any
    ask: Callable[[Any, Views, str], Prediction]
    device: str

    def __call__(self, views: Views) -> Prediction:
        used = [torch.cuda.current_device()] if self.device == "cuda" else []
        with half_precision(self.device), torch.random.fork_rng(used):
            # Pi3X shakes the scale of known cameras at random, in use as in training
            torch.manual_seed(0)
            return self.ask(self.model, views, self.device)

    def footprint(self, size: tuple[int, int]) -> Footprint:
        """All of these are ViT-L sized, with two to four dense heads that see all views at once."""
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        return vit_footprint(2048, size, 256, weights)


def half_precision(device: str) -> torch.autocast:
    """bfloat16 or float16 on a GPU, nothing on a CPU."""
    good = device == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device, dtype=torch.bfloat16 if good or device == "cpu" else torch.float16,
                          enabled=device == "cuda")  # fmt: skip


def installed(module: str, what: str, source: str) -> ModuleType:
    """A module of an optional package, or one line that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        if missing.partition(".")[0] == module.partition(".")[0]:
            raise ConfigError(
                f"the prior {what} needs its package, which is not installed: {pip_install(source)}"
            ) from error
        raise ConfigError(
            f"the package of the prior {what} lacks {missing}: {pip_install(missing)}"
        ) from error


def locate_package(package: str, default: str, path: str) -> tuple[str, str]:
    """A weight file, a folder, or a name on the model hub; the digest knows the package's version too."""
    where = path or default
    try:
        edition = version(package)
    except PackageNotFoundError:
        edition = "from source"
    return where, f"{package} {edition} {_content(where, default)}"


def _content(where: str, default: str) -> str:
    """A digest of weights that are here; the name of others, after a word on their licence."""
    place = Path(where)
    if place.is_file():
        read_state(place, "meta")
        return file_digest(place)
    if place.is_dir():
        return _folder_digest(place)
    if not _HUB_NAME.fullmatch(where):
        raise InputError(
            f"{where}: no such weight file or folder; check the path, or give a name on the hub: {default}"
        )
    _tell_licence(where)
    return where


def _folder_digest(folder: Path) -> str:
    """Of all weights and settings in a folder; damaged ones show now."""
    files = sorted(file for file in folder.iterdir() if file.suffix in (*_WEIGHTS, ".json"))
    if not any(file.suffix in _WEIGHTS for file in files):
        raise InputError(f"{folder}: holds no weight file ({', '.join(_WEIGHTS)}); check the path")
    for file in files:
        if file.suffix == ".safetensors":
            read_state(file, "meta")
    return digest_of([[file.name, file_digest(file)] for file in files])


@lru_cache
def _tell_licence(name: str) -> None:
    """One line, once in a process, before anything is fetched."""
    terms = LICENCES.get(name, "the licence on their page of the model hub")
    level = logging.INFO if terms == _FREE else logging.WARNING
    log.log(level, "the weights %s are under %s: use them only as it allows", name, terms)


def load_package(model_class: Any, where: str, device: str) -> Any:
    """A model from a weight file, or by its own `from_pretrained` from a folder or the model hub."""
    file = Path(where)
    model = _fitted(model_class(), file) if file.is_file() else _pretrained(model_class, where)
    return model.to(device).eval()


def _fitted(model: Any, file: Path) -> Any:
    """The model with a file's weights, all of them and no others."""
    state, expected = read_state(file), model.state_dict()
    shapes, wanted = ({key: value.shape for key, value in part.items()} for part in (state, expected))
    unfit = sorted(key for key in shapes.keys() | wanted.keys() if shapes.get(key) != wanted.get(key))
    if unfit:
        raise FormatError(f"{file}: {len(unfit)} weights do not fit this model: {name_some(unfit)}")
    model.load_state_dict(state)
    return model


def _pretrained(model_class: Any, where: str) -> Any:
    """By the package's own loader, whose failures become one line."""
    unreadable: tuple[type[Exception], ...] = (*failures(), SafetensorError)
    try:
        return model_class.from_pretrained(where)
    except unreadable as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{where}: these weights cannot be fetched or read ({words}); check the name, or go online"
        ) from error
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        if not lines or "loading state_dict" not in lines[0]:
            raise
        raise FormatError(f"{where}: the weights do not fit this model: {' '.join(lines[1:2])}") from error

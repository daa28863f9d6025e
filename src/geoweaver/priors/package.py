"""Networks of packages that users install themselves: imported when needed, one line where missing."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from geoweaver.errors import ConfigError, InputError
from geoweaver.models.weights import read_state
from geoweaver.priors.memory import Footprint, vit_footprint
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views
from geoweaver.store import file_digest


@dataclass(frozen=True)
class PackageNetwork:
    """A user's installed model, how to ask it, and how to read its answer."""

    model: Any
    ask: Callable[[Any, Views, str], Prediction]
    device: str

    def __call__(self, views: Views) -> Prediction:
        with half_precision(self.device):
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


def installed(module: str, what: str, how: str) -> ModuleType:
    """A module of an optional package, or one line that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        if missing.partition(".")[0] == module.partition(".")[0]:
            raise ConfigError(f"the prior {what} needs its package, which is not installed: {how}") from error
        raise ConfigError(
            f"the package of the prior {what} lacks {missing}: pip install {missing}"
        ) from error


def locate_package(package: str, default: str, path: str) -> tuple[str, str]:
    """A weight file, a folder, or a name on the model hub; the digest knows the package's version too."""
    where = path or default
    try:
        edition = version(package)
    except PackageNotFoundError:
        edition = "from source"
    content = file_digest(Path(where)) if Path(where).is_file() else where
    return where, f"{package} {edition} {content}"


def load_package(model_class: Any, where: str, device: str) -> Any:
    """A model from a weight file, or by its own `from_pretrained` from a folder or the model hub."""
    if Path(where).is_file():
        model = model_class()
        state = read_state(Path(where))
        missing, left = model.load_state_dict(state, strict=False)
        if missing or left:
            first = (*missing, *left)[0]
            raise InputError(
                f"{where}: {len(missing) + len(left)} weights do not fit this model, such as {first}"
            )
    else:
        model = model_class.from_pretrained(where)
    return model.to(device).eval()

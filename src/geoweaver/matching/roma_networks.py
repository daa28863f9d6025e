"""The packages behind the RoMa matchers: loaded when needed, both made to answer with warps both ways."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.errors import FormatError, InputError, MissingExtraError
from geoweaver.matching.roma_warp import Warp
from geoweaver.models import IMAGE_MEAN, IMAGE_STD
from geoweaver.models.weights import read_state

Warper = Callable[[Float[Tensor, "b 3 H W"], Float[Tensor, "b 3 H W"]], list[Warp]]
"""Two batches of images in [0, 1] at the network's size to one warp each."""
COARSE = 560
"""Pixels of a side that RoMa matches at; its second pass at 864 is left out, it cannot be batched."""
_KERNEL = "local_corr"
"""An optional package with a CUDA kernel, which `romatch` takes for granted on Linux."""


def load_romatch(path: str, device: str) -> Warper:
    """RoMa: `outdoor` and `indoor` are fetched by the package itself, anything else is a weight file."""
    package = _package("romatch")
    which = path or "outdoor"
    own = which in ("outdoor", "indoor")
    build = package.roma_indoor if which == "indoor" else package.roma_outdoor
    half = torch.float16 if device == "cuda" else torch.float32
    weights = None if own else read_state(Path(which))
    with _loading("roma", path), contextlib.redirect_stdout(sys.stderr):
        model = build(
            device=torch.device(device),
            weights=weights,
            coarse_res=COARSE,
            upsample_res=COARSE,
            amp_dtype=half,
            use_custom_corr=device == "cuda" and find_spec(_KERNEL) is not None,
        )
    model.upsample_preds, model.symmetric = False, True
    return _Romatch(model, device)


class _Romatch:
    """The two directions stand side by side: (b, H, 2 W, 4) and (b, H, 2 W)."""

    def __init__(self, model: Any, device: str) -> None:
        self.model, self.device = model, device

    def __call__(self, images_i: Tensor, images_j: Tensor) -> list[Warp]:
        batch = [_normalised(images).to(self.device) for images in (images_i, images_j)]
        warp, certainty = self.model.match(*batch, batched=True, device=torch.device(self.device))
        warp, certainty = warp.float().cpu(), certainty.float().cpu()
        width = warp.shape[2] // 2
        return [Warp(w[:, :width, 2:], c[:, :width], w[:, width:, :2], c[:, width:])
                for w, c in zip(warp, certainty, strict=True)]  # fmt: skip


def load_romav2(path: str, device: str) -> Warper:
    """RoMa v2, whose weights the package fetches itself unless a file is given."""
    package = _package("romav2")
    weights = read_state(Path(path)) if path else None
    if device != "cuda":
        with contextlib.suppress(ImportError):
            # without its kernel the package computes the same in torch
            setattr(import_module("romav2.local_correlation"), _KERNEL, None)
    with _loading("romav2", path):
        # romav2 2.0.0 loads its own weights only where it is given no settings
        model = package.RoMaV2() if weights is None else package.RoMaV2(package.RoMaV2.Cfg(compile=False))
        if weights is not None:
            model.load_state_dict(weights)
    model.apply_setting("base")
    # the setting asks for one direction and the second pass for twice the memory
    model.bidirectional, model.threshold = True, None
    return _Romav2(model.to(device).eval(), device)


class _Romav2:
    """A dictionary of warps (b, H, W, 2) and overlaps (b, H, W, 1)."""

    def __init__(self, model: Any, device: str) -> None:
        self.model, self.device = model, device

    def __call__(self, images_i: Tensor, images_j: Tensor) -> list[Warp]:
        told = self.model.match(images_i.to(self.device), images_j.to(self.device))
        names = ("warp_AB", "overlap_AB", "warp_BA", "overlap_BA")
        there, sure, back, sure_back = (told[name].float().cpu() for name in names)
        return [Warp(there[k], sure[k, ..., 0], back[k], sure_back[k, ..., 0]) for k in range(len(there))]


@contextlib.contextmanager
def _loading(name: str, path: str) -> Iterator[None]:
    """Weights that the package cannot fetch, or that are another network's, as one line."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"the weights of the matcher {name} cannot be fetched ({error}): go online once, they stay in "
            f"torch's cache ({torch.hub.get_dir()}), or use --matcher classical"
        ) from error
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        if not lines or "loading state_dict" not in lines[0]:
            raise
        raise FormatError(f"{path}: not weights of the matcher {name}: {' '.join(lines[1:2])}") from error


def _normalised(images: Tensor) -> Tensor:
    mean, std = (images.new_tensor(values)[:, None, None] for values in (IMAGE_MEAN, IMAGE_STD))
    return (images - mean) / std


def _package(name: str) -> ModuleType:
    """The installed package; torchvision, which it needs, says RuntimeError where its build does not fit."""
    try:
        return import_module(name)
    except (ImportError, RuntimeError) as error:
        raise MissingExtraError(f"{name} ({error})", "matchers", f"the matcher {name}") from error


LOADERS: dict[str, Callable[[str, str], Warper]] = {"roma": load_romatch, "romav2": load_romav2}

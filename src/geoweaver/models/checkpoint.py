"""GPM checkpoints: state dicts with Depth Anything 3's names, and folders laid out as on the model hub."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.models.families import (
    FAMILIES,
    NESTED,
    GPMConfig,
    config_as_mapping,
    config_from_mapping,
    family_name,
)
from geoweaver.models.gpm import GPM, NestedGPM
from geoweaver.models.weights import (
    State,
    load_strictly,
    plain_names,
    read_json,
    read_state,
    with_shared_norm,
)

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
_OLD_WEIGHTS = ("*.safetensors", "*.pth", "*.pt", "*.bin", "*.ckpt")
_BACKBONES = {
    "vits": (384, 12, 6, False),
    "vitb": (768, 12, 12, False),
    "vitl": (1024, 24, 16, False),
    "vitg": (1536, 40, 24, True),
}
"""dim, depth, heads, SwiGLU by the names in DA3's configs."""

AnyConfig = str | Mapping[str, Any] | GPMConfig
"""A family's name, or the sizes themselves."""


def build_gpm(config: AnyConfig) -> nn.Module:
    """A GPM with fresh random weights on torch's current default device."""
    if isinstance(config, str):
        name = family_name(config)
        if name == NESTED:
            return NestedGPM(FAMILIES["da3-giant"], FAMILIES["da3metric-large"])
        return GPM(FAMILIES[name])
    return GPM(config if isinstance(config, GPMConfig) else config_from_mapping(config))


def load_gpm(
    config: AnyConfig, state_dict: Mapping[str, Tensor], *, fresh: tuple[str, ...] = ()
) -> nn.Module:
    """A GPM with given weights, in evaluation mode; any key missing or left over is an error that names it.

    Parts whose names start with one of `fresh` (such as "cam_dec.") keep new random weights instead.
    """
    state = with_shared_norm(plain_names(state_dict))
    what = f"the GPM {family_name(config)}" if isinstance(config, str) else "this GPM"
    if fresh:
        network = build_gpm(config)
        state = {key: value for key, value in state.items() if not key.startswith(fresh)}
        state |= {key: value for key, value in network.state_dict().items() if key.startswith(fresh)}
    else:
        with torch.device("meta"):
            network = build_gpm(config)
    _check_family(config, state)
    load_strictly(network, state, what)
    return network.eval()


def _check_family(config: AnyConfig, state: State) -> None:
    """Weights of another family would be thousands of wrong shapes: say the one thing that matters."""
    names = recognise(state)
    if isinstance(config, str) and names and family_name(config) not in names:
        raise FormatError(f"these weights are of {' or '.join(names)}, not of {family_name(config)}")


def recognise(state: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Names of the families whose ViT these weights fit; none if unknown."""
    if any(key.startswith("da3_metric.") for key in state):
        return (NESTED,)
    token = state.get("backbone.pretrained.cls_token")
    if token is None:
        return ()
    depth = len({key.split(".")[3] for key in state if key.startswith("backbone.pretrained.blocks.")})
    monocular = "backbone.pretrained.camera_token" not in state
    sizes = (token.shape[-1], depth, monocular)
    return tuple(name for name, c in FAMILIES.items() if (c.dim, c.depth, c.monocular) == sizes)


def load_gpm_folder(path: Path, family: str | None = None, device: str = "cpu") -> nn.Module:
    """A GPM from a folder with config.json and model.safetensors, or from one weight file of a known size.

    On the device "meta" it has no numbers: what is damaged or of another family is refused in a moment.
    """
    config, weights = describe(path, family)
    state = read_state(weights, device)
    if config is None:
        config = _guess_family(state, weights)
    try:
        return load_gpm(config, state)
    except FormatError as error:
        raise FormatError(f"{weights}: {error}") from error


def describe(path: Path, family: str | None = None) -> tuple[str | GPMConfig | None, Path]:
    """Which network a folder or file holds (None: only its weights can tell), and where the weights are."""
    if path.is_dir():
        weights = _weights_in(path)
        config = read_config(path / CONFIG_FILE) if (path / CONFIG_FILE).exists() else None
    elif path.is_file():
        weights, config = path, None
    else:
        raise InputError(f"{path}: no such checkpoint; fetch one with  geoweaver models fetch NAME")
    if family is None:
        return config, weights
    if isinstance(config, str) and config != family_name(family):
        # two families may have weights of the same names and sizes
        raise FormatError(
            f"{path / CONFIG_FILE}: names {config}, not {family_name(family)}; take the prior of that family"
        )
    return family_name(family), weights


def _weights_in(folder: Path) -> Path:
    if (folder / WEIGHTS_FILE).exists():
        return folder / WEIGHTS_FILE
    others = sorted(file for pattern in _OLD_WEIGHTS for file in folder.glob(pattern))
    if len(others) != 1:
        found = f"{len(others)} weight files" if others else "no weight file"
        raise InputError(f"{folder}: holds {found}; {WEIGHTS_FILE} is expected, or name the file itself")
    return others[0]


def _guess_family(state: State, weights: Path) -> str:
    names = recognise(plain_names(state))
    if len(names) != 1:
        said = f"fit {' and '.join(names)}" if names else "fit no known family"
        raise InputError(f"{weights}: without {CONFIG_FILE} the weights {said}; add it, or name the family")
    return names[0]


def read_config(path: Path) -> str | GPMConfig:
    """A family's name where config.json gives a known one, else the sizes that it lists."""
    content = read_json(path)
    try:
        if isinstance(content.get("gpm"), dict):
            config = config_from_mapping(content["gpm"])
            return next((name for name, known in FAMILIES.items() if known == config), config)
        name = content.get("model_name")
        if isinstance(name, str) and (isinstance(content.get("config"), dict) is False or _is_known(name)):
            return family_name(name)
        if isinstance(content.get("config"), dict):
            return _from_nodes(content["config"])
    except ConfigError as error:
        raise FormatError(f"{path}: {error}") from error
    raise FormatError(
        f"{path}: names no model; expected the keys model_name and config, as in DA3's checkpoints"
    )


def _is_known(name: str) -> bool:
    try:
        family_name(name)
    except ConfigError:
        return False
    return True


def _from_nodes(nodes: Mapping[str, Any]) -> GPMConfig:
    """The sizes in DA3's own description of a network (its `net` and `head`)."""
    net, head = nodes.get("net"), nodes.get("head")
    if not isinstance(net, dict) or not isinstance(head, dict) or net.get("name") not in _BACKBONES:
        raise ConfigError(
            f"its config describes no network of ours: net.name must be one of {', '.join(_BACKBONES)}"
        )
    dim, depth, heads, swiglu = _BACKBONES[net["name"]]
    alt_start = net.get("alt_start", -1)
    starts = {net.get(key, alt_start) for key in ("qknorm_start", "rope_start")}
    if starts != {alt_start} or bool(net.get("cat_token", alt_start != -1)) != (alt_start != -1):
        raise ConfigError("qknorm_start and rope_start must equal alt_start, and cat_token go with it")
    sizes = {
        "taps": net.get("out_layers", ()),
        "features": head.get("features"),
        "out_channels": head.get("out_channels", ()),
    }
    config = config_from_mapping(
        {"dim": dim, "depth": depth, "heads": heads, "swiglu": swiglu, "alt_start": alt_start, **sizes}
    )
    return replace(
        config,
        camera_head="mlp" if "cam_dec" in nodes else "none",
        pose_conditioning="cam_enc" in nodes,
    )


def save_gpm(network: GPM, folder: Path) -> None:
    """Writes a GPM as its hub folder: config.json and model.safetensors, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name, config in FAMILIES.items() if config == network.config]
    content = {"model_name": names[0] if names else "gpm", "gpm": config_as_mapping(network.config)}
    # The shared norm is stored once, as in DA3's files.
    state = {
        f"model.{key}": value.contiguous() for key, value in network.state_dict().items() if not _is_copy(key)
    }
    (folder / f"{WEIGHTS_FILE}.part").write_bytes(safetensors.torch.save(state))
    (folder / f"{WEIGHTS_FILE}.part").replace(folder / WEIGHTS_FILE)
    (folder / f"{CONFIG_FILE}.part").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / f"{CONFIG_FILE}.part").replace(folder / CONFIG_FILE)


def _is_copy(key: str) -> bool:
    return any(f"output_conv2_aux.{level}.2." in key for level in (1, 2, 3))

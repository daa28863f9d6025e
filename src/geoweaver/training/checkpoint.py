"""A training's state in one file without code: weights, AdamW's moments, the step, and whose it is."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from geoweaver.errors import ConfigError, FormatError
from geoweaver.formats.files import place, reason, writing
from geoweaver.models import GPM
from geoweaver.training.settings import TrainConfig

CHECKPOINT = "checkpoint.safetensors"
_NOTE = "training"
_IDLE = ("checkpoint_every", "validate_every", "validation_clips", "log_every", "recompute")
"""Settings that do not change what is learnt."""


def identity(config: TrainConfig, data: tuple[str, ...], start: str, world_size: int) -> dict[str, Any]:
    """What must be equal for one training to be the continuation of another."""
    kept = {key: value for key, value in asdict(config).items() if key not in _IDLE}
    whole = {"config": kept, "data": list(data), "start": start, "processes": world_size}
    same: dict[str, Any] = json.loads(json.dumps(whole))
    return same


def save_checkpoint(
    path: Path, network: GPM, optimiser: torch.optim.Optimizer, step: int, who: dict[str, Any]
) -> None:
    """Written whole or not at all; `step` iterations are done."""
    tensors = {f"weight.{name}": value for name, value in _distinct(network).items()}
    for name, parameter in network.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = torch.as_tensor(value)
    plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    # one entry: safetensors writes several in any order, and equal states must be equal bytes
    note = json.dumps({"step": step, "identity": who}, sort_keys=True)
    with writing(path) as file:
        file.write(safetensors.torch.save(plain, metadata={_NOTE: note}))


def load_checkpoint(path: Path, network: GPM, optimiser: torch.optim.Optimizer, who: dict[str, Any]) -> int:
    """Put the state in place; returns how many iterations are done."""
    step, known = read_note(path)
    if known != who:
        differs = sorted(_differences(known, who))
        raise ConfigError(
            f"{place(path)} belongs to a training with other settings ({', '.join(differs)}): "
            "give the same ones, another -o, or --overwrite"
        )
    state = safetensors.torch.load_file(path)
    with torch.no_grad():
        for name, parameter in _distinct(network).items():
            parameter.copy_(_entry(path, state, f"weight.{name}"))
    for name, parameter in network.named_parameters():
        moments = {
            key: state[f"{key}.{name}"].to(parameter.device if key != "step" else "cpu")
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{key}.{name}" in state
        }
        if moments:
            optimiser.state[parameter] = moments
    return step


def read_note(path: Path) -> tuple[int, dict[str, Any]]:
    """How many iterations are done, and whose they are."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            note = json.loads((file.metadata() or {})[_NOTE])
        return int(note["step"]), dict(note["identity"])
    except (safetensors.SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FormatError(
            f"{place(path)} is no checkpoint of a training ({reason(error)}): remove it, or use --overwrite"
        ) from None


def _distinct(network: GPM) -> dict[str, Tensor]:
    """Parameters once each, shared ones under their first name."""
    return dict(network.named_parameters())


def _entry(path: Path, state: dict[str, Tensor], key: str) -> Tensor:
    if key not in state:
        raise FormatError(f"{place(path)} lacks {key}: remove it, or use --overwrite")
    return state[key]


def _differences(known: dict[str, Any], who: dict[str, Any]) -> list[str]:
    names = []
    for key in known.keys() | who.keys():
        a, b = known.get(key), who.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            names += _differences(a, b)
        elif a != b:
            names.append(key)
    return names

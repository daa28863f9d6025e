"""One process, or several through lightning-fabric: the loop does not know which."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from geoweaver.errors import ConfigError, MissingExtraError


@dataclass(frozen=True)
class Processes:
    """What the loop needs of them."""

    device: torch.device
    rank: int
    count: int
    wrap: Callable[[nn.Module], Any]
    """The network as the forward pass calls it: gradients are then averaged over all processes."""
    average: Callable[[Tensor], Tensor]
    barrier: Callable[[], None]


def start_processes(device: str, count: int) -> Processes:
    """Start them (`count` in all); a single one needs no library."""
    kind = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: PyTorch sees no GPU; leave it out, or check geoweaver doctor")
    if count < 1:
        raise ConfigError(f"--devices {count}: one process at least is needed")
    if count > 1:
        return _through_fabric(kind, count)
    return Processes(torch.device(kind), 0, 1, lambda n: n, lambda value: value, lambda: None)


def _through_fabric(kind: str, count: int) -> Processes:
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise MissingExtraError("lightning-fabric", "train", "training on several devices") from None
    fabric: Any = Fabric(accelerator=kind, devices=count, strategy="ddp", precision="32-true")
    fabric.launch()
    return Processes(
        fabric.device,
        fabric.global_rank,
        fabric.world_size,
        lambda network: _distributed(network, fabric.device),
        lambda value: fabric.all_reduce(value, reduce_op="mean"),
        fabric.barrier,
    )


def _distributed(network: nn.Module, device: torch.device) -> nn.Module:
    """torch's own wrapper: the plain network stays ours, with its names and its optimiser."""
    from torch.nn.parallel import DistributedDataParallel

    ids = [device.index] if device.type == "cuda" else None
    return DistributedDataParallel(network, device_ids=ids)


def seed_everything(seed: int) -> None:
    """For what draws without being given a generator: fresh weights."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)

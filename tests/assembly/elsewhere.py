"""A second device for machines that have one: tensors that say they are elsewhere, and refuse to meet others.

They claim the device `meta`, hold their numbers on the CPU, and compute there. As between real devices,
tensors of the two meet only in copies that name a device; alone a plain tensor without dimensions, a number,
may join those elsewhere. What needs memory on the CPU, such as `numpy()`, fails.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ELSEWHERE = torch.device("meta")


class Distant(Tensor):
    """A tensor elsewhere."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> "Distant":
        distant = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=ELSEWHERE
        )
        distant.held = held
        return distant

    @classmethod
    def __torch_dispatch__(cls, operation: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})


class SecondDevice(TorchDispatchMode):
    """Within it tensors can be made elsewhere; counts what ran there."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, operation: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = _run(operation, args, kwargs or {})
        self.operations += any(isinstance(x, Distant) for x in tree_leaves(out))
        return out


def _run(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    there = any(isinstance(x, Distant) for x in tensors)
    if there and any(x.dim() and not isinstance(x, Distant) for x in tensors):
        raise RuntimeError(f"{operation}: tensors of two devices meet")
    device = kwargs.get("device")
    goes_there = there if device is None else torch.device(device) == ELSEWHERE
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    out = operation(*tree_map(_plain, args), **tree_map(_plain, kwargs))
    if operation._schema.is_mutable:
        return args[0]
    return tree_map(lambda x: Distant(x) if isinstance(x, Tensor) else x, out) if goes_there else out


def _plain(value: Any) -> Any:
    return value.held if isinstance(value, Distant) else value

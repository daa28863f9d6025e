"""How values travel between processes: tensors as plain bytes, errors with the traceback they had."""

import copyreg
import io
import sys
import traceback
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch import Tensor


class WorkerTraceback(Exception):  # noqa: N818 - it is shown as a cause, never caught
    """Where in the worker an error arose; shown as the error's cause."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


def pack(value: Any) -> bytes:
    """Any value of importable types; tensors arrive on the CPU, detached."""
    buffer = io.BytesIO()
    packer = ForkingPickler(buffer, 5)
    # Torch would send tensors through /dev/shm, which is tiny in containers, and one open file for each.
    packer.dispatch_table = {**copyreg.dispatch_table, Tensor: _take_apart}
    packer.dump(value)
    return buffer.getvalue()


def unpack(parcel: bytes) -> Any:
    """What `pack` was given."""
    return ForkingPickler.loads(parcel)


def answer(function: Callable[[Any], Any], piece: Any) -> bytes:
    """The function's result as a parcel, or the error it raised."""
    try:
        return pack((True, function(piece)))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
        return pack((False, _describe(error)))


def read_answer(parcel: bytes) -> tuple[Any, BaseException | None]:
    """The result that `answer` packed, or the error, with the worker's traceback as its cause."""
    fine, value = unpack(parcel)
    return (value, None) if fine else (None, _revive(*value))


def _take_apart(tensor: Tensor) -> tuple[Any, ...]:
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return _put_together, (flat, tensor.dtype, tuple(tensor.shape))


def _put_together(flat: np.ndarray, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    return torch.from_numpy(flat).view(dtype).reshape(shape)


def _describe(error: BaseException) -> tuple[Any, ...]:
    """Class, arguments, attributes and traceback, each reduced to what surely travels."""
    cls = type(error)
    found = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
    # An OSError's file name is in no args, only in what it reduces to.
    arguments = tuple(_plain(a) for a in error.__reduce__()[1])
    attributes = {name: _plain(value) for name, value in vars(error).items()}
    trace = "".join(traceback.format_exception(error))
    return cls if found is cls else None, arguments, attributes, f"{cls.__name__}: {error}", trace


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str | bytes) else repr(value)


def _revive(
    cls: type[BaseException] | None,
    arguments: tuple[Any, ...],
    attributes: dict[str, Any],
    words: str,
    trace: str,
) -> BaseException:
    try:
        if cls is None:
            raise TypeError("the class cannot be imported by name")
        # Our own classes may build their message from other parameters than args: they are not called again.
        error = cls(*arguments) if cls.__module__ == "builtins" else cls.__new__(cls, *arguments)
        error.__dict__.update(attributes)
    except (TypeError, ValueError):  # A class that wants more than its args; its words must do.
        error = RuntimeError(words)
    error.__cause__ = WorkerTraceback(trace)
    return error

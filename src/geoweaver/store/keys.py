"""Keys: one short text that changes whenever a stage, its configuration or anything it reads changes."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor

from geoweaver.errors import InputError

NOT_IN_KEY: dict[str, Any] = {"in_key": False}
"""Metadata of a config field that cannot change the result: `field(default=1, metadata=NOT_IN_KEY)`."""


def artifact_key(
    stage: str,
    version: int | str,
    config: Any,
    inputs: Mapping[str, str] | Sequence[str] = (),
    root: Path | None = None,
) -> str:
    """The key of one artifact: stage, its version, resolved config, and digests of all it is made from."""
    return digest_of([stage, version, config, inputs], root)


def digest_of(value: Any, root: Path | None = None) -> str:
    """Digest of a config value; two values have the same one only if they are written the same way."""
    return hashlib.sha256(canonical(value, root).encode()).hexdigest()[:32]


def canonical(value: Any, root: Path | None = None) -> str:
    """A config as JSON in the one way: sorted, floats by repr, kinds tagged, paths inside `root` relative."""
    return json.dumps(_plain(value, root), sort_keys=True, separators=(",", ":"))


def _plain(value: Any, root: Path | None) -> Any:
    # Enums come before numbers and text: an IntEnum is both, and its name outlives its value.
    if isinstance(value, Enum):
        return {"enum": f"{type(value).__name__}.{value.name}"}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PurePath):
        return {"path": _relative(value, root)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in dataclasses.fields(value) if f.metadata.get("in_key", True)]
        return {"class": type(value).__name__, "fields": {k: _plain(getattr(value, k), root) for k in kept}}
    if isinstance(value, Mapping):
        return {"map": sorted([canonical(k, root), _plain(v, root)] for k, v in value.items())}
    if isinstance(value, set | frozenset):
        return {"set": sorted(canonical(v, root) for v in value)}
    if isinstance(value, Sequence):
        return [_plain(v, root) for v in value]
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return {"tensor": tensor_digest(torch.as_tensor(value))}
    raise TypeError(f"a {type(value).__name__} cannot be part of a key: {value!r}")


def _relative(path: PurePath, root: Path | None) -> str:
    inside = root is not None and path.is_relative_to(root)
    return (path.relative_to(root) if inside and root is not None else path).as_posix()


def tensor_digest(tensor: Tensor) -> str:
    """Digest of a tensor's type, shape and bytes."""
    head = f"{tensor.dtype} {tuple(tensor.shape)} ".encode()
    return hashlib.sha256(head + bytes(tensor_bytes(tensor))).hexdigest()[:32]


def tensor_bytes(tensor: Tensor) -> memoryview:
    """The tensor's values in row-major order, without a copy where they already lie so."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if not flat.numel():
        # without values a tensor may keep a stride of 0, of which torch makes no view
        return memoryview(b"")
    return flat.view(torch.uint8).numpy().data


def file_digest(path: Path) -> str:
    """Digest of a file's content: what a key holds instead of a path outside the run folder."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error

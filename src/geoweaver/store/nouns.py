"""Nouns as flat tables: any frozen dataclass of tensors, plain values and other such dataclasses."""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from torch import Tensor

from geoweaver.errors import StoreError
from geoweaver.store.workspace import Store

T = TypeVar("T")


def flatten(noun: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """A noun's tensors by dotted field name (`cam_from_chunk.rotation`), and the rest as JSON-able notes."""
    tensors: dict[str, Tensor] = {}
    return tensors, {"noun": _flatten(noun, "", tensors)}


def restore(cls: type[T], tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> T:
    """The noun that `flatten` took apart, value for value."""
    value = _restore(cls, meta["noun"], tensors)
    assert isinstance(value, cls)
    return value


def cached_noun(
    store: Store, cls: type[T], stage: str, piece: str, key: str, compute: Callable[[], T]
) -> tuple[T, str]:
    """A stage's noun for one piece, computed if it is not in the store, and its digest for later keys."""
    artifact = store.cached(stage, piece, key, lambda: flatten(compute()))
    return restore(cls, artifact.tensors, artifact.meta), artifact.digest


def _flatten(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The value as JSON: tensors replaced by their names, and tags where JSON cannot tell kinds apart."""
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, Enum):
        return {"enum": value.name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_flatten(v, _join(path, i), tensors) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {"map": [[k, _flatten(v, _join(path, k), tensors)] for k, v in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value)]
        fields = {name: _flatten(getattr(value, name), _join(path, name), tensors) for name in names}
        return {"class": type(value).__name__, "fields": fields}
    raise TypeError(
        f"{path or 'the noun'} is a {type(value).__name__}: only tensors and plain values can be kept"
    )


def _join(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def _restore(hint: Any, saved: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Walk annotation and saved value side by side."""
    hint = _member(hint, saved)
    if isinstance(saved, list):
        items = [_restore(_element(hint, i), v, tensors) for i, v in enumerate(saved)]
        return items if get_origin(hint) is list else tuple(items)
    if not isinstance(saved, dict):
        return saved
    if "tensor" in saved:
        return tensors[saved["tensor"]]
    if "enum" in saved:
        return hint[saved["enum"]]
    if "map" in saved:
        inner = get_args(hint)[1] if get_args(hint) else Any
        return {k: _restore(inner, v, tensors) for k, v in saved["map"]}
    return _restore_fields(hint, saved, tensors)


def _restore_fields(cls: Any, saved: dict[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"the annotation {cls} does not say how to restore a {saved['class']}")
    every = dataclasses.fields(cls)
    # a field that came later has a default, or else nobody knows what it would have been
    needed = {f.name for f in every if f.default is f.default_factory is dataclasses.MISSING}
    kept = set(saved["fields"])
    if getattr(cls, "__name__", "") != saved["class"] or not needed <= kept <= {f.name for f in every}:
        raise StoreError(
            f"an artifact holds another version's {saved['class']}, not this {cls}: run with --overwrite"
        )
    hints, make = get_type_hints(cls), cast(Any, cls)
    return make(**{name: _restore(hints[name], value, tensors) for name, value in saved["fields"].items()})


def _member(hint: Any, saved: Any) -> Any:
    """The part of `X | None` that a saved value belongs to."""
    options = [a for a in get_args(hint) if a is not NoneType]
    if NoneType in get_args(hint) and saved is not None and len(options) == 1:
        return options[0]
    return hint


def _element(hint: Any, index: int) -> Any:
    """What the annotation of a tuple or list says about one of its elements."""
    arguments = get_args(hint)
    if not arguments:
        return Any
    return arguments[0] if len(arguments) == 1 or Ellipsis in arguments else arguments[index]

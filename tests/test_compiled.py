"""Compiled loops give the same bytes whatever was compiled before them."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from numba.core.dispatcher import Dispatcher

import geoweaver


def compiled() -> Iterator[Any]:
    """Every function that numba compiles."""
    for module in pkgutil.walk_packages(geoweaver.__path__, "geoweaver."):
        if module.name.endswith("__main__"):
            continue
        try:
            found = vars(importlib.import_module(module.name)).values()
        except ImportError:  # an optional package is not installed
            continue
        yield from (f for f in found if isinstance(f, Dispatcher) and f.__module__ == module.name)


def test_freedoms_of_rounding_are_not_handed_on() -> None:
    """numba compiles what a function calls with the caller's freedoms, if it meets it there first."""
    free = [f for f in compiled() if f.targetoptions.get("fastmath")]
    assert len(free) >= 3
    for f in free:
        if f.targetoptions.get("inline") == "always":
            continue
        known = f.py_func.__globals__
        called = [known[name] for name in f.py_func.__code__.co_names if name in known]
        apart = [g for g in called if isinstance(g, Dispatcher)]
        handed = [g for g in apart if g.targetoptions.get("inline") != "always"]
        assert not handed, f"{f.__name__} hands its freedoms to {[g.__name__ for g in handed]}"

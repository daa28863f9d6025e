"""GeoWeaver: long-video 3D reconstruction by hierarchical geometric assembly."""

import os
from typing import TYPE_CHECKING, Any

# Threads that wait spin: beside other work on the same cores every small step then takes many times as long
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Pillow writes PNGs with a broken zlib where pycolmap was loaded before it
import PIL.Image  # noqa: F401

__version__ = "0.1.0"
__all__ = ["Config", "__version__", "load_run", "reconstruct"]

if TYPE_CHECKING:
    from geoweaver.finished import load_run
    from geoweaver.pipeline import Config, reconstruct

_HOME = {
    "Config": "geoweaver.pipeline",
    "reconstruct": "geoweaver.pipeline",
    "load_run": "geoweaver.finished",
}


def __getattr__(name: str) -> Any:
    """The few names that programs begin with, imported when they are first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'geoweaver' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)

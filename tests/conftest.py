"""Shapes are checked at run time in every test: jaxtyping's annotations become assertions."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

with install_import_hook("geoweaver", "beartype.beartype"):
    import geoweaver  # noqa: F401

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# a busy machine is slow, not wrong
settings.register_profile("geoweaver", deadline=None)
settings.load_profile("geoweaver")


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real recordings; tests that ask for it are marked `realdata`."""
    folder = os.environ.get("GEOWEAVER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the environment variable GEOWEAVER_DATA points at no folder: real recordings are missing")
    return Path(folder)

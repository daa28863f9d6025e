"""Shapes are checked at run time in every test: jaxtyping's annotations become assertions."""

import ast
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import _import_hook, install_import_hook

_is_unchecked = _import_hook._is_no_type_check


def _is_unchecked_or_compiled(decorator: ast.expr) -> bool:
    """numba compiles the function itself, which a checking wrapper would hide from it."""
    return _is_unchecked(decorator) or "njit" in ast.unparse(decorator)


_import_hook._is_no_type_check = _is_unchecked_or_compiled
# not as a context manager: submodules are imported later, by the tests; the tower lets an int pass as a float
install_import_hook("geoweaver", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# one thread per process, as in the product's workers: xdist already fills the cores
for _name, _value in (
    ("OPENBLAS_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("OMP_WAIT_POLICY", "PASSIVE"),
):
    os.environ.setdefault(_name, _value)
# a shell that runs the suite in the background has it ignore Ctrl-C, and its processes would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
# a busy machine is slow, not wrong
settings.register_profile("geoweaver", deadline=None)
settings.load_profile("geoweaver")


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real recordings; tests that ask for it are marked `realdata`."""
    folder = os.environ.get("GEOWEAVER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("GEOWEAVER_DATA points at no folder: real recordings are missing")
    return Path(folder)

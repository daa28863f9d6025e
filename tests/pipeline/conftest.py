"""One small run that many tests look at."""

from pathlib import Path

import pytest
from small_sequence import OPTIONS, geoweaver, write_small


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rendered recording."""
    return write_small(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def finished(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    done = geoweaver("reconstruct", small / "images", "-o", out, *OPTIONS)
    assert done.returncode == 0, done.stderr
    return out

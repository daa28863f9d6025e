"""One film for all tests of this folder."""

from pathlib import Path

import pytest
from tiny_training import film_room


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    film_room(folder)
    return folder

"""One scratch folder per file: making a new one for each example would be most of the time."""

import pytest


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")

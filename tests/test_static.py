"""The house rules hold: style, types and the one way of imports; and the import rule can be broken."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def run(tool: str, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / tool, *arguments], cwd=folder, capture_output=True, text=True)


def assert_clean(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stdout + result.stderr


def test_ruff_finds_nothing() -> None:
    assert_clean(run("ruff", "check", ".", "--output-format", "concise"))


def test_the_layout_is_ruffs() -> None:
    assert_clean(run("ruff", "format", "--check", "."))


@pytest.mark.slow
def test_the_types_fit() -> None:
    assert_clean(run("mypy"))


def test_imports_go_one_way() -> None:
    assert_clean(run("lint-imports", "--no-cache"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that may be spoilt; `lint-imports` reads the package in the folder it runs in."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(
        ROOT / "src/geoweaver", folder / "geoweaver", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


FORBIDDEN = [
    ("matching/spoilt.py", "from geoweaver.assembly import kernel", "one way through the house"),
    ("geometry/spoilt.py", "import geoweaver.datatypes", "one way through the house"),
    ("assembly/spoilt.py", "import geoweaver.models", "the assembly knows no network"),
    ("formats/spoilt.py", "import plyfile", "no copyleft library at run time"),
]


@pytest.mark.parametrize(("place", "line", "contract"), FORBIDDEN)
def test_a_forbidden_import_breaks_the_build(house: Path, place: str, line: str, contract: str) -> None:
    spoilt = house / "geoweaver" / place
    spoilt.write_text(line + "\n")
    try:
        result = run("lint-imports", "--no-cache", folder=house)
    finally:
        spoilt.unlink()
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract} BROKEN" in result.stdout
    # the copy was read, not the installed package
    assert place.split("/")[0] + ".spoilt" in result.stdout

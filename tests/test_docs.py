"""The documents say what is: every equation has its function, every link its file, every example runs."""

import importlib
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted((ROOT / "src").rglob("*.py"))
ABSENT = "not implemented yet"

LABELS = [
    "local_priors", "front_loss", "geo_loss", "relative_pose", "camera_loss", "rotation_loss",
    "translation_loss", "match_weight", "sim3", "aligned_pose", "stage3_initialization", "affine_depth",
    "shared_intrinsics", "variables", "parameter_regularization", "lift", "residual_2d", "residual_3d",
    "residual_schedule", "logistic_smoothing", "threshold_grid", "weighted_cdf", "cdf_loss",
    "final_objective", "supp_sim3_alignment", "supp_aligned_pose", "supp_ate", "supp_rotation_error",
    "supp_rre", "supp_relative_pose", "supp_translation_angle", "supp_pose_auc",
]  # fmt: skip
"""The paper's labelled equations, in its order."""


def table() -> dict[str, str]:
    """Label to what stands beside it in docs/equations.md."""
    text = (ROOT / "docs/equations.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", text, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "an equation stands there twice"
    return dict(rows)


def named(where: str) -> list[str]:
    return re.findall(r"`([\w.]+:[\w.]+)`", where)


PLACES = [(label, name) for label, where in table().items() for name in named(where)]


def test_every_equation_is_in_the_table() -> None:
    assert list(table()) == LABELS


def test_every_equation_has_a_function_or_is_said_to_have_none() -> None:
    for label, where in table().items():
        assert (where == ABSENT) != bool(named(where)), label


@pytest.mark.parametrize(("label", "name"), PLACES)
def test_the_function_exists_and_names_its_equation(label: str, name: str) -> None:
    module, path = name.split(":")
    found = reduce(getattr, path.split("."), importlib.import_module(module))
    assert names_equation(found.__doc__ or "", label), f"{name} does not mention Eq. {label}"


def names_equation(text: str, label: str) -> bool:
    return re.search(rf"\bEqs?\. [^.()]*\b{label}\b", text) is not None


def test_a_word_is_not_taken_for_an_equation() -> None:
    assert names_equation("The point (Eq. lift).", "lift")
    assert names_equation("Both (Eqs. residual_2d, residual_3d).", "residual_3d")
    assert not names_equation("Lift, or lift twice (Eq. sim3).", "lift")


def test_the_code_names_no_equation_that_the_paper_lacks() -> None:
    for path in SOURCES:
        for group in re.findall(r"\bEqs?\. ((?:\w+(?:, | to | and )?)+)", path.read_text()):
            first = re.split(r", | to | and | ", group)[0]
            assert first in LABELS, f"{path.relative_to(ROOT)}: Eq. {first}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_decisions_are_listed_and_exist() -> None:
    folder = ROOT / "docs/decisions"
    pages = {path.name for path in folder.glob("[0-9]*.md")}
    assert set(re.findall(r"\]\(([0-9][^)]*)\)", (folder / "README.md").read_text())) == pages
    numbers = {name[:4] for name in pages}
    for path in SOURCES:
        for number in re.findall(r"docs/decisions/(\d{4})", path.read_text()):
            assert number in numbers, f"{path.relative_to(ROOT)} names decision {number}"


def test_only_commands_that_exist_are_shown() -> None:
    from geoweaver.cli.main import COMMANDS

    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs/evaluation.md"):
        for command in re.findall(r"^(?:\.venv/bin/)?geoweaver (\w+)", page.read_text(), re.MULTILINE):
            assert command in COMMANDS, f"{page.name}: geoweaver {command}"
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"`make (\w+)`", page.read_text())) <= targets, page.name


def test_results_that_the_pages_quote_exist() -> None:
    for page in (ROOT / "README.md", ROOT / "docs/measured.md"):
        for path in re.findall(r"benchmarks/results/\w+\.\w+", page.read_text()):
            assert (ROOT / path).exists(), path


def test_the_tables_say_what_the_results_say() -> None:
    from benchmarks import readme

    text = readme.README.read_text()
    assert readme.written(text) == text, "run python -m benchmarks.readme"
    assert readme.page() == readme.PAGE.read_text(), "run python -m benchmarks.readme"


@pytest.mark.slow
def test_the_example_of_the_readme_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geoweaver.synth.clips import ClipOptions, make_clip
    from geoweaver.synth.sequence import Output, write_sequence
    from geoweaver.synth.world import build_world

    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    clip = make_clip(build_world("tabletop"), ClipOptions(frames=12, laps=0.14, size=(192, 108)))
    write_sequence(clip, tmp_path, Output(images="mp4", depth="none"))
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert "external" not in built.stderr and (tmp_path / "site/index.html").exists()

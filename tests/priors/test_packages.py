"""Weights of other people's packages: what is fetched under which licence, what does not fit, what counts."""

import logging
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from huggingface_hub import errors
from stand_ins import PACKAGES, install, make_scene

from geoweaver.errors import FormatError, InputError
from geoweaver.geometry import SE3
from geoweaver.priors import find_prior, mapanything, pi3, pi3x, vggt
from geoweaver.priors.package import LICENCES, PackageNetwork, _tell_licence, load_package, locate_package
from geoweaver.priors.prediction import Prediction
from geoweaver.priors.views import Views


class Model(torch.nn.Linear):
    """A network of a package, as small as can be."""

    failure: Exception | None = None

    def __init__(self) -> None:
        super().__init__(2, 3)

    @classmethod
    def from_pretrained(cls, where: str) -> "Model":
        if cls.failure is not None:
            raise cls.failure
        model = cls()
        model.load_state_dict(safetensors.torch.load_file(f"{where}/model.safetensors"))
        return model


def save(folder: Path, shape: tuple[int, int] = (3, 2), **more: torch.Tensor) -> Path:
    folder.mkdir(exist_ok=True)
    state = {"weight": torch.ones(shape), "bias": torch.zeros(3), **more}
    safetensors.torch.save_file(state, folder / "model.safetensors")
    return folder


def refused(what: type[Exception], words: str, action: Any, *arguments: Any) -> None:
    """One line that says so."""
    with pytest.raises(what, match=words) as caught:
        action(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_licence_is_told_once_before_anything_is_fetched(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = install(name, make_scene(0), monkeypatch.setitem)
    monkeypatch.setattr(model, "from_pretrained", None)
    _tell_licence.cache_clear()
    find_prior(name)
    find_prior(name)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "not for commercial use" in line


def test_every_default_has_a_licence_and_the_page_names_them_all() -> None:
    assert {module.DEFAULT for module in (vggt, pi3, pi3x, mapanything)} <= set(LICENCES)
    page = (Path(__file__).parents[2] / "docs" / "priors.md").read_text()
    for name, terms in LICENCES.items():
        row = next(line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line)
        assert terms.partition(",")[0].removeprefix("the ") in row


def test_weights_load_from_a_file_and_a_folder(tmp_path: Path) -> None:
    folder = save(tmp_path / "a")
    for where in (folder, folder / "model.safetensors"):
        assert torch.equal(load_package(Model, str(where), "cpu").weight, torch.ones(3, 2))


def test_weights_that_do_not_fit_are_one_line(tmp_path: Path) -> None:
    folder = save(tmp_path / "a", (5, 2))
    refused(FormatError, "do not fit this model.*weight", load_package, Model, str(folder), "cpu")
    file = str(folder / "model.safetensors")
    refused(FormatError, "1 weights do not fit this model: weight", load_package, Model, file, "cpu")
    save(folder, more=torch.zeros(1))
    refused(FormatError, "1 weights do not fit this model: more", load_package, Model, file, "cpu")


@pytest.mark.parametrize("failure", [errors.HFValidationError("no"), OSError("no"), errors.HTTPError("no")])
def test_failures_of_the_hub_are_one_line(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "failure", failure)
    refused(InputError, "some/where: .*check the name", load_package, Model, "some/where", "cpu")


def test_a_bug_of_the_package_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "failure", RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        load_package(Model, "some/where", "cpu")


def test_missing_empty_and_damaged_weights_are_said_at_once(tmp_path: Path) -> None:
    refused(InputError, "no such weight file or folder", locate_package, "p", "a/b", "/nowhere/weights")
    refused(InputError, "holds no weight file", locate_package, "p", "a/b", str(tmp_path))
    file = save(tmp_path / "a") / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    refused(FormatError, "damaged or cut off", locate_package, "p", "a/b", str(file))
    refused(FormatError, "damaged or cut off", locate_package, "p", "a/b", str(file.parent))


def test_folders_count_by_their_content(tmp_path: Path) -> None:
    one, moved, other = (save(tmp_path / name) for name in "abc")
    save(other, bias=torch.ones(3))
    digests = [locate_package("p", "a/b", str(folder))[1] for folder in (one, moved, other)]
    assert digests[0] == digests[1] != digests[2]


def test_a_model_that_draws_random_numbers_says_the_same_twice() -> None:
    shaken = PackageNetwork(torch.nn.Identity(), draw, "cpu")
    views = Views(torch.zeros(2, 3, 14, 14), torch.ones(2, 4), torch.ones(2, dtype=torch.bool))
    first = shaken(views)
    torch.rand(5)
    before = torch.get_rng_state()
    assert torch.equal(first.depth, shaken(views).depth)
    assert torch.equal(torch.get_rng_state(), before), "nobody else's numbers change"


def draw(model: Any, views: Views, device: str) -> Prediction:
    n = len(views)
    return Prediction(torch.rand(n, 4, 4), None, SE3.identity(n), views.intrinsics, views.calibrated)

"""A GeoWeaver run folder: `trajectory.tum` has every frame, `run.json` says which of them are not trusted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import is_file, place, quoted
from geoweaver.formats.json_document import read_json, required_list
from geoweaver.formats.tum import read_tum

EXPECTED = "a GeoWeaver run's run.json"
EXPORT_MARKER = "geoweaver.json"
"""Stands in every folder that an export has made."""
_MADE = ("work/store.json", "store.json", EXPORT_MARKER)


def is_run_folder(folder: Path) -> bool:
    """Whether a run has left its summary or its cameras here."""
    return is_file(folder / "run.json") or is_file(folder / "trajectory.tum")


def made_by_a_run(folder: Path) -> bool:
    """Whether a run has made this folder: as its own, as its workspace, or as one of its exports."""
    whole = all(is_file(folder / name) for name in ("run.json", "trajectory.tum"))
    return whole or any(is_file(folder / name) for name in _MADE)


def read_run_folder(folder: Path) -> Trajectory:
    """Every frame of a run; `untrusted[].frame` counts the rows of trajectory.tum; `names` is optional."""
    for name in ("run.json", "trajectory.tum"):
        if not is_file(folder / name):
            raise InputError(
                f"{place(folder)} holds no {name}, the run is not finished: run geoweaver reconstruct again"
            )
    run = read_json(folder / "run.json", EXPECTED)
    trajectory = read_tum(folder / "trajectory.tum", unique=False)
    where = place(folder / "run.json")
    return replace(
        trajectory,
        trusted=_trusted(required_list(run, "untrusted", where), len(trajectory), where),
        names=_names(run, len(trajectory), where),
    )


def _trusted(untrusted: list[Any], count: int, where: str) -> Bool[Tensor, "n"]:
    trusted = torch.ones(count, dtype=torch.bool)
    for entry in untrusted:
        frame = entry.get("frame") if isinstance(entry, dict) else entry
        if not isinstance(frame, int) or isinstance(frame, bool) or not 0 <= frame < count:
            raise FormatError(
                f"{where}: an untrusted frame is {quoted(frame)}, a row of trajectory.tum (0 to {count - 1}) "
                "was expected: run geoweaver reconstruct again"
            )
        trusted[frame] = False
    return trusted


def _names(run: dict[str, Any], count: int, where: str) -> tuple[str, ...] | None:
    if "names" not in run:
        return None
    names = required_list(run, "names", where)
    if len(names) != count or not all(isinstance(name, str) for name in names):
        raise FormatError(
            f"{where}: 'names' must hold one image name for each of the {count} rows of trajectory.tum: "
            "run geoweaver reconstruct again"
        )
    return tuple(names)

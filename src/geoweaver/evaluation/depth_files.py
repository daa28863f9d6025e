"""Which depth map of a run belongs to which reference depth map, read one pair at a time."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.errors import DegenerateError, InputError
from geoweaver.evaluation.depth import DepthFrame
from geoweaver.formats.depth import DEPTH_SUFFIXES, read_confidence, read_depth
from geoweaver.formats.files import list_folder, place

A = TypeVar("A")
B = TypeVar("B")


def depth_frames(estimate: Path, reference: Path, unit: float) -> Iterator[DepthFrame]:
    """Every reference depth map with its prediction; one that the estimate lacks is all unknown."""
    found, truth = same_names(depth_maps(estimate), depth_maps(reference))
    if not found.keys() & truth.keys():
        raise DegenerateError(
            f"no depth map in {place(estimate)} has the name or number of one in {place(reference)}: "
            "name the maps like their frames"
        )
    for name, path in truth.items():
        depth = read_depth(path, unit)
        if name in found:
            yield DepthFrame(
                read_depth(found[name], unit), depth, _confidence(found[name]), place(found[name])
            )
        else:
            yield DepthFrame(torch.zeros_like(depth), depth)


def depth_maps(folder: Path) -> dict[str, Path]:
    """The depth maps of a folder by their names without ending."""
    files = list_folder(folder, "a folder of depth maps, one file per frame,")
    maps = {path.stem: path for path in files if path.suffix.lower() in DEPTH_SUFFIXES}
    if not maps:
        raise InputError(f"{place(folder)} holds no depth map ({' '.join(DEPTH_SUFFIXES)}): check the folder")
    return maps


def same_names(found: dict[str, A], truth: dict[str, B]) -> tuple[dict[str, A], dict[str, B]]:
    """Both as they are where some names agree, else by the last numbers in the names."""
    return (found, truth) if found.keys() & truth.keys() else (_by_number(found), _by_number(truth))


def _by_number(files: dict[str, A]) -> dict[str, A]:
    """The same files by the last number in their names; none of them where that is not unique."""
    numbers = [re.findall(r"[0-9]{1,18}", name) for name in files]
    keys = [str(int(found[-1])) if found else "" for found in numbers]
    unique = "" not in keys and len(set(keys)) == len(keys)
    return dict(zip(keys, files.values(), strict=True)) if unique else {}


def _confidence(path: Path) -> Float[Tensor, "h w"] | None:
    """What an .npz holds beside the depth; no other file holds any."""
    if path.suffix.lower() != ".npz" or not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        present = "confidence.npy" in archive.namelist()
    return read_confidence(path) if present else None

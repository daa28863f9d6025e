"""Which depth map of a run belongs to which reference depth map, read one pair at a time."""

import re
from collections.abc import Iterator
from pathlib import Path

import torch

from geoweaver.errors import DegenerateError, InputError
from geoweaver.evaluation.depth import DepthFrame
from geoweaver.formats.depth import DEPTH_SUFFIXES, read_depth
from geoweaver.formats.files import place


def depth_frames(estimate: Path, reference: Path, unit: float) -> Iterator[DepthFrame]:
    """Every reference depth map with its prediction; one that the estimate lacks is all unknown."""
    found, truth = depth_files(estimate), depth_files(reference)
    if not found.keys() & truth.keys():
        found, truth = _by_number(found), _by_number(truth)
    if not found.keys() & truth.keys():
        raise DegenerateError(
            f"no file in {place(estimate)} has the name or number of one in {place(reference)}: "
            "name depth maps like their frames"
        )
    for name, path in truth.items():
        depth = torch.from_numpy(read_depth(path, unit))
        predicted = (
            torch.from_numpy(read_depth(found[name], unit)) if name in found else torch.zeros_like(depth)
        )
        yield DepthFrame(predicted, depth, None, str(path))


def depth_files(folder: Path) -> dict[str, Path]:
    """The depth maps of a folder by their name without ending, sorted."""
    if not folder.is_dir():
        raise InputError(f"{place(folder)} is no folder: depth maps, one file per frame, were expected there")
    files = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in DEPTH_SUFFIXES}
    if not files:
        raise InputError(
            f"{place(folder)} holds no depth maps: files that end in {' '.join(DEPTH_SUFFIXES)} were expected"
        )
    return files


def _by_number(files: dict[str, Path]) -> dict[str, Path]:
    """The same files by the last number in their names; none of them where that is not unique."""
    numbers = [re.findall(r"\d+", name) for name in files]
    keys = [str(int(found[-1])) if found else "" for found in numbers]
    unique = "" not in keys and len(set(keys)) == len(keys)
    return dict(zip(keys, files.values(), strict=True)) if unique else {}

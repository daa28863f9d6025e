"""`folder`: your own recordings, one sub-folder each, with a reference of any format that we read."""

from functools import partial
from pathlib import Path

from geoweaver.benchmark.scene import Found, Scene, Suite, has_images
from geoweaver.errors import FormatError
from geoweaver.formats.colmap import find_colmap
from geoweaver.formats.depth import DEPTH_SUFFIXES, MILLIMETRE
from geoweaver.formats.files import data_lines, is_file, is_folder, list_folder, place
from geoweaver.formats.names import VIDEO_SUFFIXES
from geoweaver.formats.run_folder import made_by_a_run
from geoweaver.formats.trajectory import read_trajectory

REFERENCES = ("groundtruth", "reference", "gt", "poses")
"""Stems of reference files; the first that is there counts."""
_ENDINGS = (".tum", ".txt", ".csv", ".json", ".log")
_TIMES = ("timestamps.txt", "timestamps.csv", "rgb.txt")
_SIDE = ("depth", "masks")
"""Folders beside the images that are none."""


def find_folder(data: Path, calibrated: bool, depth_unit: float = MILLIMETRE) -> Found:
    """Every sub-folder that holds a recording."""
    found: Found = {}
    for folder in list_folder(data, "a folder of recordings"):
        if is_folder(folder) and not made_by_a_run(folder):
            recording = _recording(folder)
            if recording is not None:
                found[folder.name] = _scene(folder, recording, calibrated, depth_unit)
    return found


def _recording(folder: Path) -> Path | None:
    """images/ or rgb/, else the folder's own images, else its only video."""
    for images in (folder / "images", folder / "rgb"):
        if is_folder(images):
            return images
    if has_images(folder):
        return folder
    films = [path for path in list_folder(folder, "a recording") if path.suffix.lower() in VIDEO_SUFFIXES]
    return films[0] if len(films) == 1 else None


def _scene(folder: Path, recording: Path, calibrated: bool, depth_unit: float) -> Scene | str:
    side = {name: folder / name for name in _SIDE if is_folder(folder / name)}
    if recording == folder and side:
        return f"images lie beside {' and '.join(f'{n}/' for n in side)}: move them into images/"
    reference = _reference(folder)
    if reference is None:
        return "no reference (groundtruth.tum, groundtruth.txt, poses.txt, transforms.json, sparse/0/ ...)"
    depth = side.get("depth")
    holds = depth is not None and any(p.suffix.lower() in DEPTH_SUFFIXES for p in depth.iterdir())
    return Scene(
        folder.name, recording, partial(read_trajectory, reference),
        _intrinsics(folder, reference if calibrated else None), masks=side.get("masks"),
        timestamps=next((folder / name for name in _TIMES if is_file(folder / name)), None),
        depth=depth if holds else None, depth_unit=depth_unit,
    )  # fmt: skip


def _reference(folder: Path) -> Path | None:
    """By name, else a file that is a reference by its kind, else a COLMAP model."""
    files = [path for path in list_folder(folder, "a recording") if path.suffix in _ENDINGS]
    for name in REFERENCES:
        for path in files:
            if path.stem == name:
                return path
    for path in files:
        if path.name in ("transforms.json", "extrinsic.txt") or path.suffix in (".tum", ".log"):
            return path
    return find_colmap(folder)


def _intrinsics(folder: Path, reference: Path | None) -> str | None:
    """A file that the user put there; the reference's own where that is asked for and it has any."""
    if is_file(folder / "cameras.txt"):
        return str(folder / "cameras.txt")
    if is_file(folder / "intrinsics.txt"):
        return _numbers(folder / "intrinsics.txt")
    states = reference is not None and (is_folder(reference) or reference.suffix == ".json")
    return str(reference) if states else None


def _numbers(path: Path) -> str:
    """fx fy cx cy and what of the lens is known, on one line, however they are separated."""
    expected = "intrinsics (one line: fx fy cx cy [k1 k2 [p1 p2]])"
    lines = data_lines(path, expected)
    if len(lines) > 1:
        raise FormatError(f"{place(path)} has {len(lines)} lines, {expected} was expected: correct it")
    return ",".join(lines[0][1].replace(",", " ").split())


FOLDER_SUITE = Suite(
    "Your recordings",
    "DIR/NAME/ with images/ (or a video) and groundtruth.tum (or another reference), for each recording",
    find_folder,
)

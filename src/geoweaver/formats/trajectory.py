"""Any trajectory a user may hold: recognised by what is inside, read by the format's own reader."""

from pathlib import Path

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.colmap import find_colmap, read_colmap_trajectory
from geoweaver.formats.euroc import COLUMNS as EUROC_COLUMNS
from geoweaver.formats.euroc import read_euroc
from geoweaver.formats.files import data_lines, is_file, is_folder, place
from geoweaver.formats.kitti import read_kitti
from geoweaver.formats.nerfstudio import read_transforms_trajectory
from geoweaver.formats.run_folder import is_run_folder, read_run_folder
from geoweaver.formats.tnt_log import read_tnt_log
from geoweaver.formats.tum import read_tum
from geoweaver.formats.vkitti import COLUMNS as VKITTI_COLUMNS
from geoweaver.formats.vkitti import read_vkitti

EXPECTED = (
    "a trajectory (a GeoWeaver run folder, TUM, KITTI, EuRoC csv, COLMAP model folder, transforms.json, "
    "Tanks-and-Temples .log or Virtual KITTI 2's extrinsic.txt)"
)
_BY_COLUMNS = {8: read_tum, 12: read_kitti, 3: read_tnt_log}


def read_trajectory(path: Path) -> Trajectory:
    """Read a run folder, COLMAP model or transforms.json, or a TUM, KITTI, EuRoC, T&T or VKITTI 2 file."""
    return _read_folder(path) if is_folder(path) else _read_file(path)


def _read_folder(folder: Path) -> Trajectory:
    if is_run_folder(folder):
        return read_run_folder(folder)
    model = find_colmap(folder)
    if model is not None:
        return read_colmap_trajectory(model)
    if is_file(folder / "transforms.json"):
        return read_transforms_trajectory(folder / "transforms.json")
    raise InputError(
        f"{place(folder)} holds no run.json, no COLMAP model (cameras and images, also in sparse/0) "
        "and no transforms.json: give another folder or the file itself"
    )


def _read_file(path: Path) -> Trajectory:
    number, first = data_lines(path, EXPECTED)[0]
    if first.startswith("{"):
        return read_transforms_trajectory(path)
    if first.split()[0] == VKITTI_COLUMNS[0]:
        return read_vkitti(path)
    if first.count(",") >= len(EUROC_COLUMNS):
        return read_euroc(path)
    columns = len(first.split())
    if columns not in _BY_COLUMNS:
        raise FormatError(
            f"{place(path, number)}: {columns} columns fit no known format, {EXPECTED} was expected"
        )
    return _BY_COLUMNS[columns](path)

"""Any trajectory a user may hold: recognised by what is inside, read by the format's own reader."""

from pathlib import Path

from geoweaver.datatypes import Trajectory
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.euroc import read_euroc
from geoweaver.formats.files import data_lines, place
from geoweaver.formats.kitti import read_kitti
from geoweaver.formats.tum import read_tum

EXPECTED = (
    "a trajectory (a GeoWeaver run folder, TUM, KITTI, EuRoC csv, COLMAP model folder, transforms.json "
    "or Tanks-and-Temples .log)"
)


def read_trajectory(path: Path) -> Trajectory:
    """Read a run folder, TUM, KITTI, EuRoC, COLMAP model folder, transforms.json or Tanks-and-Temples log."""
    if path.is_dir():
        raise InputError(f"{place(path)} is a folder, {EXPECTED} was expected")
    return _read_file(path)


def _read_file(path: Path) -> Trajectory:
    line, first = data_lines(path, EXPECTED)[0]
    if "," in first:
        return read_euroc(path)
    readers = {8: read_tum, 12: read_kitti}
    columns = len(first.split())
    if columns not in readers:
        raise FormatError(
            f"{place(path, line)}: {columns} columns are no known format, {EXPECTED} was expected"
        )
    return readers[columns](path)

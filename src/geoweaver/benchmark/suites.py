"""Suites by name, as `geoweaver benchmark SUITE` calls them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from geoweaver.benchmark.folder_suite import FOLDER_SUITE, find_folder
from geoweaver.benchmark.paper_suites import MIP_NERF_SUITE, TANKS_SUITE, VKITTI_SUITE
from geoweaver.benchmark.scene import Found, Scene, Suite
from geoweaver.benchmark.spires import SPIRES_SUITE
from geoweaver.errors import ConfigError, InputError
from geoweaver.formats.depth import MILLIMETRE
from geoweaver.formats.files import is_folder, place

SUITES: dict[str, Suite] = {
    "tanks-and-temples": TANKS_SUITE,
    "mip-nerf-360": MIP_NERF_SUITE,
    "vkitti2": VKITTI_SUITE,
    "oxford-spires": SPIRES_SUITE,
    "folder": FOLDER_SUITE,
}


def find_scenes(
    name: str,
    data: Path,
    chosen: Sequence[str] = (),
    calibrated: bool = False,
    depth_unit: float = MILLIMETRE,
) -> Found:
    """The suite's scenes below a folder, or those of them that are asked for."""
    suite = SUITES[name]
    if not is_folder(data):
        raise InputError(f"--data {place(data)} is no folder: {suite.layout} was expected")
    find = partial(find_folder, depth_unit=depth_unit) if name == "folder" else suite.find
    found = find(data, calibrated)
    if not any(isinstance(scene, Scene) for scene in found.values()):
        why = next((f" ({scene}: {missing})" for scene, missing in found.items()), "")
        raise InputError(f"{place(data)} holds no scene of {name}: {suite.layout} was expected{why}")
    return _chosen(found, chosen)


def _chosen(found: Found, names: Sequence[str]) -> Found:
    for name in names:
        if name not in found:
            raise ConfigError(f"--scenes: there is no scene {name!r}: choose from {', '.join(found)}")
        if isinstance(found[name], str):
            raise InputError(f"--scenes: {name} is not there: {found[name]}")
    return {name: found[name] for name in found if name in names or not names}

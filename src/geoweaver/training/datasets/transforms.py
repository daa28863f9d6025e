"""`folder`: transforms.json, images and depth/, as our synthetic sequences and runs write them."""

from pathlib import Path

import torch

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.depth import DEPTH_SUFFIXES, read_depth
from geoweaver.formats.files import place
from geoweaver.formats.nerfstudio import NerfstudioScene, read_transforms
from geoweaver.frames.images import read_image
from geoweaver.training.datasets.scene import Scene, View, folders, window

EXPECTED = "sequence with transforms.json"
_PER_VIEW = 5.0


def open_folder(root: Path) -> list[Scene]:
    """One sequence, or a folder of sequences; frames without a depth map are left out."""
    return [_open(folder) for folder in folders(root, "transforms.json", EXPECTED)]


def _open(folder: Path) -> Scene:
    scene = read_transforms(folder / "transforms.json")
    depths = {path.stem: path for path in _depth_folder(folder).iterdir() if path.suffix in DEPTH_SUFFIXES}
    rows = [
        i for i, name in enumerate(scene.file_paths) if Path(name).stem in depths and scene.camera[i] >= 0
    ]
    if not rows:
        raise InputError(f"{place(folder)}: no image of transforms.json has a depth map and intrinsics")

    def read(frame: int) -> View:
        row = rows[frame]
        path = folder / scene.file_paths[row]
        depth = read_depth(depths[path.stem])
        return View(
            read_image(path), depth, scene.cam_from_world[row], _intrinsics(scene, row, path), place(path)
        )

    return Scene(place(folder), len(rows), read, window(len(rows), _PER_VIEW))


def _depth_folder(folder: Path) -> Path:
    if not (folder / "depth").is_dir():
        raise InputError(f"{place(folder)} has no folder depth/: training needs a depth map for each image")
    return folder / "depth"


def _intrinsics(scene: NerfstudioScene, row: int, path: Path) -> torch.Tensor:
    camera = scene.cameras[int(scene.camera[row])]
    p = camera.params
    if camera.model in ("SIMPLE_PINHOLE", "SIMPLE_RADIAL"):
        four, lens = (p[0], p[0], p[1], p[2]), p[3:]
    else:
        four, lens = (p[0], p[1], p[2], p[3]), p[4:]
    if any(lens):
        raise FormatError(f"{place(path)}: its lens bends straight lines: rectify the images first")
    return torch.tensor(four, dtype=torch.float64)

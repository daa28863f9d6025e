"""`blendedmvs`: <scene>/{blended_images, cams, rendered_depth_maps}; the unit of length is any."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from geoweaver.errors import FormatError
from geoweaver.formats.depth import read_depth
from geoweaver.formats.files import Line, data_lines, numbers, place
from geoweaver.formats.poses import from_matrices
from geoweaver.frames.images import read_image
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import corner_from_centre_origin
from geoweaver.training.datasets.scene import Around, Scene, View, folders, numbers_of

EXPECTED = "BlendedMVS scenes"


def open_blendedmvs(root: Path) -> list[Scene]:
    """Scenes by folder; which views go together stands in cams/pair.txt."""
    return [_open(folder) for folder in folders(root, "rendered_depth_maps", EXPECTED)]


def _open(folder: Path) -> Scene:
    stems = numbers_of(folder / "rendered_depth_maps", ".pfm", "BlendedMVS' depth maps")

    def read(frame: int) -> View:
        path = folder / "blended_images" / f"{stems[frame]}.jpg"
        depth = read_depth(folder / "rendered_depth_maps" / f"{stems[frame]}.pfm")
        camera, intrinsics = read_camera(folder / "cams" / f"{stems[frame]}_cam.txt")
        return View(read_image(path), depth, camera, intrinsics, place(path))

    return Scene(place(folder), len(stems), read, _pairs(folder, stems))


def read_camera(path: Path) -> tuple[SE3, Tensor]:
    """cam_from_world and intrinsics of a _cam.txt."""
    lines = data_lines(path, "a camera of MVSNet's form")
    words = [text.lower() for _, text in lines]
    if "extrinsic" not in words or "intrinsic" not in words:
        raise FormatError(f"{place(path)}: the words extrinsic and intrinsic are missing: fetch it again")
    pose = _rows(path, lines[words.index("extrinsic") + 1 :][:4], 4)
    K = _rows(path, lines[words.index("intrinsic") + 1 :][:3], 3)
    four = torch.tensor([K[0, 0], K[1, 1], K[0, 2], K[1, 2]])
    return from_matrices(pose[None], lambda row: place(path))[0], corner_from_centre_origin(four)


def _rows(path: Path, lines: list[Line], size: int) -> np.ndarray:
    if len(lines) != size:
        raise FormatError(f"{place(path)} ends within a matrix: fetch it again")
    return np.array([numbers(path, line, [str(k) for k in range(size)]) for line in lines])


def _pairs(folder: Path, stems: list[str]) -> Around:
    """Views that the scene's own list of pairs calls neighbours, and theirs, until there are enough."""
    places = [path for path in (folder / "cams" / "pair.txt", folder / "pair.txt") if path.exists()]
    row = {int(stem): i for i, stem in enumerate(stems)}
    near = _read_pairs(places[0], row) if places else {}

    def around(anchor: int, views: int) -> Sequence[int]:
        if not near:
            return range(len(stems))
        found = {anchor: None}
        for frame in [anchor, *near.get(anchor, [])]:
            found |= dict.fromkeys(near.get(frame, []))
            if len(found) >= 2 * views:
                break
        return list(found)

    return around


def _read_pairs(path: Path, row: dict[int, int]) -> dict[int, list[int]]:
    """How many views; then for each its number, and a line: how many neighbours, (number, score) each."""
    lines = data_lines(path, "MVSNet's list of pairs")[1:]
    near: dict[int, list[int]] = {}
    for (_, view), (line, text) in zip(lines[::2], lines[1::2], strict=False):
        words = text.split()[1::2]
        if not view.isdecimal() or not all(word.isdecimal() for word in words):
            raise FormatError(f"{place(path, line)}: view numbers were expected: fetch the file again")
        if int(view) in row:
            near[row[int(view)]] = [row[int(word)] for word in words if int(word) in row]
    return near

"""nerfstudio's `transforms.json`: camera-to-world in OpenGL axes, intrinsics for all frames or per frame.

The world is left as the file has it (nerfstudio's own have +Z up), and `applied_transform` is not undone.
Its pixels count from the image's corner as ours do: nerfstudio adds half a pixel when it casts rays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from geoweaver.datatypes import Camera, Trajectory
from geoweaver.errors import FormatError
from geoweaver.formats.files import place, quoted
from geoweaver.formats.json_document import matrix, read_json, required_list, write_json
from geoweaver.formats.names import indices_by_order, indices_in_folder
from geoweaver.formats.nerfstudio_camera import camera_from_fields, fields_from_camera
from geoweaver.formats.poses import from_matrices
from geoweaver.geometry import SE3

EXPECTED = "a transforms.json as nerfstudio writes it"


@dataclass(frozen=True)
class NerfstudioScene:
    """What a transforms.json says, in file order and in our axes."""

    file_paths: tuple[str, ...]
    cam_from_world: SE3
    cameras: tuple[Camera, ...]
    camera: Int64[Tensor, "n"]
    """Which of `cameras` took each frame; -1 where the file states no usable intrinsics."""

    def __len__(self) -> int:
        return len(self.file_paths)


def read_transforms(path: Path) -> NerfstudioScene:
    """Frames, cameras and intrinsics of a transforms.json."""
    document = read_json(path, EXPECTED)
    frames = required_list(document, "frames", place(path))
    if not frames:
        raise FormatError(
            f"{place(path)}: 'frames' is empty, {EXPECTED} was expected: check how it was written"
        )
    where = [f"{place(path)}, frame {i}" for i in range(len(frames))]
    names = tuple(_file_path(frame, w) for frame, w in zip(frames, where, strict=True))
    _refuse_equal_names(names, where)
    matrices = [
        matrix(f.get("transform_matrix"), "transform_matrix", w) for f, w in zip(frames, where, strict=True)
    ]
    found = [camera_from_fields({**document, **f}, w) for f, w in zip(frames, where, strict=True)]
    cameras = tuple(dict.fromkeys(camera for camera in found if camera is not None))
    row = {camera: i for i, camera in enumerate(cameras)}
    world_from_cam = _flip_axes(from_matrices(np.stack(matrices), lambda i: where[i]))
    camera = torch.tensor([-1 if c is None else row[c] for c in found])
    return NerfstudioScene(names, world_from_cam.inverse(), cameras, camera)


def read_transforms_trajectory(path: Path) -> Trajectory:
    """The cameras alone, named as COLMAP would name them: relative to the image folder."""
    scene = read_transforms(path)
    names = tuple(_without_image_folder(name) for name in scene.file_paths)
    names = names if len(set(names)) == len(names) else scene.file_paths
    in_folder = indices_in_folder(names, [path.parent / "images"])
    index = indices_by_order(names) if in_folder is None else in_folder
    return Trajectory(scene.cam_from_world, index=index, names=names)


def write_transforms(
    path: Path,
    scene: NerfstudioScene,
    depth_file_paths: Sequence[str] | None = None,
    ply_file_path: str | None = None,
    mask_paths: Sequence[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a scene; intrinsics stand at the top where all frames share a camera, and `more` fields do."""
    shared = len(scene.cameras) == 1 and bool((scene.camera == 0).all())
    matrices = _flip_axes(scene.cam_from_world.inverse()).matrix().tolist()
    frames = []
    for i, name in enumerate(scene.file_paths):
        frame: dict[str, Any] = {"file_path": name, "transform_matrix": matrices[i]}
        if not shared and scene.camera[i] >= 0:
            frame.update(fields_from_camera(scene.cameras[int(scene.camera[i])]))
        if depth_file_paths is not None:
            frame["depth_file_path"] = depth_file_paths[i]
        if mask_paths is not None:
            frame["mask_path"] = mask_paths[i]
        frames.append(frame)
    document = fields_from_camera(scene.cameras[0]) if shared else {}
    if ply_file_path is not None:
        document["ply_file_path"] = ply_file_path
    write_json(path, {**document, **(more or {}), "frames": frames})


def _flip_axes(world_from_cam: SE3) -> SE3:
    """OpenGL's camera looks along -z with y up, OpenCV's along +z with y down: the same flip both ways."""
    flip = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    return SE3(world_from_cam.rotation * flip, world_from_cam.translation)


def _file_path(frame: Any, where: str) -> str:
    name = frame.get("file_path") if isinstance(frame, dict) else None
    if not isinstance(name, str) or not name:
        raise FormatError(f"{where}: a 'file_path' was expected, found {quoted(name)}: correct the frame")
    return name


def _refuse_equal_names(names: tuple[str, ...], where: list[str]) -> None:
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if seen.setdefault(name, i) != i:
            raise FormatError(f"{where[i]}: {quoted(name)} is also frame {seen[name]}: remove one of them")


def _without_image_folder(name: str) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    parts = parts[1:] if len(parts) > 2 and parts[0] == "colmap" else parts  # in a run folder
    folder = parts[0] if len(parts) > 1 else ""
    named_images = folder == "images" or (folder.startswith("images_") and folder[7:].isdecimal())
    return "/".join(parts[1:] if named_images else parts) or name

"""`hypersim`: ai_VVV_NNN/{_detail, images} with HDF5 files, metadata_camera_parameters.csv beside them."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.errors import FormatError, InputError, MissingExtraError
from geoweaver.formats.files import list_folder, place, read_text, reason
from geoweaver.formats.poses import from_matrices
from geoweaver.geometry import SE3
from geoweaver.training.datasets.scene import Scene, View, folders, window, without, z_from_range

EXPECTED = "Hypersim scenes"
PARAMETERS = "metadata_camera_parameters.csv"
_PER_VIEW = 3.0
_BRIGHT, _BRIGHT_SHARE, _GAMMA = 0.8, 90, 1 / 2.2
"""The 90 % quantile of brightness is shown as 0.8."""
_LUMA = (0.3, 0.59, 0.11)


def open_hypersim(root: Path) -> list[Scene]:
    """One scene per camera path; scenes whose lens is sheared (skew) are left out."""
    found = folders(root, "_detail/metadata_scene.csv", EXPECTED)
    table = next((p for p in (root / PARAMETERS, root.parent / PARAMETERS) if p.exists()), None)
    if table is None:
        raise InputError(f"{place(root)} lacks {PARAMETERS} of Hypersim's repository: put it there")
    rows = {row.get("scene_name"): row for row in _csv(table)}
    scenes = [scene for folder in found for scene in _open(folder, rows.get(folder.name), table)]
    if not scenes:
        raise InputError(f"{place(root)}: no scene has both frames and a lens without skew: fetch others")
    return scenes


def _open(folder: Path, row: dict[str, str] | None, table: Path) -> list[Scene]:
    if row is None:
        raise FormatError(f"{place(table)} does not name the scene {folder.name}: fetch the whole table")
    projection = np.array([[_number(row, f"M_proj_{i}{j}", table) for j in range(4)] for i in range(4)])
    if abs(projection[0, 1]) > 1e-6:
        return []
    detail = {r.get("parameter_name"): r for r in _csv(folder / "_detail" / "metadata_scene.csv")}
    metres = _number(
        detail.get("meters_per_asset_unit", {}), "parameter_value", folder / "_detail/metadata_scene.csv"
    )
    cameras = [p.name for p in list_folder(folder / "_detail", EXPECTED) if p.name.startswith("cam_")]
    return [scene for camera in cameras if (scene := _camera(folder, camera, projection, metres))]


def _camera(folder: Path, camera: str, projection: np.ndarray, metres: float) -> Scene | None:
    geometry, colour = (folder / "images" / f"scene_{camera}_{kind}_hdf5" for kind in ("geometry", "final"))
    if not geometry.is_dir() or not colour.is_dir():
        return None
    names = [path.name.split(".")[1] for path in list_folder(colour, EXPECTED) if ".color." in path.name]

    def read(frame: int) -> View:
        number = names[frame]
        path = colour / f"frame.{number}.color.hdf5"
        light = _dataset(path)
        entity = _dataset(geometry / f"frame.{number}.render_entity_id.hdf5")
        metric = _dataset(geometry / f"frame.{number}.depth_meters.hdf5")
        distance = torch.from_numpy(np.nan_to_num(metric.astype(np.float32)))
        K = intrinsics_of(projection, light.shape[1], light.shape[0])
        depth = without(z_from_range(distance, K), float("inf"))
        pose = _cam_from_world(folder / "_detail" / camera, int(number), metres)
        return View(tonemap(light, entity != -1), depth, pose, K, place(path))

    return Scene(f"{place(folder)}, {camera}", len(names), read, window(len(names), _PER_VIEW))


def intrinsics_of(projection: Float[np.ndarray, "4 4"], width: int, height: int) -> Float[Tensor, "4"]:
    """Of an OpenGL projection matrix, whose image reaches from -1 to 1."""
    M = projection
    return torch.tensor(
        [M[0, 0] * width / 2, M[1, 1] * height / 2, (1 - M[0, 2]) * width / 2, (1 + M[1, 2]) * height / 2],
        dtype=torch.float64,
    )


def tonemap(light: Float[np.ndarray, "H W 3"], known: np.ndarray) -> UInt8[np.ndarray, "H W 3"]:
    """Linear light to 8 bits: 90 % of the brightnesses that belong to something reach up to 0.8."""
    brightness = (light @ np.array(_LUMA))[known]
    bright = float(np.percentile(brightness, _BRIGHT_SHARE)) if len(brightness) else 0.0
    gain = _BRIGHT ** (1 / _GAMMA) / bright if bright > 1e-4 else 0.0
    shown = np.power(np.clip(np.nan_to_num(gain * light), 0, None), _GAMMA)
    return np.round(255 * np.clip(shown, 0, 1)).astype(np.uint8)


def _cam_from_world(folder: Path, frame: int, metres: float) -> SE3:
    """Camera-to-world axes with y up and z backwards, turned into ours."""
    turn = _dataset(folder / "camera_keyframe_orientations.hdf5")
    place_of = _dataset(folder / "camera_keyframe_positions.hdf5")
    if frame >= len(turn) or frame >= len(place_of):
        raise FormatError(f"{place(folder)}: no camera for frame {frame}: fetch the scene again")
    matrix = np.concatenate([turn[frame] * [1, -1, -1], metres * place_of[frame][:, None]], 1)
    return from_matrices(matrix[None].astype(np.float64), lambda row: place(folder))[0].inverse()


def _dataset(path: Path) -> Any:
    """The one array of an HDF5 file."""
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("h5py", "train", "reading Hypersim") from None
    try:
        with h5py.File(path, "r") as file:
            return file["dataset"][:]
    except (OSError, KeyError) as error:
        raise FormatError(f"{place(path)} cannot be read ({reason(error)}): fetch it again") from None


def _csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_text(path, "a table with commas")), skipinitialspace=True))


def _number(row: dict[str, str], key: str, path: Path) -> float:
    try:
        return float(row[key])
    except (KeyError, ValueError, TypeError):
        raise FormatError(f"{place(path)}: no number {key}: fetch the table again") from None

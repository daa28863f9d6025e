"""`dynamicreplica`: frame_annotations_*.jgz, <sequence>_{left,right}/{images, depths} (DynamicStereo)."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import place, read_bytes, reason
from geoweaver.formats.poses import from_matrices
from geoweaver.frames.images import read_image
from geoweaver.geometry import SE3
from geoweaver.training.datasets.scene import Scene, View, window, without

EXPECTED = "DynamicReplica's annotations (frame_annotations_train.jgz)"
_PER_VIEW = 3.0
_MALFORMED = (KeyError, TypeError, ValueError, IndexError)


def open_dynamicreplica(root: Path) -> list[Scene]:
    """One scene per sequence and camera; of several splits that lie there, the one for training."""
    found = sorted(root.glob("frame_annotations_*.jgz"))
    if not found:
        raise InputError(f"{place(root)} holds no {EXPECTED}: check the path")
    path = next((p for p in found if p.stem.endswith("_train")), found[0])
    sequences: dict[str, list[Any]] = {}
    for frame in _annotations(path):
        try:
            name = f"{frame['sequence_name']} {frame.get('camera_name', '')}".strip()
            sequences.setdefault(name, []).append((int(frame["frame_number"]), frame))
        except (*_MALFORMED, AttributeError):
            raise FormatError(f"{place(path)}: an entry is no frame: fetch it again") from None
    return [
        _scene(root, name, [frame for _, frame in sorted(frames, key=lambda pair: pair[0])])
        for name, frames in sequences.items()
    ]


def _annotations(path: Path) -> list[Any]:
    try:
        frames = json.loads(gzip.decompress(read_bytes(path, EXPECTED)))
    except (OSError, EOFError, ValueError) as error:
        raise FormatError(f"{place(path)} cannot be read ({reason(error)}): fetch it again") from None
    if not isinstance(frames, list):
        raise FormatError(f"{place(path)}: a list of frames was expected: fetch it again")
    return frames


def _scene(root: Path, name: str, frames: list[Any]) -> Scene:
    def read(index: int) -> View:
        frame = frames[index]
        try:
            image, depth, seen = frame["image"]["path"], frame["depth"]["path"], frame["viewpoint"]
            height, width = (int(side) for side in frame["image"]["size"])
            camera, intrinsics = camera_of(seen, width, height)
        except _MALFORMED as error:
            raise FormatError(f"{name}, frame {index}: the annotation lacks {reason(error)}") from None
        return View(
            read_image(root / image), read_half_depth(root / depth), camera, intrinsics, place(root / image)
        )

    return Scene(name, len(frames), read, window(len(frames), _PER_VIEW))


def camera_of(viewpoint: dict[str, Any], width: int, height: int) -> tuple[SE3, Tensor]:
    """cam_from_world and intrinsics of a PyTorch3D camera: points are rows, x points left and y up."""
    if viewpoint["intrinsics_format"] != "ndc_isotropic":
        raise ValueError("intrinsics in the form ndc_isotropic")
    flip = np.array([-1.0, -1, 1])
    rotation = (np.array(viewpoint["R"], dtype=np.float64) * flip).T
    translation = np.array(viewpoint["T"], dtype=np.float64) * flip
    pose = from_matrices(np.concatenate([rotation, translation[:, None]], 1)[None], lambda row: "a viewpoint")
    half = min(width, height) / 2
    focal, point = (np.array(viewpoint[key], dtype=np.float64) for key in ("focal_length", "principal_point"))
    middle = np.array([width, height]) / 2 - point * half
    return pose[0], torch.from_numpy(np.concatenate([focal * half, middle]))


def read_half_depth(path: Path) -> Tensor:
    """Metres as half-precision numbers whose bits are a 16-bit PNG's values."""
    from PIL import Image

    data = read_bytes(path, "a 16-bit PNG")
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            image.load()
            bits = np.array(image).astype(np.uint16)
    except (OSError, ValueError, SyntaxError) as error:
        raise FormatError(f"{place(path)} is no sound PNG ({reason(error)}): fetch it again") from None
    metres = np.nan_to_num(bits.view(np.float16).astype(np.float32), posinf=0, neginf=0)
    return without(torch.from_numpy(metres), float("inf"))

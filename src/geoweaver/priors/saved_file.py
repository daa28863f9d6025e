"""One .npz of a saved prior: what it must hold, in words where it does not (docs/priors.md)."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geoweaver.errors import FormatError
from geoweaver.formats.files import place, reason
from geoweaver.geometry import SE3
from geoweaver.priors.prediction import Prediction

_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError, NotImplementedError)


@dataclass(frozen=True)
class SavedFrame:
    """Where one frame's prediction lies."""

    frame: int
    path: Path
    row: int
    piece: str
    """Frames of one piece share a coordinate system."""


def read_index(path: Path, numbers: Mapping[str, int]) -> list[SavedFrame]:
    """The file's frames that are among `numbers`; others are of another sequence."""
    content = _load(path, ("name", "piece"))
    if "name" not in content or content["name"].dtype.kind != "U" or content["name"].ndim > 1:
        raise FormatError(
            f"{place(path)}: `name` must be the image name of each frame, as text: write it anew"
        )
    alone = content["name"].ndim == 0
    # a file of one frame shares its coordinate system with all others of one frame
    piece = f"={content['piece']}" if "piece" in content else "" if alone else path.name
    names = [str(name) for name in np.atleast_1d(content["name"])]
    return [SavedFrame(numbers[n], path, row, piece) for row, n in enumerate(names) if n in numbers]


def read_rows(entries: Sequence[SavedFrame]) -> Prediction:
    """The prediction of some frames of one piece."""
    files = {path: _whole(path) for path in dict.fromkeys(entry.path for entry in entries)}
    parts = [{key: value[e.row] for key, value in files[e.path].items()} for e in entries]
    sizes = {part["depth"].shape for part in parts}
    if len(sizes) > 1:
        raise FormatError(
            f"{place(entries[0].path)} and others of its piece: depth maps of {len(sizes)} sizes; use one"
        )
    stacked = {key: torch.from_numpy(np.stack([part[key] for part in parts])) for key in parts[0]}
    return Prediction(
        stacked["depth"].float(),
        stacked["confidence"].float(),
        SE3.from_matrix(stacked["cam_from_world"].double()),
        stacked["intrinsics"].double(),
        torch.ones(len(parts), dtype=torch.bool),
    )


def _whole(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file, one row per frame."""
    content = _load(path, ("name", "depth", "confidence", "cam_from_world", "world_from_cam", "intrinsics"))
    count = np.atleast_1d(content["name"]).shape[0]
    depth = _shaped(path, content, "depth", count, 2)
    confidence = (
        _shaped(path, content, "confidence", count, 2) if "confidence" in content else (depth > 0) + 0.0
    )
    if confidence.shape != depth.shape:
        raise FormatError(f"{place(path)}: `confidence` has another size than `depth`: write it anew")
    return {
        "depth": depth,
        "confidence": confidence,
        "cam_from_world": _cameras(path, content, count),
        "intrinsics": _intrinsics(path, content, count),
    }


def _cameras(path: Path, content: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    given = [key for key in ("cam_from_world", "world_from_cam") if key in content]
    if len(given) != 1:
        raise FormatError(
            f"{place(path)}: one of `cam_from_world` and `world_from_cam` must be there: write it anew"
        )
    matrices = _shaped(path, content, given[0], count, 2)
    if matrices.shape[1:] not in ((3, 4), (4, 4)):
        raise FormatError(f"{place(path)}: `{given[0]}` must be 3x4 or 4x4 for each frame: write it anew")
    cameras = SE3.from_matrix(torch.from_numpy(matrices))
    return np.asarray((cameras if given[0] == "cam_from_world" else cameras.inverse()).matrix())


def _intrinsics(path: Path, content: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """(fx, fy, cx, cy) or K, one for all frames or one each."""
    values = np.asarray(content.get("intrinsics", np.zeros(0)), dtype=np.float64)
    if values.shape[-2:] == (3, 3):
        values = values[..., [0, 1, 0, 1], [0, 1, 2, 2]]
    if values.shape not in ((4,), (count, 4)):
        raise FormatError(
            f"{place(path)}: `intrinsics` must be fx, fy, cx, cy or K: of all frames, or of each"
        )
    return np.broadcast_to(values, (count, 4)).copy()


def _shaped(path: Path, content: Mapping[str, np.ndarray], key: str, count: int, rank: int) -> np.ndarray:
    values = content.get(key)
    if values is not None and values.ndim == rank and count == 1:
        values = values[None]
    if values is None or values.ndim != rank + 1 or len(values) != count or values.dtype.kind not in "fiu":
        raise FormatError(
            f"{place(path)}: `{key}` must hold numbers for each of its {count} frames: write it anew"
        )
    return values.astype(np.float64 if rank == 2 and key.endswith(("world", "cam")) else np.float32)


def _load(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Some arrays of an .npz, those that are there; never pickled objects."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in keys if key in archive.files}
    except _DAMAGED as error:
        raise FormatError(f"{place(path)} is no sound .npz ({reason(error)}): write the file anew") from None

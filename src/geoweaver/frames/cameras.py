"""Which physical camera took which frame, and what its lens is: given, hinted by EXIF, or guessed."""

import math
from collections import Counter
from dataclasses import dataclass
from statistics import median

from geoweaver.frames.calibration import Calibration, lens_at_size, read_calibration
from geoweaver.frames.source import Recording
from geoweaver.geometry.distortion import Lens

GUESSED_FOCAL = 1.2
"""Times the longer side: between a phone's main lens and a film camera's normal one."""
_SAME_ASPECT = 0.01
_OWN_FOCAL = 10
"""Frames that a zoom step needs to count as a camera of its own."""

Size = tuple[int, int]


@dataclass(frozen=True)
class CameraGroups:
    """Camera of each frame, and each camera's lens at its original size."""

    camera: tuple[int, ...]
    lenses: tuple[Lens, ...]
    calibrated: bool
    hinted: tuple[bool, ...]
    """Whether the focal comes from the files."""


def group_cameras(recording: Recording, intrinsics: str | None) -> CameraGroups:
    """One camera per sub-folder and image shape (and given lens): a resized copy is the same camera."""
    folders = tuple(dict.fromkeys(recording.folders))
    calibration = read_calibration(intrinsics, _main_size(recording)) if intrinsics else None
    zooms = [0.0] * len(recording) if calibration else _zooms(recording)
    told = calibration.by_image(recording.names) if calibration else {}
    found = [_key(recording, i, folders, calibration, told.get(i), zooms[i]) for i in range(len(recording))]
    keys = _filled(found, recording.folders)
    distinct = tuple(dict.fromkeys(keys))
    rows = {key: [i for i, k in enumerate(keys) if k == key] for key in distinct}
    # keys of unreadable frames are others' by now, so every group has a size
    made = [_lens(recording, rows[key], key[2], calibration) for key in distinct]
    return CameraGroups(
        camera=tuple(distinct.index(key) for key in keys),
        lenses=tuple(lens for lens, _ in made),
        calibrated=calibration is not None,
        hinted=tuple(hint for _, hint in made),
    )


Key = tuple[str, int, int, float]
"""Sub-folder, aspect ratio in steps, lens of the calibration, zoom step."""


def _key(
    recording: Recording, i: int, folders: tuple[str, ...], calibration: Calibration | None,
    told: int | None, zoom: float,
) -> Key | None:  # fmt: skip
    size = recording.sizes[i]
    if size is None:
        return None
    folder = recording.folders[i]
    lens = 0
    if calibration is not None:
        lens = calibration.lens_of(recording.names[i], told, folders.index(folder), len(folders))
    return folder, round(math.log(size[0] / size[1]) / (2 * _SAME_ASPECT)), lens, zoom


def _zooms(recording: Recording) -> list[float]:
    """EXIF's focal relative to the image's diagonal, where every such step has frames enough; else 0."""
    steps = [(f, _zoom_step(recording, i)) for i, f in enumerate(recording.folders)]
    counts = Counter(steps)
    crowded = {f: min(n for (g, _), n in counts.items() if g == f) >= _OWN_FOCAL for f, _ in counts}
    return [step if crowded[folder] else 0.0 for folder, step in steps]


def _zoom_step(recording: Recording, i: int) -> float:
    size, focal = recording.sizes[i], recording.focals[i] if recording.focals else None
    return 0.0 if size is None or focal is None else float(f"{focal / math.hypot(*size):.2g}")


def _filled(keys: list[Key | None], folders: tuple[str, ...]) -> list[Key]:
    """A frame that cannot be read belongs to the camera before it in its chain, else to the next one."""
    first = {f: key for f, key in zip(reversed(folders), reversed(keys), strict=True) if key is not None}
    anyone = next(key for key in keys if key is not None)
    latest: dict[str, Key] = {}
    filled = []
    for folder, key in zip(folders, keys, strict=True):
        latest[folder] = key or latest.get(folder) or first.get(folder) or anyone
        filled.append(latest[folder])
    return filled


def _lens(
    recording: Recording, rows: list[int], lens: int, calibration: Calibration | None
) -> tuple[Lens, bool]:
    """A group's lens at its commonest original size, and whether its focal was read from the files."""
    size = _commonest([recording.sizes[i] for i in rows])
    if calibration is not None:
        return lens_at_size(calibration.lenses[lens], size, calibration.where), False
    ratios = [_focal_ratio(recording, i) for i in rows]
    known = [ratio for ratio in ratios if ratio is not None]
    focal = median(known) * max(size) if known else GUESSED_FOCAL * max(size)
    return Lens("PINHOLE", (focal, focal, size[0] / 2, size[1] / 2), size), bool(known)


def _focal_ratio(recording: Recording, i: int) -> float | None:
    size, focal = recording.sizes[i], recording.focals[i] if recording.focals else None
    # files of edited images often keep a focal that no longer fits
    return focal / max(size) if size and focal and 0.2 < focal / max(size) < 20 else None


def _main_size(recording: Recording) -> Size:
    return _commonest(list(recording.sizes))


def _commonest(sizes: list[Size | None]) -> Size:
    counts = Counter(size for size in sizes if size is not None)
    return max(counts, key=lambda size: (counts[size], size))

"""A folder of images: natural order, sub-folders are physical cameras, broken files keep their place."""

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from jaxtyping import Bool, UInt8

from geoweaver.errors import InputError
from geoweaver.formats.files import list_folder, place, read_bytes, reason
from geoweaver.formats.names import IMAGE_SUFFIXES, VIDEO_SUFFIXES, natural_key
from geoweaver.formats.run_folder import made_by_a_run
from geoweaver.frames.images import (
    ImageFacts,
    UnreadableFrameError,
    look_at_image,
    read_alpha,
    read_image,
)
from geoweaver.frames.levels import Levels, find_levels
from geoweaver.frames.source import Recording

log = logging.getLogger(__name__)
SMALLEST_SIDE = 32
"""Pixels: below this no feature fits into an image."""


@dataclass(frozen=True)
class FolderSource:
    """Images of a folder by their place in natural order."""

    folder: Path
    names: tuple[str, ...]
    levels: Mapping[str, Levels]
    """Of each sub-folder's images with more than eight bits."""

    def read(self, place: int) -> UInt8[np.ndarray, "height width 3"]:
        """Upright 8-bit RGB at the original size."""
        name = self.names[place]
        return read_image(self.folder / name, self.levels.get(_parent(name), Levels()))

    def mask(self, place: int) -> Bool[np.ndarray, "height width"] | None:
        """Where the image is opaque; None without alpha."""
        return read_alpha(self.folder / self.names[place])


def open_folder(folder: Path) -> Recording:
    """All images below a folder; each is looked at once."""
    folder, names = list_images(folder)
    with ThreadPoolExecutor(max_workers=2) as pool:
        looked = list(pool.map(partial(_look, folder), names))
    facts = [fact for fact, _, _ in looked]
    levels = _levels(names, facts)
    return Recording(
        source=FolderSource(folder, names, levels),
        names=names,
        folders=tuple(map(_parent, names)),
        sizes=tuple(fact.size if fact else None for fact in facts),
        timestamps=torch.arange(len(names), dtype=torch.float64),
        digests=tuple(
            f"{digest}-{_told(fact, levels.get(_parent(name)))}"
            for name, (fact, digest, _) in zip(names, looked, strict=True)
        ),
        focals=tuple(fact.focal if fact else None for fact in facts),
        masked=any(fact.alpha for fact in facts if fact),
        notes=tuple(note for _, _, note in looked if note),
    )


def _parent(name: str) -> str:
    return str(PurePosixPath(name).parent)


def _levels(names: Sequence[str], facts: Sequence[ImageFacts | None]) -> dict[str, Levels]:
    """One answer for all frames of a camera: brightness that jumps from frame to frame is no motion."""
    deep: dict[str, list[ImageFacts]] = {}
    for name, fact in zip(names, facts, strict=True):
        if fact is not None and fact.sample is not None:
            deep.setdefault(_parent(name), []).append(fact)
    return {
        folder: find_levels([f.sample for f in own if f.sample is not None], any(f.real for f in own))
        for folder, own in deep.items()
    }


def _told(fact: ImageFacts | None, levels: Levels | None) -> str:
    """What of the levels changes an image's pixels."""
    if levels is None or fact is None or fact.sample is None:
        return "255"
    return f"{levels.white:.9g}" if levels.black == 0 else f"{levels.black:.9g}-{levels.white:.9g}"


def list_images(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder that holds the images (`images/` of a dataset), and their names in natural order."""
    names = _names_below(folder)
    inner = {name.split("/", 1)[0] for name in names if "/" in name}
    if "images" in inner and all("/" in name for name in names):
        # a dataset's depth, masks and smaller copies are no cameras
        folder = folder / "images"
        names = [name.removeprefix("images/") for name in names if name.startswith("images/")]
    if not names:
        raise InputError(_no_image(folder))
    return folder, tuple(sorted(names, key=natural_key))


def _no_image(folder: Path) -> str:
    films = [p for p in list_folder(folder, "a folder of images") if p.suffix.lower() in VIDEO_SUFFIXES]
    if films:
        return f"{place(folder)} holds no image, but a video: give the file itself, {place(films[0])}"
    return f"{place(folder)} holds no image ({', '.join(IMAGE_SUFFIXES)}): check the path"


def _names_below(folder: Path) -> list[str]:
    def refuse(error: OSError) -> None:
        where = place(Path(error.filename or folder))
        raise InputError(f"{where} cannot be listed ({reason(error)}): check its permissions") from None

    names = []
    for where, inner, files in os.walk(folder, onerror=refuse):
        shown = sorted(name for name in inner if not name.startswith((".", "__")))
        inner[:] = [name for name in shown if not _left_out(Path(where, name))]
        kept = [f for f in files if not f.startswith(".") and Path(f).suffix.lower() in IMAGE_SUFFIXES]
        names += [Path(where, file).relative_to(folder).as_posix() for file in kept]
    return names


def _left_out(folder: Path) -> bool:
    """What a run has written is no camera of the next one."""
    made = made_by_a_run(folder)
    if made:
        log.info("%s was written by a run of geoweaver: it is left out of the input", place(folder))
    return made


def _look(folder: Path, name: str) -> tuple[ImageFacts | None, str, str]:
    """Facts, digest and, where the image cannot be used, a line that says why."""
    try:
        data = read_bytes(folder / name, "an image")
    except InputError as error:
        return None, "unreadable", str(error)
    digest = hashlib.sha256(data).hexdigest()[:32]
    try:
        facts = look_at_image(data, folder / name)
    except UnreadableFrameError as error:
        return None, digest, str(error)
    if min(facts.size) < SMALLEST_SIDE:
        width, height = facts.size
        small = f"has only {width}x{height} pixels: at least {SMALLEST_SIDE} a side are needed"
        return None, digest, f"{place(folder / name)} {small}"
    return facts, digest, ""

"""A run's workspace folder: finished pieces are kept, found again by key, and never trusted unchecked."""

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import Tensor

from geoweaver.errors import StoreError
from geoweaver.store.artifact import (
    Artifact,
    DamagedError,
    Header,
    check_content,
    read_header,
    read_tensors,
    write_artifact,
)
from geoweaver.store.lock import release_lock, take_lock
from geoweaver.store.whole import PARTIAL, disk_errors, whole_file

Flat = tuple[Mapping[str, Tensor], Mapping[str, Any]]
"""Tensors by name, and JSON-able notes: what an artifact is made of."""

Signature = tuple[int, int, int]
"""A file's inode, time of change and size."""

MARKER = "store.json"
LOCK = ".lock"
_FORMAT = {"geoweaver": "store", "format": 1}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
log = logging.getLogger(__name__)


class Store:
    """A folder of artifacts; the owner holds its lock, and copies sent to workers write under it."""

    def __init__(
        self,
        folder: Path,
        writable: bool,
        checked: Mapping[Path, Signature] | None = None,
        lock: int | None = None,
    ) -> None:
        self.folder = folder
        self.writable = writable
        self._checked = dict(checked or {})
        self._lock = lock

    @staticmethod
    def open(folder: Path | str) -> "Store":
        """Take the folder for writing, or refuse: one owner at a time, and never another program's folder."""
        folder = Path(folder).absolute()
        with disk_errors("use", folder):
            folder.mkdir(parents=True, exist_ok=True)
            _check_marker(folder)
            store = Store(folder, True, lock=take_lock(folder / LOCK))
            try:
                _prepare(folder)
            except (OSError, StoreError):
                store.close()
                raise
        return store

    @staticmethod
    def reader(folder: Path | str) -> "Store":
        """Look into a folder without owning it: no lock, no writing, even while a run is going on."""
        folder = Path(folder).absolute()
        with disk_errors("read", folder):
            _check_marker(folder)
        if not (folder / MARKER).exists():
            raise StoreError(f"{folder} holds no GeoWeaver workspace: give the folder of a run")
        return Store(folder, False)

    def close(self) -> None:
        """Give the folder free."""
        if self._lock is not None:
            release_lock(self._lock)
        self._lock, self.writable = None, False

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[type["Store"], tuple[Path, bool, Mapping[Path, Signature]]]:
        return Store, (self.folder, self.writable, self._checked)

    def path(self, stage: str, piece: str, key: str) -> Path:
        """Where an artifact lies; other keys' lie beside it, so changing an option back costs nothing."""
        for name in (stage, piece, key):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be part of a file name")
        return self.folder / stage / f"{piece}.{key[:16]}.safetensors"

    def has(self, stage: str, piece: str, key: str) -> bool:
        """Whether a whole, undamaged artifact with this very key is there; damage is logged."""
        try:
            self._header(stage, piece, key)
        except FileNotFoundError:
            return False
        except DamagedError as damage:
            path = self.path(stage, piece, key)
            log.warning("%s is damaged (%s) and will be computed again", path, damage)
            return False
        return True

    def load(self, stage: str, piece: str, key: str) -> Artifact:
        """A checked artifact, its tensors memory-mapped."""
        path = self.path(stage, piece, key)
        try:
            header = self._header(stage, piece, key)
        except FileNotFoundError as error:
            raise StoreError(f"{path} is missing: run the reconstruction again to make it") from error
        except DamagedError as error:
            raise StoreError(
                f"{path} is damaged ({error}): run the reconstruction again to mend it"
            ) from error
        return Artifact(read_tensors(path), header.meta, header.digest)

    def save(
        self, stage: str, piece: str, key: str, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]
    ) -> str:
        """Keep an artifact and give its digest; when this returns, it is on the disk."""
        path = self.path(stage, piece, key)
        if not self.writable:
            raise StoreError(f"{self.folder} is open for reading only: {stage}/{piece} cannot be kept")
        with disk_errors("write", path):
            path.parent.mkdir(exist_ok=True)
        digest = write_artifact(path, _label(stage, piece, key), tensors, meta)
        self._checked[path] = _signature(path)
        return digest

    def cached(self, stage: str, piece: str, key: str, compute: Callable[[], Flat]) -> Artifact:
        """The artifact with this key, computed if missing; always read back, as a resumed run reads it."""
        if not self.has(stage, piece, key):
            self.save(stage, piece, key, *compute())
        return self.load(stage, piece, key)

    def prune(self, stage: str, keys: Collection[str]) -> int:
        """Remove a stage's artifacts whose key is none of these, and say how many."""
        kept = {key[:16] for key in keys}
        files = [f for f in (self.folder / stage).glob("*.safetensors") if f.suffixes[-2][1:] not in kept]
        return self._remove(files)

    def clear(self) -> int:
        """Remove every artifact: the only way to lose finished work."""
        return self._remove(list(self.folder.glob("*/*.safetensors")))

    def _remove(self, files: list[Path]) -> int:
        if not self.writable:
            raise StoreError(f"{self.folder} is open for reading only: nothing can be removed")
        with disk_errors("clean", self.folder):
            for file in files:
                file.unlink(missing_ok=True)
        return len(files)

    def _header(self, stage: str, piece: str, key: str) -> Header:
        """The header of an artifact that is ours and whole; its digest is checked once per process."""
        path = self.path(stage, piece, key)
        try:
            header = read_header(path)
            if header.label != _label(stage, piece, key):
                raise DamagedError(f"it belongs to {header.label}")
            if self._checked.get(path) != _signature(path):
                check_content(path, header)
                self._checked[path] = _signature(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
        return header


def _prepare(folder: Path) -> None:
    """Sweep away what a killed run left half-written, and sign a new folder."""
    for leftover in folder.rglob(f".*{PARTIAL}"):
        leftover.unlink(missing_ok=True)
    if not (folder / MARKER).exists():
        with whole_file(folder / MARKER) as file:
            file.write(json.dumps(_FORMAT).encode())


def _label(stage: str, piece: str, key: str) -> dict[str, str]:
    return {"stage": stage, "piece": piece, "key": key}


def _signature(path: Path) -> Signature:
    """Changes when the file is replaced or written to."""
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _check_marker(folder: Path) -> None:
    """Refuse a folder that another program, or a newer version, has filled."""
    marker = folder / MARKER
    if not marker.exists():
        strangers = [p.name for p in folder.iterdir() if p.name != LOCK and not p.name.endswith(PARTIAL)]
        if strangers:
            raise StoreError(
                f"{folder} holds {min(strangers)!r}, which GeoWeaver did not write: choose another folder"
            )
        return
    try:
        found = json.loads(marker.read_text())
    except ValueError:
        found = None
    if found != _FORMAT:
        raise StoreError(f"{folder} was written by another version of GeoWeaver: choose another folder")

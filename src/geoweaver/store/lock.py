"""One owner per folder: a lock that the operating system releases when its process ends, however it ends."""

import errno
import fcntl
import json
import logging
import os
import socket
import time
from datetime import datetime
from pathlib import Path

from geoweaver.errors import StoreError

_LOCKLESS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_ASKED = 0.1
"""Seconds; far longer than `is_locked` takes."""
log = logging.getLogger(__name__)


def take_lock(path: Path) -> int:
    """Lock a file and write down who holds it; the handle must stay open as long as the lock is needed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(handle)
    except BlockingIOError as error:
        os.close(handle)
        raise StoreError(
            f"{path.parent} is in use by {_holder(path)}: wait until it ends, or choose another output folder"
        ) from error
    except OSError as error:
        if error.errno not in _LOCKLESS:
            os.close(handle)
            raise
        log.warning("%s: this file system has no locks; run only one process in this folder", path.parent)
    _sign(handle)
    return handle


def _lock(handle: int) -> None:
    """At the second try if need be: somebody may have asked just now whether the folder is in use."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_ASKED)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Whether a process works in the folder now; True also where the file system does not tell."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def release_lock(handle: int) -> None:
    """Give the folder free; the lock's file stays, for removing it would race with the next owner."""
    os.close(handle)


def _sign(handle: int) -> None:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since})
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _holder(path: Path) -> str:
    try:
        owner = json.loads(path.read_text())
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"  # It has the lock and has not signed yet.

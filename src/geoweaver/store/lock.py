"""One owner per folder: a lock that the operating system releases when its process ends, however it ends."""

import errno
import fcntl
import json
import logging
import os
import socket
from datetime import datetime
from pathlib import Path

from geoweaver.errors import StoreError

_LOCKLESS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
log = logging.getLogger(__name__)


def take_lock(path: Path) -> int:
    """Lock a file and write down who holds it; the handle must stay open as long as the lock is needed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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

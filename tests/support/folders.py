"""Folders of a test run's servers: in memory where the machine has room for them there."""

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - `mkdtemp` makes a folder of our own in it
#: More than the servers of a run keep: databases of 11 MB each, and Flowise's own.
_ROOM = 4 << 30
#: Longer than any run takes.
_LEFT_SECS = 86_400


def server_folder(name: str) -> Path:
    """A new folder with a short path, to be removed by the caller; a database there is made in a third of the time.

    pytest's `tmp_path` is too long for a Unix socket, and closed to the user that Postgres runs as.
    """
    # What a killed run left there is memory.
    for left in _SHARED_MEMORY.glob("fda-*-????????"):
        with suppress(OSError):  # another run may remove it, too
            if left.stat().st_mtime < time.time() - _LEFT_SECS:
                shutil.rmtree(left)
    try:
        in_memory = shutil.disk_usage(_SHARED_MEMORY).free > _ROOM
    except OSError:
        in_memory = False
    return Path(tempfile.mkdtemp(prefix=f"fda-{name}-", dir=_SHARED_MEMORY if in_memory else None))

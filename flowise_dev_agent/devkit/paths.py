"""Where the devkit keeps what it installs (cache) and what it must remember (data), outside of any checkout."""

import os
from pathlib import Path

import platformdirs

APP_NAME = "flowise-dev-agent"


def is_root() -> bool:
    """True for uid 0; always False on systems without user ids."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def default_cache_dir() -> Path:
    """Installations that can be made again at any time, e.g. Flowise's `node_modules` (about 3 GB)."""
    return platformdirs.user_cache_path(APP_NAME, appauthor=False)


def default_data_dir() -> Path:
    """Databases, access data and logs of the local stack.

    For root it is not below the home folder: Postgres refuses to run as root, so the embedded server runs as a user of
    its own and every folder above its data is opened for reading.
    """
    if is_root():
        return Path("/var/lib") / APP_NAME
    return platformdirs.user_data_path(APP_NAME, appauthor=False)

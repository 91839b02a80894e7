"""What one process of this machine does while the others wait: installing, building."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from flowise_dev_agent.devkit.processes import default_cache_dir


@contextmanager
def alone(task: str) -> Iterator[None]:
    """Wait until no other process of this user does `task`: the next one finds it done."""
    folder = default_cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".tests-{task}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
